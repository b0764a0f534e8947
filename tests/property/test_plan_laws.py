"""What holds for every plan and every bound, tried on small problems against all plans that there are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.model.load import Bools
from controller.planning.checking.checker import flaws
from controller.planning.objective import highest, loads, score
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.bounds import lower_bounds
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.balance_problems import best_by_trying, odd_problems, tiny_problems

_MOVES = st.integers(0, 5)
#: A few steps of each part of the search.
_EFFORT = 30_000
#: More than that many steps ask the filters.
_QUESTIONS = 2_000


@given(problem=tiny_problems(), max_moves=_MOVES)
def test_no_bound_is_above_the_best_of_all_plans(problem: BalanceProblem, max_moves: int) -> None:
    best = best_by_trying(problem, max_moves)
    for bound in lower_bounds(problem, max_moves):
        assert bound.level <= best * (1 + 1e-9) + 1e-9, bound


@given(problem=tiny_problems())
def test_no_bound_without_a_limit_of_moves_is_above_the_best_of_all_plans(problem: BalanceProblem) -> None:
    best = best_by_trying(problem, len(problem.owner))
    assert all(bound.level <= best * (1 + 1e-9) + 1e-9 for bound in lower_bounds(problem, None))


@given(problem=tiny_problems(), max_moves=_MOVES)
def test_the_best_of_all_plans_lies_between_bound_and_reached(problem: BalanceProblem, max_moves: int) -> None:
    certificate = planned(problem, SearchLimits(effort=_EFFORT, max_moves=max_moves)).certificate
    best = best_by_trying(problem, max_moves)
    assert certificate.bound <= best * (1 + 1e-9) + 1e-9
    assert best <= certificate.reached * (1 + 1e-9) + 1e-9
    assert certificate.reached <= certificate.before * (1 + 1e-9)


@given(problem=tiny_problems(), max_moves=_MOVES, begin=st.floats(0, 2), goal=st.floats(0, 2))
def test_the_checker_verifies_every_plan(problem: BalanceProblem, max_moves: int, begin: float, goal: float) -> None:
    plan = planned(problem, SearchLimits(effort=_EFFORT, max_moves=max_moves, begin=begin, goal=min(begin, goal)))
    assert flaws(problem, plan.moves, plan.certificate) == []


@given(problem=odd_problems(), max_moves=_MOVES, where=st.sampled_from(["anywhere", "nowhere", "first", "emptiest"]))
def test_the_checker_verifies_plans_of_odd_clusters_under_any_filter(
    problem: BalanceProblem, max_moves: int, where: str
) -> None:
    n, questions = len(problem.capacity), 0

    def allowed(_: int, moves: Sequence[PlannedMove]) -> Bools:
        nonlocal questions
        questions += 1
        placed = problem.owner.copy()
        for move in moves:
            placed[move.bundle] = move.destination
        count = np.bincount(placed, minlength=n)
        found: dict[str, Bools] = {"anywhere": count >= 0, "nowhere": count < 0, "first": np.arange(n) == 0}
        emptiest: Bools = count == count.min()
        return found.get(where, emptiest)

    plan = planned(problem, SearchLimits(effort=_EFFORT, max_moves=max_moves), allowed)
    assert flaws(problem, plan.moves, plan.certificate) == []
    assert questions <= _QUESTIONS


@given(problem=tiny_problems(), max_moves=_MOVES, data=st.data())
def test_a_plan_goes_only_where_it_may(problem: BalanceProblem, max_moves: int, data: st.DataObject) -> None:
    n, m = len(problem.capacity), len(problem.owner)
    rows = st.lists(st.booleans(), min_size=n, max_size=n)
    allowed = np.array(data.draw(st.lists(rows, min_size=m, max_size=m)), np.bool_).reshape(m, n)
    plan = planned(problem, SearchLimits(effort=_EFFORT, max_moves=max_moves), lambda bundle, _: allowed[bundle].copy())
    assert all(allowed[move.bundle, move.destination] for move in plan.moves)


@given(problem=tiny_problems(), max_moves=_MOVES)
def test_a_plan_leaves_no_broker_fuller_than_the_fullest_was(problem: BalanceProblem, max_moves: int) -> None:
    plan = planned(problem, SearchLimits(effort=_EFFORT, max_moves=max_moves))
    # Beside a broker of which nothing can go, others are emptied: that costs moves, and the peak stays where it was.
    assert score(problem, plan.moves)[:2] <= score(problem, ())[:2]


@given(problem=tiny_problems(), max_moves=_MOVES)
def test_a_plan_empties_one_of_the_brokers_that_it_takes_from(problem: BalanceProblem, max_moves: int) -> None:
    moves = planned(problem, SearchLimits(effort=_EFFORT, max_moves=max_moves)).moves
    owner = problem.owner.copy()
    owner[[move.bundle for move in moves]] = [move.destination for move in moves]
    before, after = (highest(loads(problem, of), problem.capacity) for of in (problem.owner, owner))
    assert any(after[move.source] < before[move.source] for move in moves) or not moves


@given(problem=tiny_problems(), max_moves=_MOVES, factor=st.sampled_from([0.25, 4.0]))
def test_the_unit_of_the_load_makes_no_difference(problem: BalanceProblem, max_moves: int, factor: float) -> None:
    scaled = replace(
        problem, capacity=problem.capacity * factor, fixed=problem.fixed * factor, size=problem.size * factor
    )
    limits = SearchLimits(effort=_EFFORT, max_moves=max_moves)
    assert planned(problem, limits).moves == planned(scaled, limits).moves
