"""Plans of few moves: bundles that have to leave, packed, and mended where they do not fit."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.objective import highest, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.bounds import fewest_moves, mean_level
from controller.planning.solving.limits import Effort
from controller.planning.solving.packing import pack
from controller.planning.solving.reach import Target
from tests.balance_problems import problem, seeded, whole_numbers

#: A problem -> where its bundles may go.
Rule = Callable[[BalanceProblem], Callable[[int], Bools]]


def anywhere(one: BalanceProblem) -> Callable[[int], Bools]:
    return lambda _bundle: np.ones(len(one.capacity), np.bool_)


def three(one: BalanceProblem) -> Callable[[int], Bools]:
    """Each bundle to three brokers, by its number."""
    n = len(one.capacity)
    return lambda bundle: np.isin(np.arange(n), [(bundle + nth) % n for nth in range(3)])


def target(level: float, **changes: Any) -> Target:
    return Target(**{"level": level, "max_moves": 100, "ceiling": 1.0, "tenure": 4, "steps": 30, **changes})


def peak(standing: Assignment) -> float:
    """The highest usage after the plan, added up anew."""
    owner = standing.problem.owner.copy()
    for move in standing.moves:
        assert owner[move.bundle] == move.source != move.destination
        owner[move.bundle] = move.destination
    return float(highest(loads(standing.problem, owner), standing.problem.capacity).max())


#: Plans that every kind of change led to, one or several; the effort tells how many changes there were.
PACKED: Final = (
    ((4, 28, 2, 21), 1.05, three, 7241, "1:3 19:3 12:2 2:2 16:2 5:3 17:3 9:1"),
    ((6, 48, 3, 41), 1.05, anywhere, 18033, "20:5 33:5 45:3 35:5 2:4 30:2 29:5 36:3 41:5 5:4 14:0 16:3 17:4 26:1"),
    ((6, 30, 1, 90), 1.1, three, 6421, "24:2 25:2 11:5 21:5 3:5 20:4"),
    ((5, 40, 1, 133), 1.05, anywhere, 10125, "16:4 23:3 4:1 11:1 12:3 28:1 33:4 1:2 31:3 5:4"),
    ((5, 35, 3, 248), 1.02, anywhere, 16323, "20:3 14:4 19:4 2:2 29:3 28:2 15:0 31:3 21:4 3:3"),
)


@pytest.mark.parametrize(("shape", "times_mean", "rule", "effort", "moves"), PACKED)
def test_every_machine_packs_this_plan_with_this_effort(
    shape: tuple[int, int, int, int], times_mean: float, rule: Rule, effort: int, moves: str
) -> None:
    one, left = whole_numbers(*shape), Effort(1_000_000)
    standing, level = Assignment(one), times_mean * mean_level(one)
    assert pack(standing, target(level), rule(one), left)
    assert peak(standing) <= level + 1e-9
    assert (1_000_000 - left.remaining_pairs, " ".join(f"{bundle}:{to}" for bundle, _, to in standing.moves)) == (
        effort,
        moves,
    )
    assert all(rule(one)(move.bundle)[move.destination] for move in standing.moves)


def test_with_one_resource_a_plan_has_as_few_moves_as_any_can_have() -> None:
    found = 0
    for seed in range(40):
        one = seeded(8, 120, 1, seed, uneven=seed % 2 == 1)
        standing, level = Assignment(one), 1.05 * mean_level(one)
        if pack(standing, target(level), anywhere(one), Effort(1_000_000)):
            assert len(standing.moves) == fewest_moves(one, level)
            assert peak(standing) <= level + 1e-9
            found += 1
    assert found >= 28


#: Two brokers; two bundles have to leave for a level of 0.5.
TWO: Final = problem([[10.0]] * 2, [(0, [3.0]), (0, [2.0]), (0, [2.0]), (0, [1.0]), (0, [1.0]), (1, [1.0])])


def test_the_plan_takes_the_place_of_the_one_before_and_that_one_stays_where_none_is_found() -> None:
    standing = Assignment(TWO)
    standing.move(5, 1, 0)
    assert not pack(standing, target(0.4), anywhere(TWO), Effort(1_000_000))
    assert standing.moves == (PlannedMove(5, 1, 0),)
    assert pack(standing, target(0.6), anywhere(TWO), Effort(1_000_000))
    assert standing.moves == (PlannedMove(0, 0, 1),)


def test_where_all_are_at_the_level_the_plan_is_empty() -> None:
    standing = Assignment(TWO)
    standing.move(0, 0, 1)
    assert pack(standing, target(0.9), anywhere(TWO), Effort(1_000_000))
    assert standing.moves == ()


def test_no_plan_has_more_moves_than_it_may() -> None:
    for most, is_found in ((1, False), (2, True)):
        standing = Assignment(TWO)
        assert pack(standing, target(0.5, max_moves=most), anywhere(TWO), Effort(1_000_000)) is is_found
        assert len(standing.moves) == (2 if is_found else 0)


def test_a_bundle_that_filters_let_go_nowhere_leaves_no_plan() -> None:
    standing = Assignment(TWO)
    assert not pack(standing, target(0.6), lambda bundle: np.array([True, bundle != 0]), Effort(1_000_000))
    assert standing.moves == ()


def test_a_broker_that_cannot_give_enough_leaves_no_plan() -> None:
    fixed = problem([[10.0]] * 2, [(0, [1.0])], fixed=[[8.0], [0.0]])
    assert not pack(Assignment(fixed), target(0.7), anywhere(fixed), Effort(1_000_000))


def test_filters_that_count_hold_for_the_whole_plan_also_after_changes() -> None:
    found = 0
    for seed in range(30):
        one = seeded(6, 60, 2, seed)
        standing = Assignment(one)

        def few(_bundle: int, standing: Assignment = standing) -> Bools:
            came = np.bincount([move.destination for move in standing.moves], minlength=6)
            return np.asarray(came < 4)

        if pack(standing, target(1.1 * mean_level(one)), few, Effort(1_000_000)):
            assert max(np.bincount([move.destination for move in standing.moves])) <= 4
            found += 1
    assert found >= 8


@pytest.mark.parametrize("bundles", [2_000, 50_000])
def test_a_plan_of_many_moves_costs_no_more_than_the_effort_and_one_step(bundles: int) -> None:
    one = seeded(2, bundles, 1, 1)
    one = problem(one.capacity.tolist(), [(0, [float(size)]) for size in one.size[:, 0]])
    left = Effort(200_000)
    assert not pack(Assignment(one), target(0.2, max_moves=bundles), anywhere(one), left)
    assert left.remaining_pairs > -300_000
