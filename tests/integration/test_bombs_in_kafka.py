"""Batches in Kafka that unpack to far more than they weigh: every reader goes on behind them, in bounded memory."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.lab.servers import KafkaServer
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.commands import epoch_event
from tests.bombs import Codec, Part, append, batch
from tests.contracts.collectors import CHUNK
from tests.journal_entries import entry
from tests.kafka_log import collector_in, inbox_in, journal_in, named_topics, own_topics, read_all, read_journal
from tests.records import CLUSTER, T

pytestmark = pytest.mark.integration

_MB = 1 << 20
_SIZE = 200 * _MB
#: What a process may take that reads them, MB: the limit of an executor in deploy/kubernetes.
_MOST_MB = 256
CODECS: tuple[Codec, ...] = ("zstd", "gzip", "lz4")
BOMBS: dict[str, tuple[list[Part], Codec]] = {
    **{codec: ([Part(size=_SIZE)], codec) for codec in CODECS},
    "snappy": ([Part(size=18 * _MB)], "snappy"),
    "a hundred that would fit each": ([Part(size=7 * _MB)] * 100, "zstd"),
    "a key": ([Part(key=_SIZE, value=b"{}")], "zstd"),
    "a header": ([Part(header=_SIZE, value=b"{}")], "zstd"),
    "between good ones": ([Part(value=b"before"), Part(size=_SIZE), Part(value=b"behind")], "zstd"),
}


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    """Topics of the test's own, as trimtab makes them."""
    return own_topics(kafka.bootstrap, 1)


def as_others_make_them(log: KafkaLogSettings) -> KafkaLogSettings:
    """The metrics and the result topic with Kafka's defaults."""
    specs = [TopicSpec(name=name, partitions=1) for name in (log.metrics_topic, log.results_topic)]
    ensure_topics(log.bootstrap, specs)
    return log


def write(log: KafkaLogSettings, topic: str, value: bytes) -> None:
    producer = Producer(log.bootstrap)
    producer.send(topic, value, partition=0)
    producer.flush()


def plant(log: KafkaLogSettings, topic: str, names: list[str] | None = None) -> dict[str, int]:
    """Every bomb in *topic*, and a good record before each; what -> its offset."""
    places = {}
    for what in names or BOMBS:
        write(log, topic, what.encode())
        places[what] = append(log.bootstrap, topic, 0, batch(*BOMBS[what]))
    return places


def python(code: str, *arguments: str, timeout: float = 400) -> list[Any]:
    """What the program *code* prints last, as JSON."""
    command = [sys.executable, "-c", code, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=os.environ)
    assert run.returncode == 0, run.stderr[-3000:]
    found: list[Any] = json.loads(run.stdout.splitlines()[-1])
    return found


_READ = """
import json, sys
from pathlib import Path
from tests.kafka_log import read_all
found = [[record.position, record.value[:40].decode()] for record in read_all(sys.argv[1], sys.argv[2], 0)]
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(json.dumps([found, int(peak.split()[1]) >> 10]))
"""


def test_a_reader_goes_on_behind_each_in_the_memory_of_any_other(log: KafkaLogSettings) -> None:
    places = plant(log, log.commands_topic)
    write(log, log.commands_topic, b"the end")
    read, memory_mb = python(_READ, log.bootstrap, log.commands_topic)
    assert [value for _, value in read] == [*BOMBS, "the end"]
    assert [offset + 1 for offset, _ in read[:-1]] == [*places.values()]
    assert memory_mb < _MOST_MB


def test_every_record_of_up_to_16_mib_is_read(log: KafkaLogSettings) -> None:
    sizes = [number * _MB for number in range(1, 16)]
    for size in sizes:
        append(log.bootstrap, log.commands_topic, 0, batch([Part(size=size)], "zstd"))
    read = [len(record.value) for record in read_all(log.bootstrap, log.commands_topic, 0)]
    assert read == sizes


def test_many_batches_that_fit_each_are_not_all_unpacked_at_once(log: KafkaLogSettings) -> None:
    small = batch([Part(size=7 * _MB)], "zstd")
    for _ in range(100):
        append(log.bootstrap, log.commands_topic, 0, small)
    read, memory_mb = python(_READ, log.bootstrap, log.commands_topic)
    assert len(read) == 100
    assert memory_mb < _MOST_MB


