"""The ticks of the collector that leads, on a log that is a list."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from controller.collector.ticks import TickWriter
from controller.model.errors import LeadershipLostError, LogOfflineError, TrimtabError
from controller.wire.chunks import Arrived
from tests.unit.collector.test_collector_roster import PERIOD, A, B, T, chunk


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
        yield from (Arrived(head, None) for head in new)

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
    writer.end(T, anybody_asked=False)
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
    told = [record.message for record in caplog.records if "passed over" in record.message]
    assert len(told) == 2
    assert "1 of brokers that are not active; one names broker 'stranger:8080'" in told[0]
    assert told[1].startswith("no chunks of sweeps")
