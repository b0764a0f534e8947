"""What stands on the port of the log, in a real Kafka: the contracts, crashes in a transaction, recordings."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import StoredRecord
from controller.lab.servers import KafkaServer
from controller.log.inbox import Inbox
from controller.log.journal import LogJournal
from controller.log.kafka.log import KafkaLog
from controller.log.port import LogRecord, Out
from controller.log.records import LogRecords
from controller.model.errors import AnotherClusterError, JournalError, LeadershipLostError
from controller.model.journal import JournalEntry, JournalHead
from controller.offline.record import RecordRequest, record
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.commands import EpochEvent, epoch_event, parse_event
from controller.wire.journal import encode_entry
from controller.wire.journal_records import Decided, EntryReader
from tests.commands import T as COMMANDS_T
from tests.contracts.collectors import CollectorLogContract
from tests.contracts.inbox import InboxContract
from tests.contracts.journal import JournalContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.contracts.midway import knows_what_was_known_and_begins_behind_the_ticks, write_intervals
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.kafka_log import PARTITIONS, journal_in, metrics_in, named_topics, own_topics, read_all, read_journal
from tests.recordings import SETTINGS
from tests.records import CLUSTER, PERIOD, T
from tests.unit.log.places import Place

pytestmark = pytest.mark.integration

NEXT = T + PERIOD


class KafkaPlace(Place):
    """In topics of its own."""

    partitions = PARTITIONS

    def __init__(self, settings: KafkaLogSettings) -> None:
        super().__init__(self._connect)
        self._settings, self._logs = settings, list[KafkaLog]()

    def _connect(self) -> KafkaLog:
        executor = ExecutorSettings(group=self._settings.commands_topic, session_timeout_seconds=6)
        self._logs.append(KafkaLog(self._settings, cluster=CLUSTER, executor=executor))
        return self._logs[-1]

    def entries(self) -> list[JournalEntry]:
        """Also while a transaction is open."""
        reader = EntryReader(CLUSTER)
        read = [reader.read(each.value) for each in committed(self._settings, self._settings.journal_topic)]
        return [each.entry for each in read if isinstance(each, Decided)]

    def events(self) -> list[bytes]:
        """Also while a transaction is open."""
        return [each.value for each in committed(self._settings, self._settings.commands_topic, PARTITIONS)]

    def inbox(self) -> Inbox:
        self._inboxes.append(Inbox(self._connect(), group=self._settings.commands_topic, cluster=CLUSTER))
        return self._inboxes[-1]

    def begin_epoch(self, epoch: int) -> None:
        with closing(self._connect()) as log:
            outs = [
                Out("commands", epoch_event(CLUSTER, epoch, COMMANDS_T), partition=each) for each in range(PARTITIONS)
            ]
            log.append(outs, within_seconds=30.0)

    def close(self) -> None:
        """The test is over."""
        for inbox in self._inboxes:
            inbox.close()
        for log in self._logs:
            log.close()


def committed(settings: KafkaLogSettings, topic: str, partitions: int = 1) -> list[LogRecord]:
    return [each for partition in range(partitions) for each in read_all(settings.bootstrap, topic, partition)]


@pytest.fixture
def settings(kafka: KafkaServer) -> KafkaLogSettings:
    return own_topics(kafka.bootstrap)


@pytest.fixture
def place(settings: KafkaLogSettings) -> Iterator[KafkaPlace]:
    with closing(KafkaPlace(settings)) as opened:
        yield opened


class TestJournal(JournalContract):
    pass


class TestCollectorLog(CollectorLogContract):
    pass


class TestMetricsLog(MetricsLogContract):
    pass


class TestCommandLog(CommandLogContract):
    pass


class TestDeadLetterLog(DeadLetterLogContract):
    pass


class TestInbox(InboxContract):
    pass


# ---- the journal ----


def opened(settings: KafkaLogSettings) -> LogJournal:
    journal = journal_in(settings, cluster=CLUSTER)
    journal.open()
    return journal


def head(settings: KafkaLogSettings) -> JournalHead:
    return journal_in(settings, cluster=CLUSTER).open()


def append(
    journal: LogJournal, what: JournalEntry, *, epoch: int = 1, before_commit: Callable[[], None] = lambda: None
) -> None:
    journal.append(what, epoch=epoch, issued_at_ms=T + 1, before_commit=before_commit)


def issued(settings: KafkaLogSettings) -> list[str]:
    """The ids of all commands."""
    events = [parse_event(each.value) for each in committed(settings, settings.commands_topic, PARTITIONS)]
    return sorted(event.id for event in events if not isinstance(event, EpochEvent))


def uncommitted(settings: KafkaLogSettings) -> list[bytes]:
    """All that lies in the journal's topic, be it committed, aborted or neither."""
    client = {"isolation.level": "read_uncommitted"}
    return [each.value for each in read_all(settings.bootstrap, settings.journal_topic, 0, client=client)]


