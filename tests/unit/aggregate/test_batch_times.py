"""When the query reads: with a tick, shortly before the next one, and now and then."""

from collections.abc import Mapping

import pytest

from controller.aggregate.ticks.batch_times import BatchTimes

T = 1_000_000_000_000


def batches(
    ticks: Mapping[float, int], *, until: float, period: float = 60.0, takes: float = 0.2, broken: bool = False
) -> list[float]:
    """When batches begin, looked at every tenth of a second.

    *ticks*: when a tick comes -> its interval.  A batch decides what has been ticked, after so many seconds as it
    *takes*; where it is *broken*, never.
    """
    times, found, decided = BatchTimes(period=period), list[float](), dict[float, int]()
    for tenth in range(int(until * 10)):
        now = tenth / 10
        ticked = max((tick for at, tick in ticks.items() if at <= now), default=None)
        done = max((tick for at, tick in decided.items() if at <= now), default=None)
        if times.due(now, ticked=ticked, decided=None if broken else done):
            found.append(now)
            if ticked is not None:
                decided[now + takes] = ticked
    return found


def test_a_tick_begins_a_batch_at_once_and_one_comes_shortly_before_the_next_tick() -> None:
    ticks = {28.0 + 60.0 * n: T + n for n in range(4)}
    assert [at for at in batches(ticks, until=250) if at >= 28] == [28, 58, 83, 88, 118, 143, 148, 178, 203, 208, 238]


def test_a_new_leader_reads_at_once() -> None:
    assert batches({}, until=1) == [0]


@pytest.mark.parametrize(("period", "apart"), [(60.0, 30.0), (600.0, 30.0), (10.0, 5.0)])
def test_without_ticks_a_batch_comes_now_and_then(period: float, apart: float) -> None:
    assert batches({}, until=4 * apart, period=period) == [0, apart, 2 * apart, 3 * apart]


def test_a_batch_that_does_not_close_the_ticked_interval_is_followed_by_another_until_one_does() -> None:
    # The second tick can be read a moment after the first one.
    found = batches({1.0: T}, until=4, takes=1.0)
    assert found == [0, 1, 1.5]
    assert batches({1.0: T}, until=4, broken=True) == [0, 1, 1.5, 2, 2.5, 3, 3.5]


def test_an_older_tick_than_the_last_decision_begins_no_batch() -> None:
    times = BatchTimes(period=60.0)
    assert times.due(0.0, ticked=None, decided=T)
    assert not times.due(1.0, ticked=T, decided=T)
    assert not times.due(2.0, ticked=T - 60_000, decided=T)
    assert times.due(3.0, ticked=T + 60_000, decided=T)
