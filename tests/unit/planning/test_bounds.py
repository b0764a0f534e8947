"""Lower bounds, on problems whose best plan is known."""

import numpy as np
import pytest

from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, REMOVAL, BalanceProblem
from controller.planning.solving.bounds import (
    LowerBound,
    fewest_moves,
    indivisible,
    lower_bounds,
    mean_level,
    plain_bound,
)
from tests.balance_problems import problem, seeded


def level(of: BalanceProblem, kind: str, max_moves: int | None = None) -> float:
    return next(bound.level for bound in lower_bounds(of, max_moves) if bound.kind == kind)


def test_the_mean_counts_brokers_by_their_capacity() -> None:
    assert level(problem([[10.0], [30.0]], [(0, [6.0]), (0, [2.0])]), MEAN) == pytest.approx(0.2)


def test_the_mean_is_that_of_the_scarcest_resource() -> None:
    two = problem([[10.0, 10.0], [10.0, 10.0]], [(0, [4.0, 8.0]), (1, [0.0, 2.0])])
    assert lower_bounds(two, None)[0].level >= 0.5
    assert level(two, MEAN) == pytest.approx(0.5)


def test_load_that_cannot_move_is_a_bound() -> None:
    assert level(problem([[10.0], [10.0]], [(1, [1.0])], fixed=[[9.0], [0.0]]), FIXED) == pytest.approx(0.9)


def test_the_largest_bundle_has_to_be_somewhere() -> None:
    assert level(problem([[10.0], [20.0]], [(0, [8.0]), (0, [1.0])]), PIGEONHOLE) == pytest.approx(0.4)


def test_of_more_large_bundles_than_brokers_two_share_one() -> None:
    three = problem([[10.0]] * 3, [(0, [3.0]), (0, [3.0]), (1, [3.0]), (2, [3.0])])
    assert level(three, PIGEONHOLE) == pytest.approx(0.6)


def test_moves_that_are_too_few_are_a_bound() -> None:
    # Four bundles of 2 on a broker of 10: with one move it stays at 0.6, with two at 0.4.
    hot = problem([[10.0]] * 5, [(0, [2.0])] * 4)
    assert level(hot, REMOVAL, 0) == pytest.approx(0.8)
    assert level(hot, REMOVAL, 1) == pytest.approx(0.6)
    assert level(hot, REMOVAL, 2) == pytest.approx(0.4)


def test_moves_are_counted_over_all_brokers() -> None:
    two_hot = problem([[10.0]] * 4, [(0, [2.0])] * 4 + [(1, [2.0])] * 4)
    assert level(two_hot, REMOVAL, 1) == pytest.approx(0.8)
    assert level(two_hot, REMOVAL, 2) == pytest.approx(0.6)


