"""How far a query has come is read from its checkpoint, as Spark writes it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.log.kafka.backlog import offsets_of
from streaming.batches.catching_up import offset_read

pytestmark = pytest.mark.integration


def planned(checkpoint: Path, batch: int, offsets: str) -> None:
    folder = checkpoint / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{offsets}')


def test_the_last_batch_that_was_planned_says_where_the_next_one_begins(spark: SparkSession, tmp_path: Path) -> None:
    assert offset_read(spark, str(tmp_path)) is None
    planned(tmp_path, 9, '{"metrics":{"0":5,"1":7},"results":{"0":3}}')
    planned(tmp_path, 10, '{"metrics":{"0":15,"1":17},"results":{"0":13}}')
    assert offsets_of(offset_read(spark, str(tmp_path))) == {"metrics": {0: 15, 1: 17}, "results": {0: 13}}
    assert offset_read(spark, tmp_path.as_uri()) == offset_read(spark, str(tmp_path))


def test_a_query_that_never_began_has_read_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    assert offset_read(spark, str(tmp_path)) is None
