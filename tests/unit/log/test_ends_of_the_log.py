"""The end of the log, the whole journal, and whose they are."""

from collections.abc import Sequence

import pytest

from controller.log.journal_reading import JournalReader
from controller.log.memory import MemoryLog
from controller.log.port import LogRecord, LogTopic, Out, Position
from controller.log.tail import LogTail, newest_first
from controller.model.errors import AnotherClusterError, DamagedJournalError, JournalError
from controller.wire.journal import encode_entry
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T
from tests.unit.log.places import MemoryPlace


def place(*, partitions: int = 1) -> MemoryPlace:
    return MemoryPlace(atomic=True, seed=7, partitions=partitions)


class Counting(MemoryLog):
    """Counts what is read backwards."""

    windows = 0

    def read_backwards(
        self, topic: LogTopic, partition: int, before: Position | None, about: int
    ) -> Sequence[LogRecord]:
        found = super().read_backwards(topic, partition, before, about)
        self.windows += len(found)
        return found


def decide(there: MemoryPlace, intervals: int, *, epoch: int = 7) -> None:
    journal = there.journal()
    journal.open()
    journal.begin_epoch(epoch)
    for number in range(intervals):
        journal.append(entry(T + number * PERIOD, UNLOAD), epoch=epoch, issued_at_ms=T, before_commit=lambda: None)


def end(there: MemoryPlace, cluster: str | None = CLUSTER) -> LogTail:
    return LogTail(there.connect, cluster=cluster, endless=True)


def test_the_newest_records_of_all_partitions_come_first() -> None:
    there = place(partitions=3)
    clock = iter(range(1_000_000))
    there.server.now_ms = lambda: next(clock)
    log = there.connect()
    for number in range(300):
        log.append([Out("metrics", b"%d" % number, partition=number * number % 3)], within_seconds=1.0)
    assert [record.value for record in newest_first(log, "metrics")] == [b"%d" % each for each in range(299, -1, -1)]
    assert [*end(there).backwards("metrics", (b"77", b"123"))] == [b"277", b"177", b"123", b"77"]


def test_who_stops_soon_has_read_little() -> None:
    there = place()
    log = Counting(there.server)
    log.append((Out("metrics", b"%d" % each) for each in range(10_000)), within_seconds=1.0)
    records = newest_first(log, "metrics")
    assert [next(records).value for _ in range(3)] == [b"9999", b"9998", b"9997"]
    assert log.windows < 200


def test_long_records_are_read_a_few_at_a_time() -> None:
    there = place()
    log = Counting(there.server)
    log.append((Out("metrics", bytes(4 << 20)) for _ in range(100)), within_seconds=1.0)
    records, largest, before = newest_first(log, "metrics"), 0, 0
    for _ in range(64):
        next(records)
    for _ in range(30):
        before = log.windows
        next(records)
        largest = max(largest, log.windows - before)
    assert largest <= 8


def test_where_nothing_was_written_nothing_is_found_and_no_topic_is_created() -> None:
    there = place()
    assert [*end(there).backwards("metrics", (b"",))] == []
    assert end(there).last_entry() is None
    assert (end(there).journal_tail(5, b"").decisions, end(there).journal_tail(5, b"").epoch) == ((), 0)
    assert not there.connect().ends("metrics")


def test_the_newest_decisions_are_found_with_the_newest_leadership() -> None:
    there = place()
    decide(there, 30)
    found = end(there).journal_tail(10, b"")
    assert [each.interval for each in found.decisions] == [T + number * PERIOD for number in range(29, 19, -1)]
    assert found.epoch == 7
    assert len(end(there).journal_tail(50, b"").decisions) == 30
    last = end(there).last_entry()
    assert last == there.entries()[-1]


def test_decisions_without_the_text_count_among_those_that_are_looked_at() -> None:
    there = place()
    decide(there, 30)
    newest, earlier = (b'"interval":%d' % (T + number * PERIOD) for number in (29, 10))
    assert [each.interval for each in end(there).journal_tail(10, newest).decisions] == [T + 29 * PERIOD]
    assert end(there).journal_tail(10, earlier).decisions == ()


def test_another_clusters_journal_is_refused_by_name_and_its_leader_goes_on() -> None:
    there = place()
    leader = there.journal()
    leader.open()
    leader.begin_epoch(1)
    for ask in (
        there.journal("other").open,
        there.journal("other").fence,
        end(there, "other").last_entry,
        lambda: end(there, "other").journal_tail(1, b""),
        lambda: [*JournalReader(there.connect(), "other").entries()],
    ):
        with pytest.raises(AnotherClusterError, match=f"about cluster '{CLUSTER}': give cluster 'other'"):
            ask()
    leader.append(entry(T, UNLOAD), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    assert [each.interval for each in there.entries()] == [T]
    assert end(there, None).last_entry() == entry(T, UNLOAD)


def test_a_record_of_another_cluster_in_the_midst_of_the_journal_is_refused() -> None:
    there = place()
    decide(there, 1)
    value = encode_entry(entry(T)).replace(CLUSTER.encode(), b"other")
    there.connect().append([Out("journal", value, headers={"cluster": b"other"})], within_seconds=1.0)
    decide_again = there.journal()
    with pytest.raises(AnotherClusterError):
        decide_again.open()


@pytest.mark.parametrize(
    ("value", "headers", "said"),
    [
        (b"no JSON", {}, "journal, partition 0, position [0-9]+: .*damaged"),
        (encode_entry(entry(T)), {"epoch": b"-1"}, "journal, partition 0, position [0-9]+: header epoch is b'-1'"),
    ],
)
def test_a_damaged_record_is_named_by_its_place(value: bytes, headers: dict[str, bytes], said: str) -> None:
    there = place()
    cluster = {"cluster": CLUSTER.encode()}
    there.connect().append([Out("journal", value, headers=cluster | headers)], within_seconds=1.0)
    with pytest.raises(DamagedJournalError, match=said):
        there.journal().open()
    assert there.journal().fence() == 0


def test_a_journal_that_was_not_opened_writes_nothing() -> None:
    there = place()
    with pytest.raises(JournalError, match="not open"):
        there.journal().begin_epoch(1)
    assert there.entries() == []
