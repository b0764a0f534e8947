"""Options of the Spark session: the operator's and those that the query depends on."""

from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from streaming.spark.session import spark_options

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
