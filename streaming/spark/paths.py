"""Paths as Spark is given them."""

from pathlib import Path

from controller.settings.section import is_uri


def for_spark(path: str) -> str:
    """*path* with the scheme of this machine's files, unless it is a URI.

    Without a scheme Spark looks in Hadoop's default file system, which HADOOP_CONF_DIR often says is HDFS.  Nothing is
    escaped: Hadoop takes characters as they are, also in what looks like a URI.
    """
    return path if is_uri(path) else f"file:{Path(path).absolute()}"
