"""Which micro-batches a query on a log in Pulsar reads, and what it says of what is gone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.log.ends import BrokersClock, read_extent
from controller.adapters.pulsar.log.offsets import LogOffset
from controller.adapters.pulsar.log.planner import Planner
from controller.adapters.pulsar.log.positions import BEGINNING, Entry
from controller.adapters.pulsar.log.ranges import Ledgers, LedgerSize, Place
from controller.model.errors import StateError, TrimtabError

TOPIC = "persistent://public/trimtab/metrics"
HERE, THERE = (TOPIC, 0), (TOPIC, 1)
NOW_MS = 1_000_000


def extent(*ledgers: tuple[int, int]) -> Ledgers:
    return Ledgers(ledgers=tuple(LedgerSize(*each) for each in ledgers), bytes=1_000)


def at(**read: Entry) -> LogOffset:
    places = {"here": HERE, "there": THERE}
    return LogOffset(time_ms=5, read={places[name]: entry for name, entry in read.items()})


@dataclass
class Log:
    """A log whose contents a test changes."""

    holds: Mapping[Place, Ledgers]
    error: Exception | None = None
    warnings: list[str] = field(default_factory=list)
    looks: int = 0

    def look(self) -> Mapping[Place, Ledgers]:
        self.looks += 1
        if self.error:
            raise self.error
        return self.holds

    def planner(self, patience_seconds: float = 60.0) -> Planner:
        return Planner(
            self.look,
            [TOPIC],
            now_ms=lambda: NOW_MS,
            warn=self.warnings.append,
            patience_seconds=patience_seconds,
        )


def test_a_batch_ends_where_the_log_ends_and_knows_when_that_was() -> None:
    log = Log({HERE: extent((3, 5)), THERE: extent((4, 2))})
    planner = log.planner()
    end = planner.next(at(here=Entry(3, 1)), None)
    assert end == LogOffset(time_ms=NOW_MS, read={HERE: Entry(3, 4), THERE: Entry(4, 1)})
    assert planner.all_read(end)
    assert planner.next(end, None) is None
    assert not log.warnings


def test_a_limited_batch_leaves_the_rest_to_the_next_one() -> None:
    log = Log({HERE: extent((3, 100)), THERE: extent((4, 50))})
    planner = log.planner()
    end = planner.next(at(), 15)
    assert end is not None
    assert end.read == {HERE: Entry(3, 9), THERE: Entry(4, 4)}
    assert not planner.all_read(end)


def test_the_ranges_of_a_batch_are_what_lies_between_its_offsets() -> None:
    log = Log({HERE: extent((3, 300), (7, 10)), THERE: extent((4, 50))})
    planner = log.planner()
    start, end = at(here=Entry(3, 297), there=Entry(4, 49)), at(here=Entry(7, 3), there=Entry(4, 49))
    planner.next(start, None)
    [only] = planner.ranges(start, end)
    assert (only.topic, only.partition, only.after, only.until) == (TOPIC, 0, Entry(3, 297), Entry(7, 3))
    assert only.entries == 6
    assert only.back == Entry(3, 197)
    assert only.entry_bytes == 1_000 // 310
    assert log.looks == 1, "what was looked at a moment ago is not asked for again"


def test_a_batch_that_an_earlier_process_planned_is_read_the_same() -> None:
    log = Log({HERE: extent((3, 100)), THERE: extent((4, 50))})
    first, second = log.planner(), log.planner()
    start = at(here=Entry(3, 10))
    end = first.next(start, 30)
    assert end is not None
    log.holds = {HERE: extent((3, 200)), THERE: extent((4, 90))}
    again = {(each.partition, each.after, each.until, each.entries) for each in second.ranges(start, end)}
    assert again == {(each.partition, each.after, each.until, each.entries) for each in first.ranges(start, end)}


def test_a_partition_that_is_added_is_read_from_its_beginning() -> None:
    log = Log({HERE: extent((3, 5))})
    planner = log.planner()
    start = at(here=Entry(3, 4))
    assert planner.next(start, None) is None
    log.holds = {HERE: extent((3, 5)), THERE: extent((9, 2))}
    end = planner.next(start, None)
    assert end is not None
    assert [(each.partition, each.after, each.entries) for each in planner.ranges(start, end)] == [(1, BEGINNING, 2)]


def test_a_query_that_ends_reads_nothing_that_comes_later() -> None:
    log = Log({HERE: extent((3, 5))})
    planner = log.planner()
    planner.end_here()
    log.holds = {HERE: extent((3, 50)), THERE: extent((9, 2))}
    end = planner.next(at(), 3)
    assert end is not None
    assert end.read[HERE] == Entry(3, 2)
    end = planner.next(end, 300)
    assert end is not None
    assert end.read == {HERE: Entry(3, 4)}
    assert planner.next(end, 300) is None


def test_what_retention_took_is_said_once() -> None:
    log = Log({HERE: extent((3, 5), (4, 7), (6, 0))})
    planner = log.planner()
    start = at(here=Entry(3, 1))
    planner.next(start, None)
    log.holds = {HERE: extent((6, 2))}
    for _ in range(3):
        end = planner.next(start, None)
    assert end is not None
    assert end.read[HERE] == Entry(6, 1)
    assert len(log.warnings) == 1
    assert "at least 10 entries that were not read, after 3:1 and before 6:0" in log.warnings[0]


def test_an_idle_partition_whose_read_ledgers_go_one_by_one_misses_nothing() -> None:
    log = Log({})
    planner = log.planner()
    start = at(here=Entry(3, 4))
    for ledgers in ([(3, 5), (4, 0)], [(4, 0)], [(4, 0), (7, 0)], [(7, 0), (9, 0)], [(9, 3)]):
        log.holds = {HERE: extent(*ledgers)}
        end = planner.next(start, None)
    assert end is not None
    assert end.read[HERE] == Entry(9, 2)
    assert not log.warnings


def test_a_log_that_was_created_anew_is_not_taken_for_the_one_that_was_read() -> None:
    planner = Log({HERE: extent((3, 5))}).planner(patience_seconds=0)
    planner.next(at(here=Entry(900, 1)), None)
    with pytest.raises(StateError, match=r"partition 0 ends at 3:4, but was read up to 900:1"):
        planner.next(at(here=Entry(900, 1)), None)


def test_a_broker_that_has_lost_a_partition_and_still_answers_only_delays() -> None:
    log = Log({HERE: extent((3, 5))})
    planner = log.planner()
    start = at(here=Entry(3, 9))
    assert planner.next(start, None) is None
    log.holds = {HERE: extent((3, 10), (5, 1))}
    end = planner.next(start, None)
    assert end is not None
    assert end.read[HERE] == Entry(5, 0)


def test_the_checkpoint_of_other_topics_is_refused() -> None:
    planner = Log({HERE: extent((3, 5))}).planner()
    with pytest.raises(StateError, match=r"persistent://other/x/y, but \[log.pulsar\] names " + re.escape(TOPIC)):
        planner.next(LogOffset(time_ms=1, read={("persistent://other/x/y", 0): Entry(1, 1)}), None)


def test_an_api_that_does_not_answer_for_a_moment_only_delays() -> None:
    log = Log({HERE: extent((3, 5))}, error=PulsarError("no connection", sent=False))
    planner = log.planner()
    assert planner.next(at(), None) is None
    assert not planner.is_answered
    log.error = None
    assert planner.next(at(), None) is not None
    assert planner.is_answered


def test_an_api_that_never_answers_is_an_error_after_a_while() -> None:
    planner = Log({}, error=PulsarError("no connection", sent=False)).planner(patience_seconds=0)
    assert planner.next(at(), None) is None
    with pytest.raises(TrimtabError, match="the end of the log in Pulsar: no connection"):
        planner.next(at(), None)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_an_error_at_once(status: int) -> None:
    planner = Log({}, error=PulsarError("refused", status=status)).planner()
    with pytest.raises(TrimtabError, match="refused"):
        planner.next(at(), None)


def test_a_query_that_ends_does_not_end_early_because_the_api_is_silent() -> None:
    log = Log({HERE: extent((3, 5))})
    planner = log.planner()
    planner.end_here()
    log.error = PulsarError("no connection", sent=False)
    with pytest.raises(PulsarError):
        planner.next(at(), None)


def test_the_open_ledger_is_as_long_as_the_last_confirmed_entry_says() -> None:
    stats = {
        "lastConfirmedEntry": "4:6",
        "totalSize": 900,
        "ledgers": [{"ledgerId": 3, "entries": 5, "size": 1}, {"ledgerId": 4, "entries": 0, "size": 0}],
    }
    assert read_extent(stats, "x") == Ledgers(ledgers=(LedgerSize(3, 5), LedgerSize(4, 7)), bytes=900)


def test_an_empty_ledger_after_the_last_confirmed_entry_is_empty() -> None:
    stats = {"lastConfirmedEntry": "3:4", "ledgers": [{"ledgerId": 3, "entries": 0}, {"ledgerId": 4, "entries": 0}]}
    assert read_extent(stats, "x").end == Entry(3, 4)


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"lastConfirmedEntry": "3:4"},
        {"lastConfirmedEntry": "x", "ledgers": []},
        {"lastConfirmedEntry": "3:4", "ledgers": [{"entries": 1}]},
        {"lastConfirmedEntry": "3:4", "ledgers": 7},
        {"lastConfirmedEntry": "3:4", "ledgers": [{"ledgerId": None, "entries": 1}]},
    ],
)
def test_an_answer_without_ledgers_is_an_error_that_shows_it(stats: dict[str, object]) -> None:
    with pytest.raises(PulsarError, match="GET x: expected ledgers and lastConfirmedEntry"):
        read_extent(stats, "x")


def test_the_time_is_that_of_the_broker_that_answered_last() -> None:
    clock = BrokersClock()
    own = clock.now_ms
    clock.hear("Sun, 22 Nov 2026 20:15:05 GMT")
    assert clock.now_ms == 1_795_378_505_999 != own
    for nonsense in (None, "", "yesterday", "Sun, 99 Nov 2026 20:15:05 GMT", "x" * 10_000):
        clock.hear(nonsense)
        assert clock.now_ms == 1_795_378_505_999
    clock.hear("Sun, 22 Nov 2026 20:15:04 GMT")
    assert clock.now_ms == 1_795_378_504_999
