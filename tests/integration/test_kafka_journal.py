"""The journal and the log, on a real Kafka."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.journal_evidence import of_commands
from controller.adapters.kafka import journal as kafka_journal
from controller.adapters.kafka.journal import KafkaJournal, read_journal
from controller.adapters.kafka.log import KafkaCommandLog, KafkaDeadLetterLog, KafkaMetricsLog, create_topics
from controller.adapters.kafka.reader import KafkaRecord, read_all
from controller.adapters.kafka.tail import KafkaTail
from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.recent import entries_backwards
from controller.lab.servers import KafkaServer
from controller.model.errors import JournalError, LeadershipLostError, WireError
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.settings.log import KafkaLogSettings
from controller.strategies.common.usage_history import UsageHistory
from controller.wire.commands import EpochEvent, parse_event
from controller.wire.dead_letter import Source
from controller.wire.journal import encode_entry
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.results import decode_result
from tests.contracts.journal import JournalContract
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T, as_bytes, broker_sweep, dead_letter_of, result

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("kafka-journal")]

NEXT = T + PERIOD
PARTITIONS = 3


def nothing() -> None:
    pass


@pytest.fixture
def settings(kafka: KafkaServer) -> KafkaLogSettings:
    """Topics of their own for each test."""
    prefix = uuid4().hex
    return KafkaLogSettings(
        bootstrap=kafka.bootstrap,
        metrics_topic=f"{prefix}-metrics",
        results_topic=f"{prefix}-results",
        commands_topic=f"{prefix}-commands",
        journal_topic=f"{prefix}-journal",
        dead_letters_topic=f"{prefix}-dead-letters",
        partitions=PARTITIONS,
    )


class Place:
    """A journal in topics of its own."""

    module = kafka_journal

    def __init__(self, settings: KafkaLogSettings) -> None:
        self._settings = settings

    def journal(self) -> KafkaJournal:
        return KafkaJournal(self._settings, cluster=CLUSTER)

    def entries(self) -> list[JournalEntry]:
        return [*read_journal(self._settings, cluster=CLUSTER)]

    def events(self) -> list[bytes]:
        return [record.value for record in records(self._settings, self._settings.commands_topic)]


class TestKafkaJournal(JournalContract):
    @pytest.fixture
    def place(self, settings: KafkaLogSettings) -> Place:
        return Place(settings)


def opened(settings: KafkaLogSettings) -> KafkaJournal:
    journal = KafkaJournal(settings, cluster=CLUSTER)
    journal.open()
    return journal


def head(settings: KafkaLogSettings) -> JournalHead:
    return KafkaJournal(settings, cluster=CLUSTER).open()


def append(
    journal: KafkaJournal, what: JournalEntry, *, epoch: int = 1, before_commit: Callable[[], None] = nothing
) -> None:
    journal.append(what, epoch=epoch, issued_at_ms=T + 1, before_commit=before_commit)


def issued(settings: KafkaLogSettings) -> list[str]:
    return sorted(parse_event(record.value).id for record in records(settings, settings.commands_topic))


def records(settings: KafkaLogSettings, topic: str) -> list[KafkaRecord]:
    partitions = create_topics(settings, topic)[topic]
    return [record for each in range(partitions) for record in read_all(settings.bootstrap, topic, each)]


def uncommitted(settings: KafkaLogSettings) -> list[bytes]:
    """All that lies in the journal's topic, be it committed, aborted or neither."""
    client = {"isolation.level": "read_uncommitted"}
    return [record.value for record in read_all(settings.bootstrap, settings.journal_topic, 0, client=client)]


def test_the_head_is_found_behind_many_transactions(settings: KafkaLogSettings) -> None:
    journal = opened(settings)
    append(journal, entry(T), epoch=9)

    def refuse() -> None:
        raise ValueError("not now")

    for _ in range(120):
        with pytest.raises(ValueError, match="not now"):
            append(journal, entry(NEXT), epoch=9, before_commit=refuse)
    assert head(settings) == JournalHead(last=entry(T), epoch=9)


