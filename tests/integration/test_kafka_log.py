"""The log in Kafka, as writers, readers, executors and collectors see it: the contracts of its ports, and fencing."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from controller.adapters.kafka.inbox import KafkaInbox
from controller.adapters.kafka.log import KafkaCommandLog, KafkaDeadLetterLog, KafkaMetricsLog
from controller.adapters.kafka.reader import Reader, read_all
from controller.adapters.kafka.records import KafkaRecords
from controller.adapters.kafka.ticks import KafkaCollectorLog
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.adapters.network.waiting import wait_for
from controller.adapters.recordings.reading import Recording
from controller.lab.servers import KafkaServer
from controller.model.errors import LeadershipLostError, TrimtabError
from controller.offline.record import Wanted, record
from controller.ports.records import StoredRecord
from controller.ports.systems import ReadTopic
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.base import read_object
from controller.wire.commands import epoch_event
from controller.wire.metrics import TickRecord
from tests.contracts.collectors import CHUNK, CollectorLogContract, arrived
from tests.contracts.collectors import NEXT as NEXT_INTERVAL
from tests.contracts.collectors import T as INTERVAL
from tests.contracts.inbox import InboxContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.contracts.midway import knows_what_was_known_and_begins_behind_the_ticks, write_intervals
from tests.integration.execute import PARTITIONS, own_topics
from tests.recordings import SETTINGS
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.integration


class Place:
    """A log in topics of its own."""

    partitions = PARTITIONS

    def __init__(self, settings: KafkaLogSettings, opened: ExitStack) -> None:
        self._settings, self._opened = settings, opened

    def metrics(self) -> KafkaMetricsLog:
        return KafkaMetricsLog(self._settings, cluster=CLUSTER)

    def commands(self) -> KafkaCommandLog:
        log = KafkaCommandLog(self._settings)
        self._opened.callback(log.close)
        return log

    def dead_letters(self) -> KafkaDeadLetterLog:
        return KafkaDeadLetterLog(self._settings)

    def log(self) -> KafkaCollectorLog:
        log = KafkaCollectorLog(self._settings, cluster=CLUSTER)
        self._opened.callback(log.close)
        return log

    def inbox(self) -> KafkaInbox:
        group = ExecutorSettings(group=self._settings.commands_topic, session_timeout_seconds=6)
        inbox = KafkaInbox(self._settings, group, cluster=CLUSTER)
        self._opened.callback(inbox.close)
        return inbox

    def issue(self, *events: bytes) -> None:
        producer = Producer(self._settings.bootstrap)
        for event in events:
            producer.send(self._settings.commands_topic, event, key=b"tenant/ns")
        producer.flush()

    def begin_epoch(self, epoch: int) -> None:
        producer = Producer(self._settings.bootstrap)
        for partition in range(PARTITIONS):
            producer.send(self._settings.commands_topic, epoch_event(CLUSTER, epoch, T), partition=partition)
        producer.flush()

    def records(self, topic: ReadTopic, partition: int) -> list[bytes]:
        name = self._settings.metrics_topic if topic == "metrics" else self._settings.results_topic
        return self._values(name, partition)

    def results(self) -> list[bytes]:
        [found] = [values for each in range(PARTITIONS) if (values := self.records("results", each))] or [[]]
        return found

    def letters(self) -> list[bytes]:
        return self._values(self._settings.dead_letters_topic, 0)

    def _values(self, topic: str, partition: int) -> list[bytes]:
        return [record.value for record in read_all(self._settings.bootstrap, topic, partition)]


@pytest.fixture
def place(kafka: KafkaServer) -> Iterator[Place]:
    settings = own_topics(kafka.bootstrap)
    # A topic is listed a moment before its partitions have a leader.
    topics = (settings.metrics_topic, settings.results_topic)
    wait_for(lambda: all(_has_leaders(settings, topic) for topic in topics), 30, every=0.1)
    with ExitStack() as opened:
        yield Place(settings, opened)


def _has_leaders(settings: KafkaLogSettings, topic: str) -> bool:
    try:
        Reader(settings.bootstrap, topic, since_ms=0).close()
    except TrimtabError:
        return False
    return True


class TestKafkaMetricsLog(MetricsLogContract):
    pass


class TestKafkaCommandLog(CommandLogContract):
    pass


class TestKafkaDeadLetterLog(DeadLetterLogContract):
    pass


class TestKafkaInbox(InboxContract):
    pass


class TestKafkaCollectorLog(CollectorLogContract):
    pass


def test_who_only_follows_publishes_too(place: Place) -> None:
    leader, other = place.log(), place.log()
    leader.lead(INTERVAL)
    other.follow()
    other.publish([CHUNK], 30.0)
    assert [each.head.interval for each in arrived(leader, 1)] == [INTERVAL]


def test_who_takes_the_ticks_over_fences_who_wrote_them(place: Place) -> None:
    old, new = place.log(), place.log()
    old.lead(INTERVAL)
    old.tick(INTERVAL, {"a:8080": None})
    new.lead(INTERVAL)
    assert [each.head.interval for each in new.arrived() if isinstance(each.head, TickRecord)] == [
        INTERVAL
    ] * PARTITIONS
    with pytest.raises(LeadershipLostError):
        old.tick(NEXT_INTERVAL, {"a:8080": "hung"})
    new.tick(NEXT_INTERVAL, {"a:8080": None})
    for topic in ("metrics", "results"):
        for partition in range(PARTITIONS):
            ticks = [read_object(value) for value in place.records(topic, partition)]
            assert [each["interval"] for each in ticks] == [INTERVAL, NEXT_INTERVAL]
    rosters = [read_object(value)["roster"] for value in place.records("metrics", 0)]
    assert [entry["sweepId"] for roster in rosters for entry in roster] == [None, None]


def test_who_begins_to_lead_finds_what_came_before_it_led_but_nothing_from_long_ago(place: Place) -> None:
    place.metrics().tick(PERIOD, {})
    time.sleep(0.5)
    since = time.time_ns() // 1_000_000
    time.sleep(0.5)
    place.metrics().tick(2 * PERIOD, {})
    log = place.log()
    log.lead(since)
    assert {each.head.interval for each in log.arrived() if isinstance(each.head, TickRecord)} == {2 * PERIOD}


def test_a_recording_holds_the_committed_records_byte_for_byte(kafka: KafkaServer, tmp_path: Path) -> None:
    settings = own_topics(kafka.bootstrap)
    name, producer = settings.metrics_topic, Producer(settings.bootstrap)
    for number in range(12):
        value = bytes([number]) * number + b"\x00\r\n"
        producer.send(name, value, key=b"k%d" % (number % 3), partition=number % PARTITIONS, headers={"h": b"\xff"})
        producer.flush()
    writer = TransactionalProducer(settings.bootstrap, name, settings.client)
    writer.init()
    with writer.transaction() as transaction:
        transaction.send(name, b"committed", partition=0)
    with suppress(ZeroDivisionError), writer.transaction() as transaction:
        transaction.send(name, b"aborted", partition=0)
        raise ZeroDivisionError
    log = KafkaRecords(settings)
    record(log, tmp_path / "rec", Wanted(), SETTINGS, CLUSTER)
    recording = Recording(tmp_path / "rec")
    held = [*recording.read("metrics", recording.extents("metrics"))]
    live = [each for partition in range(PARTITIONS) for each in read_all(settings.bootstrap, name, partition)]
    assert len(held) == 13
    assert sorted(held) == sorted(
        StoredRecord(each.partition, each.offset, each.timestamp_ms, each.key, each.value, tuple(each.headers.items()))
        for each in live
    )
    assert [each.timestamp_ms for each in held] == sorted(each.timestamp_ms for each in held)
    middle = held[6]
    since = log.since("metrics", middle.timestamp_ms)
    # Two records of a partition may have the same millisecond.
    later = [
        each.offset for each in held if each.partition == middle.partition and each.timestamp_ms >= middle.timestamp_ms
    ]
    assert since[middle.partition] == min(later) <= middle.offset
    ends = {partition: extent.end for partition, extent in log.extents("metrics").items()}
    assert log.since("metrics", middle.timestamp_ms + 3_600_000) == ends


def test_a_recording_from_the_midst_of_a_run_knows_what_was_known_and_begins_behind_the_ticks(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    settings = own_topics(kafka.bootstrap)
    write_intervals(KafkaMetricsLog(settings, cluster=CLUSTER))
    knows_what_was_known_and_begins_behind_the_ticks(KafkaRecords(settings), tmp_path / "rec")
