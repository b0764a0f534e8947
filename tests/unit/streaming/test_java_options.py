"""Options of Spark's JVM: the user's choice of a collector of garbage prevails, wherever it stands."""

from pathlib import Path

import pytest

from streaming.spark.java_options import java_options

OWN = "-XX:+UseSerialGC"
THEIRS = "-Xss4m -XX:+UseG1GC"
SPARK = "spark.driver.extraJavaOptions"


def test_garbage_is_collected_by_the_serial_collector_unless_the_user_chooses(tmp_path: Path) -> None:
    assert OWN in java_options({}, {}, tmp_path).split()
    assert OWN in java_options({SPARK: "-Xss4m"}, {"JAVA_TOOL_OPTIONS": "-XX:+UseStringDeduplication"}, tmp_path)


@pytest.mark.parametrize("name", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_a_collector_named_in_the_environment_is_the_only_one(name: str, tmp_path: Path) -> None:
    assert OWN not in java_options({}, {name: THEIRS}, tmp_path)


@pytest.mark.parametrize("option", ["-XX:+UseZGC", "-XX:+UseParallelGC", "-XX:+UseShenandoahGC", OWN])
def test_a_collector_named_in_the_settings_is_the_only_one(option: str, tmp_path: Path) -> None:
    assert OWN not in java_options({SPARK: option}, {}, tmp_path)


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_collector_named_in_sparks_own_defaults_is_the_only_one(by_variable: bool, tmp_path: Path) -> None:
    folder = tmp_path / ("elsewhere" if by_variable else "conf")
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(f"{SPARK} {THEIRS}\n")
    environment = {"SPARK_CONF_DIR": str(folder)} if by_variable else {}
    assert OWN not in java_options({}, environment, tmp_path)
