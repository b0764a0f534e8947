"""Paths as Spark is given them: of this machine, whatever Hadoop's default file system is."""

from pathlib import Path

import pytest

from streaming.spark.paths import for_spark


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/a b%20:c", "file:/var/lib/a b%20:c"),
        ("log", f"file:{Path.cwd()}/log"),
        ("file:/var/lib", "file:/var/lib"),
        ("hdfs://name/trimtab", "hdfs://name/trimtab"),
    ],
)
def test_what_is_no_uri_is_a_path_of_this_machine(path: str, expected: str) -> None:
    assert for_spark(path) == expected
