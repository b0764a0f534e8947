"""What the search finds, where the best plan is known."""

import numpy as np
import pytest

from controller.planning.checking.checker import flaws
from controller.planning.from_view import Counted, map_problem
from controller.planning.objective import Score, score
from controller.planning.problem import PlannedMove
from controller.planning.solving.bounds import lower_bounds, mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.search import searched
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.shedding.peak_shedder.destinations import Destinations
from tests.balance_problems import problem, seeded
from tests.measure.balance import cluster

FIVE = [[10.0]] * 5


def test_one_move_mends_one_hot_broker() -> None:
    plan = planned(problem([[10.0]] * 2, [(0, [3.0]), (0, [3.0])]), SearchLimits(max_moves=5))
    assert plan.moves == (PlannedMove(0, 0, 1),)
    assert (plan.certificate.reached, plan.certificate.gap) == (0.3, 0.0)


def test_nothing_moves_where_nothing_gets_better() -> None:
    even = problem([[10.0]] * 3, [(0, [3.0]), (1, [3.0]), (2, [3.0])])
    assert planned(even, SearchLimits(max_moves=5)).moves == ()


@pytest.mark.parametrize("max_moves", [0, 1, 2, 3])
def test_a_plan_has_no_more_moves_than_allowed(max_moves: int) -> None:
    plan = planned(problem(FIVE, [(0, [2.0])] * 4), SearchLimits(max_moves=max_moves))
    assert len(plan.moves) == max_moves
    assert plan.certificate.gap == pytest.approx(0.0, abs=1e-8)


def test_an_exchange_is_found_where_no_single_move_helps() -> None:
    two = problem([[10.0]] * 2, [(0, [5.0]), (0, [3.0]), (1, [4.0]), (1, [2.0])])
    plan = planned(two, SearchLimits(max_moves=4))
    assert plan.certificate.reached == pytest.approx(0.7)
    assert plan.certificate.gap == pytest.approx(0.0, abs=1e-6)
    assert len(plan.moves) == 2


def test_the_broker_with_more_capacity_takes_more() -> None:
    plan = planned(problem([[10.0], [20.0], [10.0]], [(0, [3.0])] * 3), SearchLimits(max_moves=1, goal=0.0))
    assert [move.destination for move in plan.moves] == [1]


def test_no_broker_gets_above_its_capacity_in_any_resource() -> None:
    # Bandwidth is free on broker 1, and its CPU is full.
    hot = problem([[10.0, 10.0]] * 3, [(0, [2.0, 5.0]), (0, [2.0, 5.0]), (1, [9.0, 0.0]), (2, [0.0, 4.0])])
    plan = planned(hot, SearchLimits(max_moves=1))
    assert [move.destination for move in plan.moves] == [2]


def test_of_bundles_that_do_as_well_the_one_that_disturbs_least_moves() -> None:
    alike = problem([[10.0]] * 2, [(0, [3.0]), (0, [3.0]), (0, [0.5])], disturbance=[50.0, 11.0, 500.0])
    assert [move.bundle for move in planned(alike, SearchLimits(max_moves=1)).moves] == [1]


def test_brokers_below_the_beginning_give_nothing() -> None:
    uneven = problem([[10.0]] * 2, [(0, [3.0]), (0, [3.0])])
    for begin, moves in ((0.7, 0), (0.6, 0), (0.5, 1)):
        assert len(planned(uneven, SearchLimits(max_moves=5, begin=begin, goal=0.4)).moves) == moves


def test_at_the_goal_no_more_moves() -> None:
    one = problem(FIVE, [(0, [1.0])] * 9)
    plan = planned(one, SearchLimits(max_moves=9, begin=0.5, goal=0.5))
    assert (len(plan.moves), plan.certificate.reached) == (4, 0.5)


def test_a_broker_that_no_move_helps_does_not_keep_the_others_waiting() -> None:
    stuck = problem([[10.0]] * 3, [(0, [9.0]), (1, [4.0]), (1, [4.0])])
    assert [move.source for move in planned(stuck, SearchLimits(max_moves=5)).moves] == [1]


def test_many_brokers_at_the_peak_are_lowered_even_if_the_moves_do_not_reach_all() -> None:
    ten = problem([[10.0]] * 20, [(broker, [3.0]) for broker in range(10) for _ in range(3)])
    plan = planned(ten, SearchLimits(max_moves=4))
    assert len({move.source for move in plan.moves}) == 4
    assert plan.certificate.kind == "removal"
    assert plan.certificate.gap == pytest.approx(0.0, abs=1e-8)


