"""Spark reads a log in a real Pulsar: every message once, whatever happens to query, partitions and brokers."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pulsar as pulsar_client
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from controller.adapters.network.waiting import wait_for
from controller.adapters.pulsar.log.client import log_client, log_http, partition_name, topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import LogExtents
from controller.adapters.pulsar.log.topics import create_topics
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span
from controller.lab.pulsar_server import PulsarCluster
from controller.log.pulsar.backlog import backlog
from controller.log.pulsar.log import PulsarLog
from controller.log.ticked import LogTickWatch
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.base import encode
from controller.wire.metrics import Partitions, TickRecord
from streaming.batches.catching_up import offset_read
from streaming.pulsar.log import pulsar_records, pulsar_records_again
from streaming.pulsar.options import PulsarOptions

pytestmark = pytest.mark.integration

Row = tuple[int, int, int, bytes]
T = 1_732_000_020_000


class LogApi(LogExtents):
    """What an administrator does to the log."""

    def post(self, path: str, body: object = None, method: str = "POST") -> None:
        self._call(method, f"/admin/v2/{path}", {}, body=json.dumps(body).encode())


class Sink:
    """Keeps the rows of each batch; fails once with the batch *fails*, after it has seen it."""

    def __init__(self, fails: int = -1) -> None:
        self.batches: dict[int, list[Row]] = {}
        self.fails = fails

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        found = batch.select("source", "partition", "offset", "value").toArrow().to_pylist()
        self.batches[batch_id] = [(row["source"], row["partition"], row["offset"], row["value"]) for row in found]
        if batch_id == self.fails:
            raise RuntimeError("as if killed")

    @property
    def rows(self) -> list[Row]:
        return [row for _, batch in sorted(self.batches.items()) for row in batch]


class Writer:
    """Writes messages that are all different, and knows them."""

    def __init__(self, log: PulsarLogSettings, client: pulsar_client.Client) -> None:
        self._log, self._client = log, client
        self.sent: dict[tuple[int, int], list[bytes]] = {}

    def write(self, source: int, partition: int, number: int, *, size: int = 20, **options: Any) -> None:
        topic = {METRICS: self._log.metrics_topic, RESULTS: self._log.results_topic}[source]
        name = partition_name(topic_name(self._log, topic), partition)
        producer = self._client.create_producer(name, block_if_queue_full=True, **options)
        sent = self.sent.setdefault((source, partition), [])
        failed: list[object] = []
        for _ in range(number):
            value = b"%d/%d/%d " % (source, partition, len(sent)) + b"x" * size
            sent.append(value)
            producer.send_async(value, lambda result, _: failed.append(result) if result.value else None)
        producer.flush()
        producer.close()
        assert not failed

    def check(self, rows: Sequence[Row]) -> None:
        """*rows* are all that was written, once, and in order within a partition."""
        for place, values in self.sent.items():
            assert [value for *at, _, value in rows if tuple(at) == place] == values
        assert len(rows) == sum(map(len, self.sent.values()))
        for source, partition in self.sent:
            offsets = [offset for s, p, offset, _ in rows if (s, p) == (source, partition)]
            assert offsets == sorted(set(offsets))


@pytest.fixture
def log(pulsar: PulsarCluster) -> PulsarLogSettings:
    settings = PulsarLogSettings(
        service_url=pulsar.service_url,
        admin_url=pulsar.admin_urls,
        namespace=f"public/source-{uuid4().hex[:8]}",
        partitions=2,
        start_at="earliest",
    )
    with closing(LogConnection(settings)) as connection:
        create_topics(connection)
    return settings


@pytest.fixture
def writer(log: PulsarLogSettings) -> Iterator[Writer]:
    with closing(log_client(log)) as client:
        yield Writer(log, client)


def read(spark: SparkSession, log: PulsarLogSettings, folder: Path, sink: Sink, most: int = 1_000_000) -> None:
    """Read all that there is."""
    records = pulsar_records(spark, PulsarOptions(log=log, max_entries=most))
    query = records.writeStream.option("checkpointLocation", str(folder)).foreachBatch(sink)
    query.trigger(availableNow=True).start().awaitTermination()


def test_every_message_is_read_once(
    spark: SparkSession, log: PulsarLogSettings, writer: Writer, tmp_path: Path
) -> None:
    writer.write(
        METRICS,
        0,
        1_000,
        batching_enabled=True,
        batching_max_messages=256,
        compression_type=pulsar_client.CompressionType.LZ4,
    )
    writer.write(METRICS, 1, 9, size=100_000, compression_type=pulsar_client.CompressionType.ZSTD)
    sink = Sink(fails=1)
    with closing(log_http(log, api=LogApi)) as http:
        with pytest.raises(StreamingQueryException, match="as if killed"):
            read(spark, log, tmp_path, sink, most=4)
        seen = sink.batches[1]
        # Its ledger ends, and another broker may have the topic now; and there are more partitions.
        http.post(f"persistent/{log.namespace}/{log.metrics_topic}-partition-0/unload", method="PUT")
        http.post(f"persistent/{log.namespace}/{log.metrics_topic}/partitions", 3)
    writer.write(METRICS, 2, 5)
    writer.write(METRICS, 0, 30, batching_enabled=True, batching_max_messages=7)
    writer.write(RESULTS, 1, 3)
    sink.fails = -1
    read(spark, log, tmp_path, sink)
    assert sink.batches[1] == seen, "a batch that is repeated has the same rows"
    assert len(sink.batches) > 2
    writer.check(sink.rows)

    offsets = [offset for source, partition, offset, _ in sink.rows if (source, partition) == (METRICS, 0)]
    spans = [Span(METRICS, 0, "", offsets[100], offsets[1_010])]
    again = pulsar_records_again(spark, log, spans).collect()
    assert [bytes(row.value) for row in again] == writer.sent[METRICS, 0][100:1_011]
    assert pulsar_records_again(spark, log, []).collect() == []


def test_what_retention_took_is_said_and_the_rest_is_read(
    spark: SparkSession, log: PulsarLogSettings, writer: Writer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with closing(log_http(log, api=LogApi)) as http:
        # The cursor of deduplication would hold what is written until the broker takes its next snapshot.
        http.post(f"namespaces/{log.namespace}/deduplication", False)
        writer.write(METRICS, 0, 3)
        read(spark, log, tmp_path, Sink())
        writer.write(METRICS, 0, 4)
        http.post(f"namespaces/{log.namespace}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
        partition = f"persistent/{log.namespace}/{log.metrics_topic}-partition-0"
        http.post(f"{partition}/unload", method="PUT")

        def trimmed() -> bool:
            http.post(f"{partition}/trim")
            return http.extent(topic_name(log, log.metrics_topic), 0).entries == 0

        wait_for(trimmed, 30, every=0.2)
    writer.sent.clear()
    writer.write(METRICS, 0, 2)
    sink = Sink()
    read(spark, log, tmp_path, sink)
    writer.check(sink.rows)
    told = f"{topic_name(log, log.metrics_topic)}, partition 0: retention may have deleted entries"
    wait_for(lambda: told in caplog.text, 10, every=0.1)


def test_ticks_are_seen_at_once_and_counted_from_where_the_query_is(
    spark: SparkSession, log: PulsarLogSettings, writer: Writer, tmp_path: Path
) -> None:
    with (
        closing(log_client(log)) as client,
        closing(LogTickWatch(lambda: PulsarLog(log, cluster="lab"), cluster="lab")) as watch,
    ):
        producer = client.create_producer(partition_name(topic_name(log, log.results_topic), 0))

        def tick(interval: int) -> bool:
            producer.send(
                encode(TickRecord(cluster="lab", interval=interval, partitions=Partitions(metrics=2, results=2)))
            )
            watch.wait(0.2)
            return watch.newest == interval

        wait_for(lambda: tick(T), 10, every=0.01)
        read(spark, log, tmp_path, Sink())
        for nth in range(1, 4):
            tick(T + nth * 60_000)
    writer.write(METRICS, 0, 2, batching_enabled=False)
    ahead = backlog(log, cluster="lab", period_ms=60_000, read=offset_read(spark, str(tmp_path)), now_ms=0)
    assert (ahead.intervals, ahead.offsets) == (3, 5)
    assert backlog(log, cluster="lab", period_ms=60_000, read=None, now_ms=0).intervals == 4