def lose() -> None:
    raise LeadershipLostError("another leads")


def test_the_head_is_found_behind_many_transactions(settings: KafkaLogSettings) -> None:
    journal = opened(settings)
    append(journal, entry(T), epoch=9)
    for _ in range(120):
        with pytest.raises(LeadershipLostError, match="another leads"):
            append(journal, entry(NEXT), epoch=9, before_commit=lose)
    assert head(settings) == JournalHead(last=entry(T), epoch=9)


def test_the_journal_of_another_cluster_is_refused_and_its_leader_goes_on(settings: KafkaLogSettings) -> None:
    journal = opened(settings)
    append(journal, entry(T), epoch=2)
    with pytest.raises(AnotherClusterError, match=f"{settings.journal_topic} is about cluster '{CLUSTER}'"):
        journal_in(settings, cluster="other").open()
    with pytest.raises(AnotherClusterError, match="give cluster 'other' a log of its own"):
        read_journal(settings, cluster="other")
    append(journal, entry(NEXT), epoch=2)


def test_an_entry_and_its_commands_appear_together(settings: KafkaLogSettings) -> None:
    def look() -> None:
        assert uncommitted(settings) == [encode_entry(entry(T, UNLOAD, SPLIT))], "only the commit is missing"
        assert issued(settings) == []

    journal = opened(settings)
    append(journal, entry(T, UNLOAD, SPLIT), before_commit=look)
    assert issued(settings) == [UNLOAD.id, SPLIT.id]
    assert read_journal(settings, cluster=CLUSTER) == [entry(T, UNLOAD, SPLIT)]


def test_a_leader_fenced_off_between_its_check_and_its_commit_issues_nothing(settings: KafkaLogSettings) -> None:
    old = opened(settings)
    with pytest.raises(LeadershipLostError):
        append(old, entry(T, UNLOAD), before_commit=lambda: (opened(settings), None)[1])
    assert issued(settings) == []
    assert head(settings).last is None


CONTROLLER = """
import sys
from controller.settings.log import KafkaLogSettings
from tests.journal_entries import UNLOAD, entry
from tests.kafka_log import journal_in
from tests.records import CLUSTER, T

journal = journal_in(KafkaLogSettings.model_validate_json(sys.argv[1]), cluster=CLUSTER)
journal.open()
journal.append(entry(T, UNLOAD), epoch=1, issued_at_ms=T, before_commit=lambda: None)
"""