@pytest.mark.slow
def test_the_same_problem_has_the_same_plan() -> None:
    limits = SearchLimits(max_moves=12)
    assert planned(seeded(10, 200, 3, 1), limits).moves == planned(seeded(10, 200, 3, 1), limits).moves


def test_more_effort_finds_a_plan_that_is_no_worse() -> None:
    for seed in range(4):
        one = seeded(8, 60, 2, seed)
        few, many = (planned(one, SearchLimits(max_moves=10, effort=pairs)).certificate for pairs in (0, 300_000))
        assert many.reached <= few.reached * (1 + 1e-9)


def test_the_score_is_lexicographic() -> None:
    two = problem([[10.0]] * 2, [(0, [6.0]), (0, [6.0])], disturbance=[20.0, 11.0])
    assert score(two, ()) == pytest.approx(Score(0.2, 1.2, 0.0, 0.6))
    assert score(two, [PlannedMove(1, 0, 1)]) == Score(0.0, 0.6, 11.0, 0.0)
    assert score(two, [PlannedMove(1, 0, 1)]) < score(two, [PlannedMove(0, 0, 1)]) < score(two, ())


def test_a_cluster_without_bundles_or_with_one_broker_has_an_empty_plan() -> None:
    for one in (problem([[10.0]], []), problem([[10.0]], [(0, [20.0])]), problem(np.ones((3, 1)).tolist(), [])):
        assert planned(one, SearchLimits(max_moves=3)).moves == ()


@pytest.mark.parametrize("load", [5e-324, 1e-310, 1e-269, 1e-30, 1e-12])
def test_a_search_among_loads_near_nothing_ends(load: float) -> None:
    tiny = problem([[5.0]] * 2, [(0, [load])] * 3, fixed=[[0.0], [0.0]])
    assert planned(tiny, SearchLimits(max_moves=2, effort=10_000)).certificate.reached <= 3 * load / 5


@pytest.mark.parametrize("load", [5e-324, 1e-323, 1e-310])
def test_a_bound_of_next_to_nothing_is_none_as_nobody_could_verify_it(load: float) -> None:
    tiny = problem([[1.0]] * 2, [(0, [load])] * 2)
    plan = planned(tiny, SearchLimits(max_moves=2, effort=10_000))
    assert (plan.certificate.bound, flaws(tiny, plan.moves, plan.certificate)) == (0.0, [])


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "uneven", "times_mean"), [(4, False, 1.1), (2, True, 1.1), (6, True, 1.15)])
def test_a_plan_under_filters_that_count_is_not_lost_where_its_moves_cannot_follow_in_another_order(
    seed: int, uneven: bool, times_mean: float
) -> None:
    view = cluster(10, 200, uneven=uneven, seed=seed)
    found = map_problem(
        view, view.recently_unloaded, Counted(weights=dict.fromkeys(("cpu", "bandwidth in", "bandwidth out"), 1.0))
    )
    evenly = Destinations(view=view, rows=found.rows, filters=(FewestBundles(enabled=True),)).allowed
    goal = 1.05 * mean_level(found.problem)
    moves = searched(found.problem, SearchLimits(max_moves=50, begin=goal + 0.05, goal=goal), allowed=evenly)
    assert score(found.problem, moves).peak <= times_mean * mean_level(found.problem)
    for number, move in enumerate(moves):
        assert evenly(move.bundle, moves[:number])[move.destination]


def test_the_smallest_number_with_all_its_bits_is_a_bound() -> None:
    least = 2.2250738585072014e-308
    assert planned(problem([[1.0]], [], fixed=[[least]]), SearchLimits(max_moves=1)).certificate.bound == least


@pytest.mark.slow
def test_what_filters_do_not_let_follow_in_the_end_is_no_reason_for_a_higher_level() -> None:
    """Bundles that disturb less took the place of others, in an order that the filter does not allow."""
    view = cluster(10, 200, uneven=True, seed=1)
    found = map_problem(
        view, view.recently_unloaded, Counted(weights=dict.fromkeys(("cpu", "bandwidth in", "bandwidth out"), 1.0))
    )
    evenly = Destinations(view=view, rows=found.rows, filters=(FewestBundles(enabled=True),)).allowed
    mean = mean_level(found.problem)
    limits = SearchLimits(max_moves=100, begin=1.3 * mean, goal=1.3 * mean)
    moves = searched(found.problem, limits, lower_bounds(found.problem, 100)[0].level, evenly)
    assert score(found.problem, moves).peak <= 1.65 * mean
    assert len(moves) <= 21
