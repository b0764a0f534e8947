"""The figures of simulated runs, worked out by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from controller.offline.scenarios.figures import (
    events_of,
    intervals_to_balance,
    moved_again,
    redundant,
    thrash,
    undone,
    value_of,
)
from controller.offline.scenarios.simulate import SimulatedRun
from controller.settings.expectation import FIGURES, parse_expectation
from controller.settings.scenario_parts import TurnNumber
from controller.simulator.carrying_out import SimulatedMove
from tests.scenarios import scenario

_AWAY = float("nan")


def move(interval: int, bundle: str, source: int, destination: int, usage: float = 5.0, **more: Any) -> SimulatedMove:
    fields = {"namespace": "acme/orders", "connections": 10, "messages": 100.0}
    return SimulatedMove(
        turn=TurnNumber(interval),
        bundle=bundle,
        source=source,
        destination=destination,
        usage=usage,
        **{**fields, **more},
    )


def run(
    usage: Sequence[Sequence[float]] = ((50, 50), (50, 50)), moves: Sequence[SimulatedMove] = (), **more: Any
) -> SimulatedRun:
    table = np.array(usage, np.float64)
    return SimulatedRun(
        seed=1,
        brokers=tuple(f"broker-{i}" for i in range(table.shape[1])),
        usage=table,
        moves=tuple(moves),
        **{"splits": (), "failures": (), **more},
    )


def value(text: str, of: SimulatedRun, **changed: Any) -> float:
    return value_of(parse_expectation(text), scenario(intervals=len(of.usage), **changed), of)


# ---- usage ----

UNEVEN = run([(90, 30, 30), (60, 50, 40), (_AWAY, 60, 20)])


@pytest.mark.parametrize(
    ("figure", "first", "later"),
    [
        ("balance max/mean", 1.8, 1.5),
        ("balance difference", 60, 40),
        ("balance sd", 28.284, 20),
        ("highest usage", 90, 60),
        ("lowest usage", 20, 20),
        ("time over limit", 12.5, 0),
    ],
)
def test_the_worst_interval_counts_and_brokers_that_are_away_do_not(figure: str, first: float, later: float) -> None:
    assert value(f"{figure} <= 0", UNEVEN) == pytest.approx(first, abs=1e-3)
    assert value(f"{figure} <= 0 after 1", UNEVEN) == pytest.approx(later, abs=1e-3)


def test_steady_is_how_far_any_broker_is_from_its_own_mean() -> None:
    assert value("steady", run([(40, 10), (60, 10)])) == pytest.approx(20)
    assert value("steady after 1", run([(40, 10), (60, 10)])) == 0
    assert value("steady", run([(0, 0), (0, 0)])) == 0


def test_an_interval_without_any_broker_does_not_count() -> None:
    gone = run([(50, 40), (_AWAY, _AWAY), (50, 40)])
    assert value("balance max/mean <= 2", gone) == pytest.approx(50 / 45)
    assert value("balance difference <= 2", gone) == 10
    assert np.isnan(value("highest usage <= 2 after 1", run([(1, 1), (_AWAY, _AWAY)])))


# ---- time to balance ----


def test_the_time_to_balance_is_counted_from_each_event_until_all_brokers_are_near_the_mean_for_a_while() -> None:
    even, uneven = (50.0, 50.0), (70.0, 30.0)
    usage = [uneven] * 3 + [even] * 9 + [uneven] * 2 + [even] * 2 + [uneven] * 4 + [even] * 10
    of = scenario(intervals=len(usage), bursts=[{"at": 12, "intervals": 100, "factor": 2}])
    assert events_of(of, run(usage)) == [0, 12]
    lag = scenario(intervals=len(usage), lags=[{"at": 6, "intervals": 9}])
    assert events_of(lag, run(usage)) == [0, 6, 15]
    assert intervals_to_balance(of, run(usage)).tolist() == [3, 8]
    assert value("intervals to balance <= 0", run(usage), bursts=[{"at": 12, "factor": 2}]) == 5.5
    assert value("intervals to balance <= 0 after 1", run(usage), bursts=[{"at": 12, "factor": 2}]) == 8


def test_a_broker_that_comes_or_goes_is_an_event() -> None:
    assert events_of(scenario(intervals=4), run([(50, 50), (50, _AWAY), (50, _AWAY), (50, 50)])) == [0, 1, 3]


# ---- moves ----

THERE_AND_BACK = [move(1, "a", 0, 1), move(5, "a", 1, 0), move(9, "a", 0, 2), move(9, "b", 1, 2)]


def test_a_move_is_undone_by_one_that_takes_the_bundle_back() -> None:
    assert undone(THERE_AND_BACK) == 1
    assert undone(THERE_AND_BACK[:1]) == 0


def test_moves_are_redundant_where_one_each_would_do() -> None:
    assert redundant(THERE_AND_BACK) == 2
    assert redundant(THERE_AND_BACK[:2]) == 2
    assert redundant([move(1, "a", 0, 0)]) == 1
    assert redundant([]) == 0


def test_bundles_moved_again_within_a_span() -> None:
    assert [moved_again(THERE_AND_BACK, span) for span in (3, 4)] == [0, 2]
    assert value("no bundle moved twice in 4", run([(1, 1, 1)] * 12, THERE_AND_BACK)) == 2
    assert value("no bundle moved twice in 4 after 5", run([(1, 1, 1)] * 12, THERE_AND_BACK)) == 1


def test_the_grace_period_of_the_figures_is_half_an_hour_whatever_the_period() -> None:
    apart = [move(0, "a", 0, 1), move(2, "a", 1, 0)]
    assert value("bundles moved twice <= 0", run([(1, 1)] * 3, apart), period_seconds=900) == 1
    assert value("bundles moved twice <= 0", run([(1, 1)] * 3, apart), period_seconds=901) == 0


#: Two brokers that are always there.
_TWO = np.full((9, 2), 50.0)


def test_thrash_is_nothing_where_load_moves_in_one_direction() -> None:
    assert thrash([move(i, str(i), 0, 1) for i in range(9)], _TWO) == 0
    assert thrash([], _TWO) == 0


def test_thrash_counts_what_goes_back_and_forth() -> None:
    # Each of both brokers goes 5 up and 5 down, within a range of 5: (5 + 5) / 5.
    assert thrash([move(1, "a", 0, 1), move(2, "a", 1, 0)], _TWO) == pytest.approx(2)
    twice = [move(i, "a", i % 2, 1 - i % 2) for i in range(4)]
    assert thrash(twice, _TWO) == pytest.approx(4)
    # 8 one way and 2 the other: a = (2 / 8) ** 0.8; (a * 10 + (1 - a) * 2) / 8
    a = 0.25**0.8
    mostly = [move(1, "a", 0, 1, usage=8), move(2, "a", 1, 0, usage=2)]
    assert thrash(mostly, _TWO) == pytest.approx((a * 10 + (1 - a) * 2) / 8)


def test_what_moves_brought_to_a_broker_before_it_restarted_does_not_go_back_later() -> None:
    moves = [move(0, "a", 0, 1), move(3, "b", 1, 2)]
    restarts = run([(50, 50, 50), (50, 50, 50), (75, _AWAY, 75), (50, 50, 50)], moves)
    assert value("thrash <= 0", restarts) == 0
    for there in ([(50, 50, 50)] * 4, [(50, 50, 50), (50, 50, 50), (_AWAY, _AWAY, _AWAY), (50, 50, 50)]):
        assert value("thrash <= 0", run(there, moves)) == pytest.approx(10 / 15)
    # Before the restart, and after it, there and back is thrash.
    back = [move(0, "a", 0, 1), move(1, "a", 1, 0), move(3, "b", 1, 2)]
    assert value("thrash <= 0", run(restarts.usage.tolist(), back)) == pytest.approx(20 / 20)


def test_moves_splits_and_failures_are_counted_from_an_interval_on_and_in_a_namespace() -> None:
    of = run(
        [(1, 1, 1)] * 12,
        [*THERE_AND_BACK, move(10, "c", 0, 1, namespace="acme/logs")],
        splits=((1, "acme/orders/0x0_0x1"), (7, "acme/logs/0x0_0x1")),
        failures=((2, "a"), (8, "b")),
    )
    assert [value(f"moves <= 0{rest}", of) for rest in ("", " after 9", " after 11")] == [5, 3, 0]
    assert value("moves of acme/logs <= 0", of) == 1
    assert [value(f"splits{rest} <= 0", of) for rest in ("", " of acme/logs")] == [2, 1]
    assert value("splits <= 0 after 2", of) == 1
    assert value("failed commands <= 0 after 3", of) == 1
    assert value("connections disturbed <= 0", of) == 50
    assert value("messages disturbed <= 0 after 9", of) == 300


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_a_value_for_every_run(figure: str) -> None:
    for of in (run(), run([(_AWAY, 5), (0, 0)]), run([(1, 1, 1)] * 12, THERE_AND_BACK)):
        assert value(f"{figure} <= 0", of) >= 0
