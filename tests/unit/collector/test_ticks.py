"""The ticks of the collector that leads, on a log that is a list."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from controller.collector.ticks import TickWriter
from controller.model.errors import LeadershipLostError, LogOfflineError, TrimtabError
from controller.wire.chunks import Arrived
from tests.unit.collector.test_collector_roster import PERIOD, A, B, T, chunk, tick


class Log:
    """Gives what a test puts into ``new``; fails with ``failure``."""

    def __init__(self) -> None:
        self.new: list[Any] = []
        self.led_since: list[int] = []
        self.followed = 0
        self.ticks: dict[int, dict[str, str | None]] = {}
        self.failure: TrimtabError | None = None

    def lead(self, since_ms: int) -> None:
        self.led_since.append(since_ms)

    def follow(self) -> None:
        self.followed += 1

    def arrived(self) -> Iterator[Arrived]:
        new, self.new = self.new, []
        yield from (head if isinstance(head, Arrived) else Arrived(head, None) for head in new)

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        if self.failure is not None:
            raise self.failure
        self.ticks[interval] = dict(roster)


def leading(log: Log) -> TickWriter:
    writer = TickWriter("lab", PERIOD, log)  # type: ignore[arg-type]
    writer.take_over(T, [B, A])
    return writer


def test_who_takes_over_reads_the_log_from_a_period_and_a_minute_before() -> None:
    log = Log()
    log.new = [chunk(A)]
    writer = leading(log)
    assert log.led_since == [T - PERIOD - 60_000]
    assert writer.leads
    assert writer.active == (A, B)
    assert writer.missing(T) == (B,)
    writer.stop()
    assert not writer.leads
    assert log.followed == 1


def test_an_interval_that_is_not_ticked_is_kept_for_the_next_one_and_no_longer() -> None:
    log = Log()
    writer = leading(log)
    log.new = [chunk(A, sweep_id="1")]
    writer.read()
    writer.begin(T + PERIOD)
    assert writer.missing(T) == (B,)
    writer.begin(T + 2 * PERIOD)
    assert writer.missing(T) == (A, B)


def test_a_tick_lists_every_active_broker_and_ends_its_interval() -> None:
    log = Log()
    writer = leading(log)
    log.new = [chunk(A, sweep_id="1")]
    writer.read()
    assert not writer.ended(T)
    writer.end(T, anybody_asked=False)
    assert log.ticks == {T: {A: "1", B: None}}
    assert writer.ended(T)
    assert writer.ended(T - 1)
    assert not writer.ended(T + 1)


def test_the_log_says_how_many_brokers_an_interval_has(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    log = Log()
    writer = leading(log)
    writer.active = (A, B, "c:8080")
    log.new = [chunk(A, sweep_id="1")]
    writer.read()
    writer.end(T, anybody_asked=False)
    ended, missing = caplog.records[-2:]
    assert (ended.levelname, missing.levelname) == ("INFO", "DEBUG")
    assert "1 of 3 brokers" in ended.getMessage()
    assert missing.getMessage().endswith(f": {B}, c:8080")


def test_where_nothing_came_a_tick_is_written_if_somebody_was_asked() -> None:
    log = Log()
    writer = leading(log)
    assert writer.end(T, anybody_asked=False) == {}
    assert log.ticks == {}
    assert not writer.ended(T)
    writer.end(T, anybody_asked=True)
    assert log.ticks == {T: {A: None, B: None}}
    writer.active = ()
    writer.end(T + PERIOD, anybody_asked=True)
    assert list(log.ticks) == [T]


@pytest.mark.parametrize(
    ("failure", "leads"),
    [(LogOfflineError("away"), True), (LeadershipLostError("gone"), False), (TrimtabError(""), False)],
)
def test_who_cannot_say_that_its_tick_was_written_leads_no_longer(failure: TrimtabError, leads: bool) -> None:
    log = Log()
    writer = leading(log)
    log.failure = failure
    with pytest.raises(type(failure)):
        writer.end(T, anybody_asked=True)
    assert writer.leads == leads
    assert not writer.ended(T)


def test_chunks_that_are_passed_over_are_told_once_and_once_more_when_all_count_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    log = Log()
    writer = leading(log)
    for i, broker in enumerate(["stranger:8080", "stranger:8080", A]):
        log.new = [chunk(broker, interval=T + i * PERIOD)]
        writer.read()
        writer.end(T + i * PERIOD, anybody_asked=True)
    told = [record.message for record in caplog.records if "of sweeps in the metrics topic" in record.message]
    assert len(told) == 2
    assert "1 of brokers that are not active; one names broker 'stranger:8080'" in told[0]
    assert told[1].startswith("no more chunks of sweeps")


def test_who_takes_over_again_ends_no_interval_that_it_has_ended_but_those_before_that_the_log_does_not_count() -> None:
    log = Log()
    log.new = [tick(T - PERIOD)]
    writer = leading(log)
    for interval in (T, T + 60 * PERIOD):
        writer.end(interval, anybody_asked=True)
    assert writer.last == T + 60 * PERIOD
    log.new = [tick(T), Arrived(tick(T + 60 * PERIOD), T + PERIOD), chunk(A, interval=T + PERIOD, sweep_id="now")]
    writer.take_over(T + PERIOD, ())
    told = [writer.ended(T + n * PERIOD) for n in (-1, 0, 1, 59, 60, 61)]
    assert told == [True, True, False, False, True, False]
    assert writer.missing(T + PERIOD) == (B,)


def test_who_takes_over_again_still_knows_the_ticks_that_it_read_before() -> None:
    log = Log()
    log.new = [tick(T - PERIOD)]
    writer = leading(log)
    writer.stop()
    writer.take_over(T + PERIOD, ())  # the log holds the tick no more
    assert writer.last == T - PERIOD
    assert [writer.ended(T + n * PERIOD) for n in (-2, -1, 0)] == [True, True, False]


def test_of_very_many_ticks_the_oldest_are_not_known_one_by_one_and_all_before_them_count_as_ended() -> None:
    log = Log()
    writer = leading(log)
    for n in range(10, 1500):
        writer.end(T + n * PERIOD, anybody_asked=True)
    writer.take_over(T, ())
    assert [writer.ended(T + n * PERIOD) for n in (0, 59, 60, 1499, 1500)] == [True, True, True, True, False]


def test_a_tick_of_a_clock_that_was_ahead_ends_nothing_before_it_however_many_ticks_come_later() -> None:
    log = Log()
    writer = leading(log)
    ahead = T + 10_000 * PERIOD
    writer.end(ahead, anybody_asked=True)
    log.new = [Arrived(tick(ahead), T)]
    writer.take_over(T, ())
    for n in range(1500):
        writer.end(T + n * PERIOD, anybody_asked=True)
    assert [writer.ended(T + n * PERIOD) for n in (0, 1499, 1500, 10_000)] == [True, True, False, True]
