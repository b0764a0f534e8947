"""Waves: no broker above its capacity while bundles count on both of their brokers."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings

from controller.model.load import Bools
from controller.planning.checking.wave_checker import wave_flaws
from controller.planning.objective import ceilings
from controller.planning.plans.waves import WaveLimits, WavePace, waves_of
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.balance_problems import problem, tiny_problems

#: Four brokers that may be full, and no fuller.
FULL = np.ones(4)
LIMITS = WaveLimits(max_moves=4, max_per_broker=2, max_connections=60)


def test_a_bundle_that_needs_the_room_of_another_one_waits_for_the_next_wave() -> None:
    two = problem([[10.0], [10.0]], [(0, [6.0]), (1, [4.0]), (1, [4.0])])
    away, there = PlannedMove(1, 1, 0), PlannedMove(0, 0, 1)
    assert waves_of(two, [away, there], WaveLimits(), FULL[:2]) == ((away,), (there,))


def test_moves_that_do_not_need_each_other_share_a_wave() -> None:
    three = problem([[10.0]] * 3, [(0, [2.0]), (0, [2.0]), (1, [1.0])])
    moves = [PlannedMove(0, 0, 1), PlannedMove(1, 0, 2), PlannedMove(2, 1, 2)]
    assert waves_of(three, moves, WaveLimits(), FULL[:3]) == (tuple(moves),)


def test_a_bundle_with_more_connections_than_a_wave_may_have_moves_alone() -> None:
    two = problem([[10.0], [10.0]], [(0, [1.0])] * 3, connections=[5.0, 500.0, 5.0])
    moves = [PlannedMove(i, 0, 1) for i in range(3)]
    assert [len(wave) for wave in waves_of(two, moves, WaveLimits(max_connections=10), FULL[:2])] == [1, 1, 1]


def test_no_broker_gives_or_gets_more_in_a_wave_than_it_may() -> None:
    two = problem([[10.0], [10.0]], [(0, [1.0])] * 5)
    waves = waves_of(two, [PlannedMove(i, 0, 1) for i in range(5)], WaveLimits(max_per_broker=2), FULL[:2])
    assert [len(wave) for wave in waves] == [2, 2, 1]


def test_moves_that_no_order_carries_out_are_refused() -> None:
    full = problem([[10.0], [10.0]], [(0, [6.0]), (1, [6.0])])
    with pytest.raises(ValueError, match="not possible"):
        waves_of(full, [PlannedMove(0, 0, 1), PlannedMove(1, 1, 0)], WaveLimits(), FULL[:2])


def test_no_moves_are_no_waves() -> None:
    assert waves_of(problem([[1.0]], []), [], WaveLimits(), FULL[:1]) == ()


def test_a_filter_that_forbids_overtaking_keeps_the_order() -> None:
    four = problem([[10.0]] * 4, [(0, [8.0]), (1, [8.0]), (2, [1.0])])
    # The second waits for the first to leave; the third could overtake it.
    moves = [PlannedMove(0, 0, 3), PlannedMove(1, 1, 0), PlannedMove(2, 2, 1)]
    assert [len(wave) for wave in waves_of(four, moves, WaveLimits(max_moves=3), FULL)] == [2, 1]

    def in_order(bundle: int, before: Sequence[PlannedMove]) -> Bools:
        return np.full(4, len(before) >= bundle)

    assert [len(wave) for wave in waves_of(four, moves, WaveLimits(max_moves=3), FULL, in_order)] == [1, 2]


@pytest.mark.parametrize(
    ("burst", "most"), [(1.0, 2.0), (20.0, 40.0), (30.0, 60.0), (60.0, 60.0), (3600.0, 60.0), (None, 60.0)]
)
def test_a_wave_has_what_the_rate_allows_in_its_period_and_no_more_than_until_the_next(
    burst: float | None, most: float
) -> None:
    pace = WavePace(wave_seconds=30.0, connections_per_second=2.0, burst_seconds=burst)
    assert pace.max_connections == most
    assert WavePace(wave_seconds=30.0, burst_seconds=burst).max_connections is None


def test_a_rate_that_no_number_holds_exactly_is_used_to_the_last_connection() -> None:
    bundles = problem([[10.0], [10.0]], [(0, [1.0])] * 7)
    moves = [PlannedMove(i, 0, 1) for i in range(7)]
    for rate in range(1, 8):
        most = WavePace(wave_seconds=120.0, connections_per_second=rate / 60, burst_seconds=60.0).max_connections
        assert len(waves_of(bundles, moves, WaveLimits(max_connections=most), FULL[:2])[0]) == rate


def _waves_keep_their_promise(one: BalanceProblem, max_moves: int, effort: int) -> None:
    plan = planned(one, SearchLimits(max_moves=max_moves, effort=effort))
    ceiling = ceilings(one, plan.moves)
    waves = waves_of(one, plan.moves, LIMITS, ceiling)
    assert wave_flaws(one, waves, ceiling.tolist(), most_connections=LIMITS.max_connections or 0) == []
    assert sorted(move for wave in waves for move in wave) == sorted(plan.moves)
    for wave in waves:
        assert len(wave) <= LIMITS.max_moves
        connections = sum(one.connections[move.bundle] for move in wave)
        assert connections <= (LIMITS.max_connections or 0) or len(wave) == 1
        for rows in ([move.source for move in wave], [move.destination for move in wave]):
            assert max(np.bincount(rows)) <= LIMITS.max_per_broker


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tiny_problems())
def test_the_waves_of_any_plan_keep_every_broker_under_capacity(one: BalanceProblem) -> None:
    _waves_keep_their_promise(one, 5, 1000)


def test_the_checker_refuses_forged_waves() -> None:
    two = problem([[10.0], [10.0]], [(0, [6.0]), (1, [4.0]), (1, [4.0])])
    away, there = PlannedMove(1, 1, 0), PlannedMove(0, 0, 1)
    assert wave_flaws(two, [(away,), (there,)], [1.0, 1.0]) == []
    assert "is at 1.4" in wave_flaws(two, [(away, there)], [1.0, 1.0])[0]
    assert "wave 2 is empty" in wave_flaws(two, [(away,), ()], [1.0, 1.0])[0]
    assert "which is to be empty" in wave_flaws(two, [(away,)], [1.0, 1.0], [0])[0]
    assert "cannot move" in wave_flaws(two, [(away,), (away,)], [1.0, 1.0])[0]
    assert "cannot move" in wave_flaws(two, [(PlannedMove(9, 0, 1),)], [1.0, 1.0])[0]
    assert "cannot move" in wave_flaws(two, [(PlannedMove(0, 0, 2),)], [1.0, 1.0])[0]
    both = [PlannedMove(1, 1, 0), PlannedMove(2, 1, 0)]  # a connection each
    assert wave_flaws(two, [both], [2.0, 2.0], most_connections=2.0) == []
    assert wave_flaws(two, [[move] for move in both], [2.0, 2.0], most_connections=0.5) == []
    assert wave_flaws(two, [both], [2.0, 2.0], most_connections=1.9) == [
        "wave 1: 2 connections at once, 1.9 are allowed"
    ]
    assert "is not a number" in wave_flaws(two, [(away,)], [1.0, float("nan")])[0]


@pytest.mark.filterwarnings("error")
def test_a_wave_whose_utilisation_no_number_can_hold_is_refused_without_a_warning() -> None:
    for capacity, size in ((0.0, 1.0), (5e-324, 2.0), (1e-300, 1e300), (1.0, 1.7e308)):
        two = problem([[capacity], [capacity]], [(0, [size]), (0, [size])])
        said = wave_flaws(two, [[PlannedMove(0, 0, 1), PlannedMove(1, 0, 1)]], [1.0, 1.0])
        assert "wave 1: broker 1 is at inf of its capacity" in " ".join(said)