def test_journals_of_several_clusters_in_one_topic_do_not_mix(settings: KafkaLogSettings) -> None:
    append(opened(settings), entry(T), epoch=2)
    assert KafkaJournal(settings, cluster="other").open() == JournalHead(last=None, epoch=0)
    assert list(read_journal(settings, cluster="other")) == []


def test_an_entry_and_its_commands_appear_together(settings: KafkaLogSettings) -> None:
    def look() -> None:
        assert uncommitted(settings) == [encode_entry(entry(T, UNLOAD, SPLIT))], "only the commit is missing"
        assert issued(settings) == []

    journal = opened(settings)
    append(journal, entry(T, UNLOAD, SPLIT), before_commit=look)
    assert issued(settings) == [UNLOAD.id, SPLIT.id]
    assert list(read_journal(settings, cluster=CLUSTER)) == [entry(T, UNLOAD, SPLIT)]


def test_commands_lie_under_their_namespace_and_bear_epoch_and_time(settings: KafkaLogSettings) -> None:
    append(opened(settings), entry(T, UNLOAD, SPLIT), epoch=6)
    first, second = records(settings, settings.commands_topic)
    assert first.key == second.key == b"tenant/ns"
    assert first.partition == second.partition
    events = [parse_event(record.value) for record in (first, second)]
    assert {(event.epoch, event.time_ms) for event in events} == {(6, T + 1)}


def test_a_new_epoch_is_told_to_every_partition_of_the_commands(settings: KafkaLogSettings) -> None:
    opened(settings).begin_epoch(7)
    told = records(settings, settings.commands_topic)
    assert sorted(record.partition for record in told) == list(range(PARTITIONS))
    for record in told:
        event = parse_event(record.value)
        assert isinstance(event, EpochEvent)
        assert event.data.epoch == 7


def test_what_is_raised_before_the_commit_leaves_nothing_behind(settings: KafkaLogSettings) -> None:
    def lose() -> None:
        raise LeadershipLostError("another leads")

    journal = opened(settings)
    with pytest.raises(LeadershipLostError, match="another leads"):
        append(journal, entry(T, UNLOAD), before_commit=lose)
    assert issued(settings) == []
    append(journal, entry(T, SPLIT))
    assert issued(settings) == [SPLIT.id]
    assert list(read_journal(settings, cluster=CLUSTER)) == [entry(T, SPLIT)]


def test_who_loses_leadership_inside_a_transaction_leaves_the_journal_to_the_next(settings: KafkaLogSettings) -> None:
    def lose() -> None:
        raise LeadershipLostError("another leads")

    old = opened(settings)
    old.begin_epoch(1)
    with pytest.raises(LeadershipLostError, match="another leads"):
        append(old, entry(T, UNLOAD), before_commit=lose)
    assert encode_entry(entry(T, UNLOAD)) in uncommitted(settings), "aborted, though it was written whole"
    new = KafkaJournal(settings, cluster=CLUSTER)
    assert new.open() == JournalHead(last=None, epoch=1)
    new.begin_epoch(2)
    append(new, entry(T, SPLIT), epoch=2)
    assert list(read_journal(settings, cluster=CLUSTER)) == [entry(T, SPLIT)]
    with pytest.raises(LeadershipLostError):
        old.begin_epoch(3)
    assert head(settings) == JournalHead(last=entry(T, SPLIT), epoch=2)


def test_who_opens_the_journal_fences_off_who_had_it(settings: KafkaLogSettings) -> None:
    old = opened(settings)
    append(old, entry(T))
    new = opened(settings)
    with pytest.raises(LeadershipLostError):
        append(old, entry(NEXT, UNLOAD))
    append(new, entry(NEXT, SPLIT))
    assert issued(settings) == [SPLIT.id]
    assert head(settings).last == entry(NEXT, SPLIT)


