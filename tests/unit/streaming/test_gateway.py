"""Starting Spark's JVM: what cannot be started leaves nothing behind."""

import tempfile
from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from streaming.spark import gateway


def test_without_java_it_says_how_to_get_it_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SettingsError, match=r"gone' holds no bin/java\. .*apt-get install"):
        gateway.start_jvm({})
    assert not list(scratch.iterdir())
