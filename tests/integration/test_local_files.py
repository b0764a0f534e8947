"""The checkpoint's files are those that Hadoop makes on this machine, and no process is started for them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streaming.spark import gateway

pytestmark = pytest.mark.integration

OPTION = "fs.AbstractFileSystem.file.impl"
HADOOPS = "org.apache.hadoop.fs.local.LocalFs"
#: The place in /proc/PID/stat, behind the name, of the page faults of child processes that have ended.
FAULTS_OF_CHILDREN = 8


def test_files_of_a_checkpoint_are_hadoops_and_no_process_is_started(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ours, processes = checkpointed(spark, tmp_path / "real" / "ours")
    assert not processes
    linked, processes = checkpointed(spark, tmp_path / "link" / "linked")
    assert not processes
    theirs, processes = checkpointed(spark, tmp_path / "real" / "theirs", HADOOPS)
    assert processes
    assert ours == linked == theirs
    assert {".1.crc", "1", "2"} < set(ours)


def checkpointed(spark: SparkSession, folder: Path, kind: str = "") -> tuple[dict[str, tuple[bytes, int]], bool]:
    """Write files as Spark writes those of a checkpoint, in *folder*, by the class *kind* or the session's.

    Content and mode of each, and whether processes were started for them.
    """
    java: Any = spark._jvm
    context: Any = spark.sparkContext
    conf = java.org.apache.hadoop.conf.Configuration(context._jsc.hadoopConfiguration())
    if kind:
        conf.set(OPTION, kind)
    before = faults_of_children()
    path = java.org.apache.hadoop.fs.Path(f"file://{folder}/offsets")
    manager = java.org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager(
        path, conf
    )
    manager.mkdirs(path)
    for name in ("1", "2", "2"):
        stream = manager.createAtomic(java.org.apache.hadoop.fs.Path(path, name), True)
        stream.write(bytearray(b"state" * 1000))
        stream.close()
    found = {
        file.name: (file.read_bytes() if file.is_file() else b"", file.stat().st_mode) for file in folder.rglob("*")
    }
    return found, faults_of_children() > before


def faults_of_children() -> int:
    """Page faults of the JVM's child processes that have ended; each of them had some."""
    stat = Path(f"/proc/{gateway.jvm_pid()}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[FAULTS_OF_CHILDREN])