def test_a_leader_fenced_off_between_its_check_and_its_commit_issues_nothing(settings: KafkaLogSettings) -> None:
    old = opened(settings)
    with pytest.raises(LeadershipLostError):
        append(old, entry(T, UNLOAD), before_commit=lambda: (opened(settings), None)[1])
    assert issued(settings) == []
    assert head(settings).last is None


CONTROLLER = """
import sys
from controller.adapters.kafka.journal import KafkaJournal
from controller.settings.log import KafkaLogSettings
from tests.contracts.journal import JournalContract
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, T

journal = KafkaJournal(KafkaLogSettings.model_validate_json(sys.argv[1]), cluster=CLUSTER)
journal.open()
journal.append(entry(T, UNLOAD), epoch=1, issued_at_ms=T, before_commit=lambda: None)
"""


def die_at(failpoint: str, settings: KafkaLogSettings) -> None:
    environment = {**os.environ, "TRIMTAB_FAILPOINT": failpoint, "PYTHONPATH": str(Path(__file__).parents[2])}
    arguments = [sys.executable, "-c", CONTROLLER, settings.model_dump_json()]
    ended = subprocess.run(arguments, env=environment, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL


def test_a_controller_killed_inside_its_transaction_has_issued_nothing(settings: KafkaLogSettings) -> None:
    die_at("inside-transaction", settings)
    assert uncommitted(settings) == [encode_entry(entry(T, UNLOAD))], "a transaction lies open"
    assert head(settings).last is None
    assert issued(settings) == []


def test_what_a_killed_controller_left_open_does_not_hold_up_the_next(settings: KafkaLogSettings) -> None:
    die_at("inside-transaction", settings)
    journal = opened(settings)
    append(journal, entry(T, SPLIT))
    assert issued(settings) == [SPLIT.id]
    assert head(settings).last == entry(T, SPLIT)


def test_a_controller_killed_after_its_commit_has_issued_everything(settings: KafkaLogSettings) -> None:
    die_at("after-commit", settings)
    assert head(settings).last == entry(T, UNLOAD)
    assert issued(settings) == [UNLOAD.id]


def test_a_journal_that_cannot_be_read_is_named_by_offset(settings: KafkaLogSettings) -> None:
    create_topics(settings)
    producer = TransactionalProducer(settings.bootstrap, f"{settings.journal_topic}-intruder")
    producer.init()
    with producer.transaction() as transaction:
        transaction.send(settings.journal_topic, b"{}", partition=0)
    with pytest.raises(JournalError, match="journal, offset 0: missing_field"):
        head(settings)


def test_what_is_wrong_with_records_of_other_clusters_in_the_topic_is_no_matter(settings: KafkaLogSettings) -> None:
    journal = opened(settings)
    journal.begin_epoch(3)
    producer = TransactionalProducer(settings.bootstrap, f"{settings.journal_topic}-other")
    producer.init()
    later = b'{"v":99,"cluster":"other","type":"decision","interval":1,"padding":"decision"}'
    odd = [
        (b"no JSON, decision", {"cluster": b"other"}),
        (later, {"cluster": b"other", "interval": b"soon", "epoch": b"many"}),
        (later, {}),
    ]
    with producer.transaction() as transaction:
        for value, headers in odd:
            transaction.send(settings.journal_topic, value, partition=0, headers=headers)
    append(journal, entry(T, UNLOAD), epoch=3)
    assert head(settings) == JournalHead(last=entry(T, UNLOAD), epoch=3)
    assert [*read_journal(settings, cluster=CLUSTER)] == [entry(T, UNLOAD)]
    tail = KafkaTail(settings).journal_tail(CLUSTER, 5, b"decision")
    assert ([decision.interval for decision in tail.decisions], tail.epoch) == ([T], 3)
    assert [read.record.interval for read in entries_backwards(KafkaTail(settings), CLUSTER)] == [T]
    opened(settings).prune(committed=T, before=T)


def test_the_end_of_the_commands_shows_what_the_journal_had_of_this_cluster_alone(settings: KafkaLogSettings) -> None:
    journal = opened(settings)
    journal.begin_epoch(3)
    append(journal, entry(T, UNLOAD, SPLIT), epoch=3)
    append(journal, entry(NEXT), epoch=3)
    other = KafkaJournal(settings, cluster="other")
    other.open()
    other.begin_epoch(9)
    other.append(entry(NEXT, replace(UNLOAD, cluster="other")), epoch=9, issued_at_ms=NEXT, before_commit=nothing)
    opened(settings).begin_epoch(4)
    found = [*of_commands(KafkaTail(settings), CLUSTER)]
    assert [(each.interval, each.epoch) for each in found] == [*[(None, 4)] * PARTITIONS, (T, 3)]


def test_whoever_stops_all_is_not_kept_from_it_by_what_the_journal_holds(settings: KafkaLogSettings) -> None:
    leader = opened(settings)
    leader.begin_epoch(6)
    producer = TransactionalProducer(settings.bootstrap, f"{settings.journal_topic}-intruder")
    producer.init()
    odd = [
        {"epoch": b"7", "cluster": b"other"},
        {"epoch": str(10**17).encode(), "cluster": CLUSTER.encode()},
        {"epoch": b"many"},
        {"epoch": b"9" * 30},
        {"cluster": b"\xff"},
        {},
    ]
    with producer.transaction() as transaction:
        for headers in odd:
            transaction.send(settings.journal_topic, b"{}", partition=0, headers=headers)
    stopping = KafkaJournal(settings, cluster=CLUSTER)
    assert stopping.fence() == 6
    stopping.begin_epoch(7)
    with pytest.raises(LeadershipLostError):
        append(leader, entry(T), epoch=6)


# ---- what changed, parts, pruning ----

HOUR = 3_600_000
#: Long beside the rest of an entry.
USAGE = UsageHistory(usage={f"broker-{number:03d}:8080": number / 7 for number in range(100)})


def hours(settings: KafkaLogSettings, count: int, cluster: str = CLUSTER) -> list[JournalEntry]:
    """The entries of as many hours, four an hour, with a new leader every hour."""
    written = []
    for hour in range(count):
        journal = KafkaJournal(settings, cluster=cluster)
        journal.open()
        journal.begin_epoch(hour + 1)
        for quarter in range(4):
            each = entry(T // HOUR * HOUR + hour * HOUR + quarter * 900_000, shedder=USAGE)
            written.append(replace(each, cluster=cluster))
            append(journal, written[-1], epoch=hour + 1)
    return written


def kinds(settings: KafkaLogSettings) -> list[str]:
    return [json.loads(record.value)["type"] for record in records(settings, settings.journal_topic)]


def test_entries_hold_what_changed_and_are_read_with_their_whole_memory(settings: KafkaLogSettings) -> None:
    written = hours(settings, 2)
    assert kinds(settings) == ["epoch", "decision", *["decision_delta"] * 3] * 2
    assert list(read_journal(settings, cluster=CLUSTER)) == written
    assert head(settings).last == written[-1]


def test_pruning_deletes_what_is_old_and_committed_and_what_no_cluster_needs(settings: KafkaLogSettings) -> None:
    written = hours(settings, 4)
    last = written[-1].interval
    before = head(settings)
    opened(settings).prune(committed=last, before=written[10].interval)
    assert list(read_journal(settings, cluster=CLUSTER)) == written[8:]
    opened(settings).prune(committed=written[9].interval, before=last + HOUR)
    assert list(read_journal(settings, cluster=CLUSTER)) == written[8:]
    opened(settings).prune(committed=last + HOUR, before=last + HOUR)
    assert list(read_journal(settings, cluster=CLUSTER)) == written[12:]
    assert head(settings) == before


def test_pruning_keeps_what_another_cluster_in_the_topic_needs(settings: KafkaLogSettings) -> None:
    others = hours(settings, 2, cluster="other")
    written = hours(settings, 2)
    opened(settings).prune(committed=written[-1].interval, before=written[-1].interval)
    assert list(read_journal(settings, cluster="other")) == others[4:]
    assert list(read_journal(settings, cluster=CLUSTER)) == written


def test_an_entry_of_many_megabytes_is_journalled_in_parts_below_kafkas_usual_limit(settings: KafkaLogSettings) -> None:
    limit = TopicSpec(name=settings.journal_topic, partitions=1, config={"max.message.bytes": "1048588"})
    ensure_topics(settings.bootstrap, [limit])
    in_flight = {f"command-{number:06d}": entry().memory.in_flight["c-1"] for number in range(40_000)}
    large = entry(T, UNLOAD, in_flight=in_flight)
    append(opened(settings), large)
    assert head(settings).last == large
    assert list(read_journal(settings, cluster=CLUSTER)) == [large]
    assert issued(settings) == [UNLOAD.id]


# ---- the log ----


def test_ticks_are_written_to_every_partition_and_the_roster_to_the_first_alone(settings: KafkaLogSettings) -> None:
    log = KafkaMetricsLog(settings, cluster=CLUSTER)
    log.publish([("broker-1:8080", as_bytes(broker_sweep()))])
    log.results([("tenant/ns", as_bytes(result()))])
    log.tick(T, {"b:1": None, "a:1": "sweep"})
    rosters = {}
    for partition in range(PARTITIONS):
        *_, last = read_all(settings.bootstrap, settings.metrics_topic, partition)
        tick = decode_metric(last.value, cluster=CLUSTER, period_ms=PERIOD)
        assert isinstance(tick, TickRecord)
        assert (tick.interval, tick.partitions.metrics, tick.partitions.results) == (T, PARTITIONS, PARTITIONS)
        rosters[partition] = tick.roster and [(each.broker, each.sweep_id) for each in tick.roster]
        *_, last = read_all(settings.bootstrap, settings.results_topic, partition)
        answer = decode_result(last.value, cluster=CLUSTER, period_ms=PERIOD)
        assert isinstance(answer, TickRecord)
        assert answer.roster is None
    assert rosters == {0: [("a:1", "sweep"), ("b:1", None)], 1: None, 2: None}


def test_records_of_a_broker_stay_together_and_in_order(settings: KafkaLogSettings) -> None:
    log = KafkaMetricsLog(settings, cluster=CLUSTER)
    log.publish((f"broker-{i % 5}:8080", b"%d" % i) for i in range(50))
    found = records(settings, settings.metrics_topic)
    assert len(found) == 50
    for broker in range(5):
        own = [record for record in found if record.key == f"broker-{broker}:8080".encode()]
        assert len({record.partition for record in own}) == 1
        assert [int(record.value) for record in own] == list(range(broker, 50, 5))


def test_each_poll_gives_the_commands_that_are_new(settings: KafkaLogSettings) -> None:
    log, journal = KafkaCommandLog(settings), opened(settings)
    polled: list[str] = []

    def poll_until(count: int) -> None:
        deadline = time.monotonic() + 30
        while len(polled) < count and time.monotonic() < deadline:
            polled.extend(parse_event(event).id for event in log.poll())

    append(journal, entry(T, UNLOAD))
    poll_until(1)
    append(journal, entry(NEXT, SPLIT))
    poll_until(2)
    assert polled == [UNLOAD.id, SPLIT.id]
    assert log.poll() == []
    log.close()


def test_a_dead_letter_lies_under_the_place_it_came_from(settings: KafkaLogSettings) -> None:
    letter = dead_letter_of(b"?", WireError("not_json"), Source(topic=settings.metrics_topic, partition=2, offset=5))
    KafkaDeadLetterLog(settings).write(0, [letter])
    (record,) = records(settings, settings.dead_letters_topic)
    assert record.key == f"{settings.metrics_topic}/2/5".encode()
    assert b'"not_json"' in record.value
