"""topic_stats records, of which a cluster has a million, leave the JVM many in a row, and nothing of them is lost."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from controller.aggregate.columns.rows import METRICS, TOPIC, Rows
from controller.wire.metrics import decode_metric
from controller.wire.packed_rows import rows_from_columns
from controller.wire.rows import Located, rows_from_records
from streaming.decode import DecodeOptions, rows
from tests.folds import NO_DETAIL
from tests.integration.test_rows_in_spark_and_python import plain
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T, as_bytes, topic_stats

pytestmark = pytest.mark.integration

_SHARDS = 2
_OPTIONS = DecodeOptions(cluster=CLUSTER, period_ms=PERIOD, max_record_bytes=1 << 20, shards=_SHARDS, detail=NO_DETAIL)
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"
#: As streaming/jvm/TopicRows.java has it.
_MOST = 4096

#: (partition, offset, file), value
Placed = tuple[tuple[int, int, str], bytes]


def topic(number: int, **changed: Any) -> bytes:
    """Of many topics in a few bundles on a few brokers, each with a load of its own."""
    bundle, broker = (LEFT, RIGHT)[number % 2], f"broker-{number % 3}:8080"
    said = {"bundle": bundle, "broker": broker, "msgRateIn": number / 7, "producerCount": number, **changed}
    return as_bytes(topic_stats(topic=f"persistent://tenant/ns/ü-{number}", **said))


def of_the_query(spark: SparkSession, records: list[Placed]) -> tuple[int, Rows]:
    """How many rows leave the JVM, and what they unpack to."""
    data = [(METRICS, partition, offset, file, T, value) for (partition, offset, file), value in records]
    found = rows(spark.createDataFrame(data, _SCHEMA).coalesce(1), _OPTIONS).toPandas()
    columns = {str(name): found[name].to_numpy() for name in found.columns}
    return len(found), rows_from_columns(columns, cluster=CLUSTER, period_ms=PERIOD, files=True)


def in_python(records: list[Placed]) -> Rows:
    located = [
        Located(source=METRICS, partition=partition, offset=offset, file=file, record=decoded(value))
        for (partition, offset, file), value in records
    ]
    return rows_from_records(located, NO_DETAIL, files=True)


def decoded(value: bytes) -> Any:
    return decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T, max_bytes=1 << 20)


def files_of(found: Rows) -> dict[int, str]:
    """Offset -> file."""
    assert found.file is not None
    return dict(zip(found.offset.tolist(), found.file.tolist(), strict=True))


def test_a_partitions_topics_are_a_row_a_shard_and_mean_what_one_row_each_would(spark: SparkSession) -> None:
    records = [((0, number, "f"), topic(number)) for number in range(300)]
    packed, found = of_the_query(spark, records)
    assert packed == _SHARDS
    assert set(found.kind.tolist()) == {TOPIC}
    assert plain(found) == plain(in_python(records))


def test_a_topic_told_twice_is_there_twice(spark: SparkSession) -> None:
    """Which one counts is for the fold to say: a tick may lie between them."""
    records = [((0, offset, "f"), topic(1, msgRateIn=float(offset))) for offset in range(3)]
    _, found = of_the_query(spark, records)
    assert sorted(zip(found.offset.tolist(), found.stats[:, 0].tolist(), strict=True)) == [
        (0, 0.0), (1, 1000.0), (2, 2000.0),
    ]  # fmt: skip
    assert len(set(found.topic[:, 0].tolist())) == 1


def test_other_partitions_and_files_in_between_keep_their_topics_apart(spark: SparkSession) -> None:
    places = [(0, "a"), (1, "a"), (1, "b"), (0, "a"), (0, "b"), (0, "b")]
    records = [((partition, n, file), topic(n)) for n, (partition, file) in enumerate(places)]
    _, found = of_the_query(spark, records)
    assert plain(found) == plain(in_python(records))
    assert files_of(found) == {n: file for n, (_, file) in enumerate(places)}


def test_other_records_in_between_do_not_part_them(spark: SparkSession) -> None:
    records: list[Placed] = []
    for n in range(0, 40, 2):
        records += [((0, n, "f"), topic(n)), ((0, n + 1, "f"), as_bytes(topic_stats(cluster="other")))]
    packed, found = of_the_query(spark, [*records, ((0, 40, "f"), b"spoilt")])
    assert packed == 2  # one says that a record was refused
    assert found.offset.tolist() == [*range(0, 40, 2)]


def test_a_row_that_is_full_is_followed_by_another(spark: SparkSession) -> None:
    records = [((0, n, "f"), topic(2 * n)) for n in range(_MOST + 1)]
    packed, found = of_the_query(spark, records)
    assert packed == 2
    assert sorted(found.offset.tolist()) == [*range(_MOST + 1)]
    assert plain(found) == plain(in_python(records))
