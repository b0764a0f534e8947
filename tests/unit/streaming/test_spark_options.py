"""Options of the Spark session: the operator's and those that the query depends on."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from controller.model.errors import SettingsError, TrimtabError
from streaming.spark import gateway
from streaming.spark.session import spark_options, start_session

OURS = (Path("/ours/rows.jar"), Path("/ours/connector.jar"))


def test_jars_of_the_settings_are_added_to_ours() -> None:
    options = spark_options(2, {"spark.jars": "/theirs/a.jar, s3a://bucket/b.jar"}, OURS)
    assert options["spark.jars"] == "/ours/rows.jar,/ours/connector.jar,/theirs/a.jar,s3a://bucket/b.jar"
    packages = {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.2"}
    assert spark_options(2, packages, OURS).items() >= {**packages, "spark.jars": ",".join(map(str, OURS))}.items()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("spark.sql.session.timeZone", "Europe/Berlin", "trimtab works with 'UTC' only"),
        ("spark.sql.execution.arrow.pyspark.enabled", False, "= 'false': trimtab works with 'true' only"),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", 5, "= '5': trimtab works with '20000' only"),
        ("spark.master", "yarn", "set spark.master instead"),
        ("spark.sql.shuffle.partitions", 8, "set spark.shuffle_partitions instead"),
    ],
)
def test_an_option_that_the_query_depends_on_is_refused_by_name(name: str, value: object, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        spark_options(2, {name: value}, OURS)
    assert name in str(caught.value)
    assert told in str(caught.value)


def test_an_option_with_the_required_value_is_accepted() -> None:
    assert spark_options(2, {"spark.sql.execution.arrow.pyspark.enabled": True}, OURS) == spark_options(2, {}, OURS)


def test_what_suits_one_machine_may_be_changed() -> None:
    assert spark_options(2, {"spark.driver.memory": "8g"}, OURS)["spark.driver.memory"] == "8g"


class Thrown:
    """An exception of Java's."""

    def __init__(self, message: str | None, cause: "Thrown | None" = None) -> None:
        self._message, self._cause = message, cause
        self._target_id, self._gateway_client = "o1", None  # as Py4JJavaError wants it

    def getMessage(self) -> str | None:  # noqa: N802
        return self._message

    def getCause(self) -> "Thrown | None":  # noqa: N802
        return self._cause

    def __str__(self) -> str:
        return "java.lang.Exception"


_AWAY = Thrown("An error has occurred.", Thrown("Failed to connect\n to 10.0.0.1", Thrown(None)))


@pytest.mark.parametrize(
    ("master", "thrown", "told", "exit_code"),
    [
        ("k8s://a:443", _AWAY, "An error has occurred.: Failed to connect to 10.0.0.1: java.lang.Exception", 1),
        ("sparky", Thrown("Could not parse Master URL: 'sparky'"), "Could not parse Master URL: 'sparky'", 2),
        (
            "local[0]",
            Thrown("Asked to run locally with 0 threads"),
            "Asked to run locally with 0 threads",
            2,
        ),
    ],
)
def test_where_a_master_is_away_a_later_start_may_succeed_and_where_there_is_none_a_person_is_needed(
    monkeypatch: pytest.MonkeyPatch, master: str, thrown: Thrown, told: str, exit_code: int
) -> None:
    def refuse(_: object) -> None:
        raise Py4JJavaError("", thrown)

    monkeypatch.setattr(gateway, "ensure_jvm", lambda *_: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    with pytest.raises(TrimtabError) as failure:
        start_session(master, 1, {})
    assert str(failure.value) == f"Spark does not start with [spark] master = {master!r} and conf: {told}"
    assert failure.value.exit_code == exit_code
