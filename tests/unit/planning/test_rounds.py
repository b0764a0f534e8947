"""A round carries out a part of a plan: off the fullest brokers first, within its limits, where filters allow it."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.checking.checker import flaws
from controller.planning.objective import highest, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.bounds import lower_bounds
from controller.planning.solving.certify import certified, planned
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.rounds import PartLimits, part_for_a_round
from tests.balance_problems import problem


def clusters(seed: int) -> BalanceProblem:
    """Six brokers with capacity 100, the first two of which have nearly all load."""
    chance = np.random.default_rng(seed)
    size = chance.lognormal(0.5, 0.6, (60, 1))
    return BalanceProblem(
        resources=("cpu",),
        capacity=np.full((6, 1), 100.0),
        fixed=np.ones((6, 1)),
        size=size,
        owner=chance.choice(6, 60, p=(0.45, 0.35, 0.05, 0.05, 0.05, 0.05)),
        connections=np.full(60, 4.0),
        disturbance=np.ones(60),
    )


def whole(problem: BalanceProblem) -> tuple[PlannedMove, ...]:
    return tuple(planned(problem, SearchLimits(max_moves=50, effort=20_000)).moves)


def after(problem: BalanceProblem, moves: Sequence[PlannedMove]) -> np.ndarray:
    owner = problem.owner.copy()
    for move in moves:
        owner[move.bundle] = move.destination
    found: np.ndarray = highest(loads(problem, owner), problem.capacity)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_within_the_limits_is_carried_out_as_it_is(seed: int) -> None:
    problem = clusters(seed)
    moves = whole(problem)
    assert len(moves) > 10
    assert part_for_a_round(problem, moves, PartLimits(max_moves=50, max_per_broker=50)) == moves


@pytest.mark.parametrize("seed", range(5))
def test_a_part_keeps_the_limits_and_lowers_the_peak(seed: int) -> None:
    problem = clusters(seed)
    limits = PartLimits(max_moves=8, max_per_broker=5, max_connections=28.0)
    part = part_for_a_round(problem, whole(problem), limits)
    assert len(part) == 7
    assert set(part) < set(whole(problem))
    for side in (1, 2):
        assert np.bincount([move[side] for move in part]).max() <= 5
    levels = [float(after(problem, part[:count]).max()) for count in range(len(part) + 1)]
    assert all(later <= earlier for earlier, later in pairwise(levels))
    assert levels[-1] < levels[0]


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_a_plan_in_turn_come_to_its_end(seed: int) -> None:
    problem = clusters(seed)
    left = list(whole(problem))
    for _ in range(10):
        owner = problem.owner.copy()
        part = part_for_a_round(problem, tuple(left), PartLimits(max_moves=6, max_per_broker=4))
        for move in part:
            owner[move.bundle] = move.destination
            left.remove(move)
        problem = BalanceProblem(
            **{name: getattr(problem, name) for name in problem.__dataclass_fields__ if name != "owner"}, owner=owner
        )
    end = after(clusters(seed), whole(clusters(seed)))
    assert float(after(problem, ()).max()) <= float(end.max()) * 1.1


def test_the_certificate_of_a_part_holds_and_is_about_as_many_moves_as_a_round_has() -> None:
    problem = clusters(1)
    part = part_for_a_round(problem, whole(problem), PartLimits(max_moves=5, max_per_broker=5))
    told = certified(problem, part, 5, lower_bounds(problem, 5)[0]).certificate
    assert told.max_moves == 5
    assert told.reached == pytest.approx(float(after(problem, part).max()))
    assert flaws(problem, part, told) == []


def test_filters_are_asked_with_the_moves_of_the_part_only() -> None:
    problem = clusters(2)
    seen: list[int] = []

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        seen.append(len(moves))
        return np.full(6, bundle % 2 == 0)

    part = part_for_a_round(problem, whole(problem), PartLimits(max_moves=4, max_per_broker=4), allowed)
    assert part
    assert all(move.bundle % 2 == 0 for move in part)
    assert set(seen) <= set(range(4))


@pytest.mark.parametrize(
    "limits", [PartLimits(max_moves=0, max_per_broker=5), PartLimits(max_moves=5, max_per_broker=0)]
)
def test_a_round_without_moves_has_no_part(limits: PartLimits) -> None:
    assert part_for_a_round(clusters(0), whole(clusters(0)), limits) == ()


def test_an_empty_plan_has_an_empty_part() -> None:
    assert part_for_a_round(clusters(0), (), PartLimits(max_moves=5, max_per_broker=5)) == ()


def test_where_filters_would_not_let_the_rest_follow_a_round_carries_out_the_longest_beginning_of_the_plan() -> None:
    cluster = problem([[10.0]] * 3, [(0, [3.0]), (1, [2.0]), (1, [2.0]), (1, [2.0]), (1, [3.0])])
    plan = (PlannedMove(0, 0, 2), PlannedMove(1, 1, 2), PlannedMove(2, 1, 2))

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        """The first bundle goes first, or not at all."""
        return np.full(3, bundle != 0 or not moves)

    limits = PartLimits(max_moves=2, max_per_broker=2)
    assert part_for_a_round(cluster, plan, limits) == plan[1:]
    assert part_for_a_round(cluster, plan, limits, allowed) == plan[:2]
    assert part_for_a_round(cluster, plan, PartLimits(max_moves=1, max_per_broker=2), allowed) == plan[:1]
