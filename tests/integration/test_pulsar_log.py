"""The ports of the log on a real Pulsar."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

import pytest

from controller.adapters.pulsar.log import reader as reader_module
from controller.adapters.pulsar.log import tail as pulsar_tail
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.inbox import PulsarInbox
from controller.adapters.pulsar.log.log import PulsarCommandLog, PulsarDeadLetterLog, PulsarMetricsLog
from controller.adapters.pulsar.log.reader import read_rest
from controller.adapters.pulsar.log.sequenced import Numbered, SequencedWriter, WriteTarget
from controller.adapters.pulsar.log.tail import PulsarTail
from controller.adapters.pulsar.log.ticks import PulsarCollectorLog
from controller.adapters.pulsar.log.topics import create_topics
from controller.adapters.pulsar.log.writer import Outgoing, TopicWriter
from controller.lab.pulsar_server import PulsarCluster
from controller.model.errors import LeadershipLostError
from controller.ports.systems import ReadTopic
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.base import read_object
from controller.wire.commands import epoch_event
from tests.contracts.collectors import CHUNK, CollectorLogContract, arrived
from tests.contracts.collectors import NEXT as NEXT_INTERVAL
from tests.contracts.collectors import T as INTERVAL
from tests.contracts.inbox import InboxContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.integration.pulsar_log import PARTITIONS, own_topics
from tests.records import CLUSTER, T

pytestmark = pytest.mark.integration


class Place:
    """A log in topics of its own."""

    partitions = PARTITIONS

    def __init__(self, settings: PulsarLogSettings, opened: ExitStack) -> None:
        self.settings, self._opened = settings, opened
        self.connection = opened.enter_context(closing(LogConnection(settings)))
        create_topics(self.connection)

    def metrics(self) -> PulsarMetricsLog:
        return self._opened.enter_context(closing(PulsarMetricsLog(self.settings, cluster=CLUSTER)))

    def commands(self) -> PulsarCommandLog:
        return self._opened.enter_context(closing(PulsarCommandLog(self.settings)))

    def dead_letters(self) -> PulsarDeadLetterLog:
        return PulsarDeadLetterLog(self.settings)

    def log(self) -> PulsarCollectorLog:
        return self._opened.enter_context(closing(PulsarCollectorLog(self.settings, cluster=CLUSTER)))

    def inbox(self) -> PulsarInbox:
        group = ExecutorSettings(group=self.settings.commands_topic, session_timeout_seconds=6)
        return self._opened.enter_context(closing(PulsarInbox(self.settings, group, cluster=CLUSTER)))

    def issue(self, *events: bytes) -> None:
        self._write([Outgoing("tenant/ns", event) for event in events])

    def begin_epoch(self, epoch: int) -> None:
        self._write([Outgoing("", epoch_event(CLUSTER, epoch, T), each) for each in range(PARTITIONS)])

    def records(self, topic: ReadTopic, partition: int) -> list[bytes]:
        name = self.settings.metrics_topic if topic == "metrics" else self.settings.results_topic
        return self._values(name, partition)

    def results(self) -> list[bytes]:
        [found] = [values for each in range(PARTITIONS) if (values := self.records("results", each))] or [[]]
        return found

    def letters(self) -> list[bytes]:
        return self._values(self.settings.dead_letters_topic, 0)

    def _values(self, name: str, partition: int) -> list[bytes]:
        return [record.value for record in read_rest(self.connection, name, partition)]

    def _write(self, records: list[Outgoing]) -> None:
        with closing(TopicWriter(self.connection, self.settings.commands_topic)) as writer:
            writer.append(records, partitions=PARTITIONS)


@pytest.fixture
def place(pulsar: PulsarCluster) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(own_topics(pulsar), opened)


class TestPulsarMetricsLog(MetricsLogContract):
    pass


class TestPulsarCommandLog(CommandLogContract):
    pass


class TestPulsarDeadLetterLog(DeadLetterLogContract):
    pass


class TestPulsarInbox(InboxContract):
    pass


class TestPulsarCollectorLog(CollectorLogContract):
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
    with pytest.raises(LeadershipLostError):
        old.tick(NEXT_INTERVAL, {"a:8080": "hung"})
    new.tick(NEXT_INTERVAL, {"a:8080": None})
    for topic in ("metrics", "results"):
        for partition in range(PARTITIONS):
            ticks = [read_object(value) for value in place.records(topic, partition)]
            assert [each["interval"] for each in ticks] == [INTERVAL, NEXT_INTERVAL]
    rosters = [read_object(value)["roster"] for value in place.records("metrics", 0)]
    assert [entry["sweepId"] for roster in rosters for entry in roster] == [None, None]


def test_a_tick_that_a_writer_did_not_finish_is_finished_by_the_next_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = place.log(), place.log()
    old.lead(INTERVAL)
    calls: list[None] = []
    whole = SequencedWriter.write

    def dies_behind_one(self: SequencedWriter, records: Sequence[tuple[WriteTarget, Sequence[Numbered]]]) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(None)
        whole(self, records)

    with monkeypatch.context() as patched:
        patched.setattr(SequencedWriter, "write", dies_behind_one)
        with pytest.raises(KeyboardInterrupt):
            old.tick(INTERVAL, {"a:8080": "sweep"})
    assert place.records("metrics", 0) == []
    assert len(place.records("results", 0)) == 1
    new.lead(INTERVAL)
    for topic in ("metrics", "results"):
        for partition in range(PARTITIONS):
            assert [read_object(value)["interval"] for value in place.records(topic, partition)] == [INTERVAL]
    [first] = place.records("metrics", 0)
    assert read_object(first)["roster"] == [{"broker": "a:8080", "sweepId": "sweep"}]


def test_the_newest_records_come_first_from_all_partitions_whatever_the_stretches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulsar_tail, "_FIRST_MS", 20)
    monkeypatch.setattr(pulsar_tail, "_MANY", 2)
    log = place.metrics()
    for nth in range(12):
        log.publish([(f"broker-{nth % 3}:8080", b'{"nth":%d}' % nth)])
    tail = PulsarTail(place.settings)
    assert [*tail.backwards("metrics", (b"",))] == [b'{"nth":%d}' % nth for nth in reversed(range(12))]
    assert [*tail.backwards("metrics", (b":3}", b":11}"))] == [b'{"nth":11}', b'{"nth":3}']
    assert [*tail.backwards("results", (b"",))] == []


def test_a_sweep_whose_producer_says_a_time_far_in_the_future_counts_as_of_now(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = place.log()
    log.lead(INTERVAL)
    real = reader_module._record
    monkeypatch.setattr(
        reader_module, "_record", lambda *given: real(*given)._replace(timestamp_ms=(1 << 62) + INTERVAL)
    )
    log.publish([CHUNK], 30.0)
    [found] = arrived(log, 1)
    assert found.append_ms is not None
    assert found.append_ms < INTERVAL + 3_600_000
    assert [*PulsarTail(place.settings).backwards("metrics", (b"",))] == [CHUNK[1]]