def test_each_that_is_skipped_is_logged_with_its_offsets_its_size_and_why(
    log: KafkaLogSettings, caplog: pytest.LogCaptureFixture
) -> None:
    places = plant(log, log.results_topic, ["zstd", "a hundred that would fit each"])
    assert [record.value for record in read_all(log.bootstrap, log.results_topic, 0)] == [
        b"zstd",
        b"a hundred that would fit each",
    ]
    one, many = caplog.messages
    first = places["a hundred that would fit each"]
    assert f"{log.results_topic}', partition 0: skipping the batch of offsets 1 to 1" in one
    assert f"skipping the batch of offsets {first} to {first + 99}" in many
    assert "of 6" in one
    assert "bytes failed" in one


def test_a_reader_begins_in_the_middle_of_one_and_ends_where_it_is_the_last(log: KafkaLogSettings) -> None:
    first = append(log.bootstrap, log.results_topic, 0, batch([Part(size=7 * _MB)] * 10, "zstd"))
    assert list(read_all(log.bootstrap, log.results_topic, 0, first + 4)) == []
    write(log, log.results_topic, b"behind")
    assert [each.value for each in read_all(log.bootstrap, log.results_topic, 0, first + 4)] == [b"behind"]


def test_what_another_transaction_left_behind_one_is_read_as_ever(log: KafkaLogSettings) -> None:
    producer = TransactionalProducer(log.bootstrap, uuid4().hex)
    producer.init()
    for number in range(2):
        with suppress(ValueError), producer.transaction() as transaction:
            transaction.send(log.results_topic, b"aborted", partition=0)
            raise ValueError("aborted")
        append(log.bootstrap, log.results_topic, 0, batch([Part(size=7 * _MB)] * 10, "zstd"))
        with producer.transaction() as transaction:
            transaction.send(log.results_topic, b"%d" % number, partition=0)
    assert [each.value for each in read_all(log.bootstrap, log.results_topic, 0)] == [b"0", b"1"]


@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_of_trimtabs_holds_nothing_that_unpacks_without_a_limit(log: KafkaLogSettings, codec: Codec) -> None:
    append(log.bootstrap, log.metrics_topic, 0, batch([Part(size=_SIZE)], codec))
    [records, memory_mb] = python(_READ, log.bootstrap, log.metrics_topic)
    assert records == []
    assert memory_mb < _MOST_MB


def test_a_batch_that_is_longer_than_trimtabs_is_refused_by_the_broker(log: KafkaLogSettings) -> None:
    with pytest.raises(OSError, match="error 10"):
        append(log.bootstrap, log.metrics_topic, 0, batch([Part(value=os.urandom(2 * _MB))], "none"))


def test_what_was_written_before_the_topic_was_limited_is_skipped_if_it_is_too_long(
    kafka: KafkaServer, caplog: pytest.LogCaptureFixture
) -> None:
    log = as_others_make_them(named_topics(kafka.bootstrap, 1))
    plant(log, log.metrics_topic, ["gzip", "lz4", "snappy"])
    write(log, log.metrics_topic, b"the end")
    read = [record.value for record in read_all(log.bootstrap, log.metrics_topic, 0)]
    assert read == [b"gzip", b"lz4", b"snappy", b"the end"]
    assert f"skipping the record at offset 1: it has {_SIZE} bytes" in caplog.messages[0]


def test_an_executor_takes_the_commands_behind_one(log: KafkaLogSettings) -> None:
    plant(log, log.commands_topic, ["zstd", "between good ones"])
    event = epoch_event(CLUSTER, 7, T)
    write(log, log.commands_topic, event)
    options = ExecutorSettings(group=log.commands_topic, session_timeout_seconds=6)
    inbox = inbox_in(log, options, cluster=CLUSTER)
    try:
        taken: list[bytes] = []
        deadline = time.monotonic() + 60
        while event not in taken and time.monotonic() < deadline:
            taken += [each.value for each in inbox.poll(16, 0.2)]
        assert taken == [b"zstd", b"between good ones", event]
    finally:
        inbox.close()


def test_a_collector_sees_the_sweeps_behind_one(log: KafkaLogSettings) -> None:
    collector = collector_in(log, cluster=CLUSTER)
    collector.publish([CHUNK], 10)
    append(log.bootstrap, log.metrics_topic, 0, batch([Part(size=_SIZE)], "zstd"))
    collector.publish([CHUNK], 10)
    collector.lead(0)
    try:
        assert len([*collector.arrived()]) == 2
        collector.tick(T, {})
    finally:
        collector.close()