def test_more_moves_never_raise_a_bound() -> None:
    one = seeded(8, 100, 3, 1)
    levels = [lower_bounds(one, moves)[0].level for moves in range(40)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > levels[-1]


def test_the_best_bound_comes_first_and_the_mean_is_always_there() -> None:
    first = set()
    for seed in range(12):
        found = lower_bounds(seeded(4, 12, 2, seed), seed % 4)
        assert [bound.level for bound in found] == sorted((bound.level for bound in found), reverse=True)
        assert MEAN in {bound.kind for bound in found}
        first.add(found[0].kind)
    assert first >= {PIGEONHOLE, REMOVAL}


def test_without_bundles_the_bound_is_what_stays() -> None:
    assert lower_bounds(problem([[10.0]], [], fixed=[[4.0]]), 3)[0].level == pytest.approx(0.4)


def test_without_load_every_bound_is_0() -> None:
    assert {bound.level for bound in lower_bounds(problem([[10.0]], [(0, [0.0])]), 3)} == {0.0}


def test_a_bundle_above_the_fair_share_of_the_largest_broker_is_named() -> None:
    one = problem([[10.0], [20.0]], [(0, [8.0]), (0, [12.0]), (1, [1.0])])
    assert indivisible(one, 0.45) == [1]
    assert indivisible(one, 0.35) == [1, 0]
    assert list(indivisible(problem([[1.0]], []), 0.0)) == []


@pytest.mark.slow
def test_a_hundred_thousand_bundles_have_bounds() -> None:
    large = seeded(1000, 100_000, 3, 1)
    assert lower_bounds(large, 20)[0].kind == REMOVAL
    assert np.isfinite(lower_bounds(large, 20)[0].level)


def told(of: BalanceProblem, max_moves: int | None = None) -> list[tuple[str, float, int, float]]:
    found = lower_bounds(of, max_moves)
    return [(bound.kind, round(bound.level, 6), bound.resource, bound.size) for bound in found]


TWO_RESOURCES = problem(
    [[10.0, 20.0], [10.0, 40.0], [10.0, 20.0]],
    [(0, [1.0, 6.0]), (0, [1.0, 6.0]), (0, [1.0, 1.0]), (1, [2.0, 1.0])],
    fixed=[[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]],
)


def test_bounds_are_those_of_the_resource_where_they_are_highest_the_highest_first() -> None:
    mean, fixed, largest = (MEAN, 0.2375, 1, 0), (FIXED, 0.1, 0, 0), (PIGEONHOLE, 0.3, 1, 6)
    assert told(TWO_RESOURCES) == [largest, mean, fixed]
    # Broker 0 is at 15 of 20; without its largest bundle it is at 9.
    assert told(TWO_RESOURCES, 1) == [(REMOVAL, 0.45, 1, 0), largest, mean, fixed]
    assert told(TWO_RESOURCES, 0) == [(REMOVAL, 0.75, 1, 0), (REMOVAL, 0.4, 0, 0), largest, mean, fixed]
    stays = problem([[10.0, 10.0]] * 2, [], fixed=[[1.0, 9.0], [0.0, 0.0]])
    assert told(stays) == [(FIXED, 0.9, 1, 0), (MEAN, 0.45, 1, 0)]


def test_bundles_share_brokers_up_to_nine_on_each_of_two() -> None:
    two, large, less = [[10.0]] * 2, (0, [1.0]), (0, [0.999])
    seventeen = problem(two, [large] * 15 + [less] * 2)
    assert told(seventeen)[:2] == [(PIGEONHOLE, 0.8991, 0, 0.999), (MEAN, 0.8499, 0, 0)]
    # With nineteen, ten would share one; so many are not looked at.
    assert told(problem(two, [large] * 17 + [less] * 2))[0] == (MEAN, 0.9499, 0, 0)


@pytest.mark.filterwarnings("error")
def test_bundles_without_load_and_load_that_stays_take_part_as_they_are() -> None:
    assert told(problem([[10.0]] * 2, [(0, [1.0])] * 2 + [(0, [0.0])]))[0] == (MEAN, 0.1, 0, 0)
    beside = problem([[10.0]] * 2, [(0, [2.0])] * 3, fixed=[[5.0], [0.0]])
    assert told(beside)[:2] == [(PIGEONHOLE, 0.6, 0, 2), (MEAN, 0.55, 0, 0)]


def test_where_all_bundles_of_a_broker_may_leave_it_their_number_is_no_bound() -> None:
    one = problem([[10.0], [100.0]], [(0, [5.0])])
    assert told(one, 1)[:2] == [(PIGEONHOLE, 0.05, 0, 5), (MEAN, 0.045455, 0, 0)]


def test_the_bound_without_a_plan_is_the_mean_or_what_cannot_move() -> None:
    assert plain_bound(TWO_RESOURCES) == LowerBound(0.2375, MEAN, 1)
    stays = problem([[10.0, 10.0]] * 2, [], fixed=[[1.0, 9.0], [0.0, 0.0]])
    assert plain_bound(stays) == LowerBound(0.9, FIXED, 1)


def test_without_resources_there_is_one_bound_and_it_is_0() -> None:
    nothing = problem([[], []], [(0, [])])
    assert plain_bound(nothing) == LowerBound(0.0, MEAN, 0, 0.0)
    assert lower_bounds(nothing, 3) == [LowerBound(0.0, MEAN, 0, 0.0)]
    assert mean_level(nothing) == 0.0
    assert fewest_moves(nothing, 0.5) == 0.0


def test_the_fewest_moves_to_a_level_are_those_of_the_resource_that_needs_most() -> None:
    assert [fewest_moves(TWO_RESOURCES, level) for level in (0.8, 0.75, 0.5, 0.45, 0.4, 0.1)] == [0, 0, 1, 1, 2, 4]
    # What stays on broker 0 is at 0.1; below that no number of moves is enough.
    assert fewest_moves(TWO_RESOURCES, 0.05) == np.inf
    only_second = problem([[10.0]] * 2, [(0, [1.0]), (1, [1.0])], fixed=[[0.0], [3.0]])
    assert fewest_moves(only_second, 0.2) == np.inf


def test_a_level_that_is_reached_to_the_last_bit_needs_no_further_move() -> None:
    assert fewest_moves(problem([[10.0]] * 3, [(0, [2.0])] * 4), 0.6) == 1
    assert fewest_moves(problem([[10.0]] * 3, [(0, [0.1])] * 3 + [(0, [7.7])]), 0.02) == 2
    for unit in (1e-6, 1.0, 1e6):
        assert fewest_moves(problem([[unit]] * 3, [(0, [unit / 3])] * 3), 2 / 3) == 1


def test_a_bundle_is_too_large_above_the_level_in_any_resource() -> None:
    one = problem([[10.0, 10.0]] * 2, [(0, [1.0, 5.0]), (0, [4.0, 1.0]), (1, [3.0, 3.0])])
    assert indivisible(one, 0.3) == [0, 1]
    assert indivisible(one, 0.4) == [0]


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_unit_of_a_resource_does_not_matter(unit: float) -> None:
    one = problem([[10 * unit]] * 3, [(0, [each * unit]) for each in (3.0, 3.0, 3.0, 2.0)])
    assert [each[:3] for each in told(one, 1)][:3] == [(REMOVAL, 0.8, 0), (PIGEONHOLE, 0.4, 0), (MEAN, 0.366667, 0)]


def test_of_equal_bounds_the_one_of_the_smaller_bundles_is_told() -> None:
    # The largest takes 4 of 10 alone, two of the others do together.
    assert told(problem([[10.0]] * 3, [(0, [4.0])] + [(0, [2.0])] * 3))[0] == (PIGEONHOLE, 0.4, 0, 2)