def die_at(failpoint: str, settings: KafkaLogSettings) -> None:
    environment = {**os.environ, "TRIMTAB_FAILPOINT": failpoint, "PYTHONPATH": str(Path(__file__).parents[2])}
    arguments = [sys.executable, "-c", CONTROLLER, settings.model_dump_json()]
    ended = subprocess.run(arguments, env=environment, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL


def test_a_controller_killed_inside_its_transaction_has_issued_nothing_and_holds_up_nobody(
    settings: KafkaLogSettings,
) -> None:
    die_at("inside-transaction", settings)
    assert uncommitted(settings) == [encode_entry(entry(T, UNLOAD))], "a transaction lies open"
    journal = journal_in(settings, cluster=CLUSTER)
    assert journal.open().last is None
    append(journal, entry(T, SPLIT))
    assert issued(settings) == [SPLIT.id]
    assert head(settings).last == entry(T, SPLIT)


def test_a_controller_killed_after_its_commit_has_issued_everything(settings: KafkaLogSettings) -> None:
    die_at("after-commit", settings)
    assert head(settings).last == entry(T, UNLOAD)
    assert issued(settings) == [UNLOAD.id]


def intrude(settings: KafkaLogSettings, *headers: dict[str, bytes]) -> None:
    """Records in the journal that no controller wrote."""
    producer = Producer(settings.bootstrap)
    for each in headers:
        producer.send(settings.journal_topic, b"{}", partition=0, headers=each)
    producer.flush()


def test_a_record_of_the_journal_that_cannot_be_read_is_named_by_its_place(settings: KafkaLogSettings) -> None:
    intrude(settings, {"cluster": CLUSTER.encode()})
    with pytest.raises(JournalError, match=f"'{settings.journal_topic}', partition 0, offset 0: missing_field"):
        head(settings)


def test_whoever_stops_all_is_not_kept_from_it_by_what_the_journal_holds(settings: KafkaLogSettings) -> None:
    leader = opened(settings)
    leader.begin_epoch(6)
    ours = {"cluster": CLUSTER.encode()}
    intrude(settings, {"epoch": b"%d" % 10**17} | ours, {"epoch": b"many"}, {"epoch": b"9" * 30}, {}, ours)
    stopping = journal_in(settings, cluster=CLUSTER)
    assert stopping.fence() == 6
    stopping.begin_epoch(7)
    with pytest.raises(LeadershipLostError):
        append(leader, entry(T), epoch=6)


def test_an_entry_of_many_megabytes_is_journalled_in_parts_below_kafkas_usual_limit(kafka: KafkaServer) -> None:
    settings = named_topics(kafka.bootstrap)
    limit = TopicSpec(name=settings.journal_topic, partitions=1, config={"max.message.bytes": "1048588"})
    ensure_topics(settings.bootstrap, [limit])
    in_flight = {f"command-{number:06d}": entry().memory.in_flight["c-1"] for number in range(40_000)}
    large = entry(T, UNLOAD, in_flight=in_flight)
    append(opened(settings), large)
    assert head(settings).last == large
    assert read_journal(settings, cluster=CLUSTER) == [large]
    assert issued(settings) == [UNLOAD.id]


# ---- recordings ----


def test_a_recording_holds_the_committed_records_byte_for_byte(settings: KafkaLogSettings, tmp_path: Path) -> None:
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
    with closing(KafkaLog(settings, cluster=CLUSTER)) as connected:
        log = LogRecords(connected, where="Kafka")
        record(log, tmp_path / "rec", RecordRequest(), SETTINGS, CLUSTER)
        recording = Recording(tmp_path / "rec")
        found = [*recording.read("metrics", recording.extents("metrics"))]
        assert len(found) == 13
        assert sorted(found) == sorted(
            StoredRecord(
                each.partition,
                each.position,
                each.timestamp_ms,
                each.key or None,
                each.value,
                tuple(each.headers.items()),
            )
            for each in committed(settings, name, PARTITIONS)
        )
        assert [each.timestamp_ms for each in found] == sorted(each.timestamp_ms for each in found)
        middle = found[6]
        since = log.since("metrics", middle.timestamp_ms)
        # Two records of a partition may have the same millisecond.
        in_partition = [each for each in found if each.partition == middle.partition]
        later = [each.offset for each in in_partition if each.timestamp_ms >= middle.timestamp_ms]
        assert since[middle.partition] == min(later) <= middle.offset
        ends = {partition: extent.end for partition, extent in log.extents("metrics").items()}
        assert log.since("metrics", middle.timestamp_ms + 3_600_000) == ends


def test_a_recording_from_the_midst_of_a_run_knows_what_was_known_and_begins_behind_the_ticks(
    settings: KafkaLogSettings, tmp_path: Path
) -> None:
    write_intervals(metrics_in(settings, cluster=CLUSTER))
    with closing(KafkaLog(settings, cluster=CLUSTER)) as log:
        knows_what_was_known_and_begins_behind_the_ticks(LogRecords(log, where="Kafka"), tmp_path / "rec")