def test_a_time_at_which_the_broker_cannot_unpack_one_is_found_before_it(log: KafkaLogSettings) -> None:
    write(log, log.metrics_topic, b"long before")
    time.sleep(1.2)
    append(log.bootstrap, log.metrics_topic, 0, batch([Part(size=1400 * _MB)], "zstd"))
    write(log, log.metrics_topic, b"behind")
    first, *_, last = read_all(log.bootstrap, log.metrics_topic, 0)
    collector = collector_in(log, cluster=CLUSTER)
    collector.lead(first.timestamp_ms + 1)
    try:
        assert [*collector.arrived()] == []
        assert last.value == b"behind"
    finally:
        collector.close()


def test_a_controller_opens_its_journal_behind_one(log: KafkaLogSettings) -> None:
    journal = journal_in(log, cluster=CLUSTER)
    journal.open()
    journal.append(entry(T), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    append(log.bootstrap, log.journal_topic, 0, batch([Part(size=7 * _MB)] * 100, "zstd"))
    head = journal_in(log, cluster=CLUSTER).open()
    assert head.last is not None
    assert head.last.interval == T
    assert [each.interval for each in read_journal(log, cluster=CLUSTER)] == [T]


_SPARK = """
import json, sys
from pathlib import Path
from controller.adapters.disk import jars
from controller.aggregate.columns.rows import METRICS
from controller.aggregate.places import Span
from controller.settings.log import KafkaLogSettings
from streaming.dead_letters import DeadLetters
from streaming.decode import rows
from streaming.sources import kafka_options, kafka_records, kafka_records_again
from streaming.spark.session import start_session
from tests.integration.test_rows_in_spark_and_python import _OPTIONS

folder, log, options = Path(sys.argv[1]), KafkaLogSettings.model_validate(json.loads(sys.argv[2])), _OPTIONS
spark = start_session("local[2]", 1, {"spark.driver.memory": "512m"}, jars.fetch("connector"), folder)
given = kafka_options(log, 16 << 20)

class Letters(list):
    def write(self, batch, letters, *, part=0):
        self += [[each.source.offset, each.size, each.reason, each.detail] for each in letters]

stream = kafka_records(spark, log, given, max_offsets=int(sys.argv[3]), now_ms=0)
found, refused = [], []
def sink(batch, number):
    batch.persist()
    found.extend(row["offset"] for row in rows(batch, options).collect())
    refused.extend(row["offset"] for row in batch.where("refusal is not null").collect())
    batch.unpersist()
query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder / "checkpoint"))
query.trigger(availableNow=True).start().awaitTermination()
letters = Letters()
spans = [Span(METRICS, 0, "", 0, max(found))]
DeadLetters(letters, options, {}, lambda spans: kafka_records_again(spark, log, given, spans)).store_suspects(spans, 0)
print(json.dumps([sorted(found), sorted(refused), sorted(letters)]))
spark.stop()
"""


@pytest.mark.parametrize("at_once", [7, 1_000_000])
def test_spark_reads_on_and_each_is_a_dead_letter_with_its_place_its_size_and_why(
    kafka: KafkaServer, tmp_path: Path, at_once: int
) -> None:
    log = as_others_make_them(named_topics(kafka.bootstrap, 1))
    places = plant(log, log.metrics_topic)
    write(log, log.metrics_topic, b"the end")
    read, skipped, letters = python(
        _SPARK, str(tmp_path), log.model_dump_json(include={*log.model_fields_set}), str(at_once)
    )
    assert skipped == [*places.values()]
    refused = {offset: (size, reason, detail) for offset, size, reason, detail in letters}
    for what, offset in places.items():
        parts, codec = BOMBS[what]
        size, reason, detail = refused[offset]
        assert (size, reason) == (len(batch(parts, codec)), "too_large")
        assert detail == (
            f"a batch of the offsets {offset} to {offset + len(parts) - 1}: {size:,d} bytes ({codec}), which unpack to"
            " more than 16,777,216 bytes"
        )
        assert offset - 1 in read
    assert len(letters) == 2 * len(BOMBS) + 1  # the good records between them are no JSON
