"""Lower bounds, on problems whose best plan is known."""

import numpy as np
import pytest

from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, REMOVAL, BalanceProblem
from controller.planning.solving.bounds import indivisible, lower_bounds
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


def test_a_hundred_thousand_bundles_have_bounds() -> None:
    large = seeded(1000, 100_000, 3, 1)
    assert lower_bounds(large, 20)[0].kind == REMOVAL
    assert np.isfinite(lower_bounds(large, 20)[0].level)
