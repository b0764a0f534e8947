"""The frontier of moves and evenness: ascending numbers of moves, plans that get no worse, and proofs that hold."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.checking.checker import flaws
from controller.planning.problem import MEAN, REMOVAL, BalanceProblem, PlannedMove
from controller.planning.solving.frontier import FURTHER_MOVES, numbers_of_moves, plans_by_moves
from tests.balance_problems import problem


def clusters(seed: int, bundles: int = 40) -> BalanceProblem:
    chance = np.random.default_rng(seed)
    return BalanceProblem(
        resources=("cpu",),
        capacity=np.full((5, 1), 100.0),
        fixed=np.ones((5, 1)),
        size=chance.lognormal(0.8, 0.7, (bundles, 1)),
        owner=chance.choice(5, bundles, p=(0.5, 0.3, 0.1, 0.05, 0.05)),
        connections=np.full(bundles, 4.0),
        disturbance=np.ones(bundles),
    )


@pytest.mark.parametrize("seed", range(4))
def test_more_moves_are_never_worse_and_the_checker_verifies_each_plan(seed: int) -> None:
    one = clusters(seed)
    found = list(plans_by_moves(one, numbers_of_moves(14), 20_000))
    assert [each.certificate.max_moves for each in found] == numbers_of_moves(14)
    reached = [each.certificate.reached for each in found]
    assert all(later <= earlier for earlier, later in pairwise(reached))
    assert reached[-1] < reached[0] == found[0].certificate.before
    assert [flaws(one, each.moves, each.certificate) for each in found] == [[]] * len(found)


def test_filters_hold_for_every_plan() -> None:
    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        return np.full(5, bundle % 2 == 0)

    found = list(plans_by_moves(clusters(1), [2, 5, 9], 20_000, allowed))
    assert {move.bundle % 2 for each in found for move in each.moves} == {0}


def test_a_cluster_without_bundles_has_one_level() -> None:
    assert [each.moves for each in plans_by_moves(clusters(0, bundles=0), [0, 3], 100)] == [(), ()]


@pytest.mark.parametrize("most", [0, 1, 12, 13, 460, 10_000])
def test_numbers_ascend_from_none_to_the_most_and_are_few(most: int) -> None:
    numbers = numbers_of_moves(most)
    assert (numbers[0], numbers[-1]) == (0, most)
    assert all(one < other for one, other in pairwise(numbers))
    assert len(numbers) <= 13
    assert set(numbers_of_moves(most, also=(most + 2, -1))) == {*numbers, most + 2}


def test_up_to_12_moves_each_number_is_looked_at_and_then_a_dozen_by_the_square() -> None:
    assert numbers_of_moves(12) == list(range(13))
    assert numbers_of_moves(13) == [0, 1, 2, 3, 4, 6, 7, 9, 11, 13]
    assert numbers_of_moves(460) == [0, 3, 13, 29, 51, 80, 115, 157, 204, 259, 319, 387, 460]
    assert numbers_of_moves(0, also=(-1, 2)) == [0, 2]
    assert numbers_of_moves(2, also=(2 + FURTHER_MOVES,)) == [0, 1, 2, 4]


def test_a_plan_has_no_more_moves_than_those_that_make_it_better() -> None:
    one = problem([[10.0]] * 3, [(0, [3.0]), (0, [3.0]), (1, [3.0])])
    found = list(plans_by_moves(one, [0, 1, 2, 3], 1000))
    assert [(len(each.moves), each.certificate.reached, each.certificate.kind) for each in found] == [
        (0, 0.6, REMOVAL), (1, 0.3, MEAN), (1, 0.3, MEAN), (1, 0.3, MEAN),
    ]  # fmt: skip
    assert [each.certificate.bound for each in found] == pytest.approx([0.6, 0.3, 0.3, 0.3])
    # The large bundle stays where it is, so that one move is as good as three.
    large = problem([[10.0]] * 2, [(0, [8.0]), (0, [1.0]), (1, [1.0]), (1, [1.0])])
    assert [len(each.moves) for each in plans_by_moves(large, [0, 1, 2, 3], 1000)] == [0, 1, 1, 1]
    # One more move makes the second broker emptier, and not the fullest one.
    full = problem([[10.0]] * 3, [(0, [8.0]), (1, [3.0]), (1, [3.0])])
    assert [len(each.moves) for each in plans_by_moves(full, [0, 1, 2], 1000)] == [0, 0, 0]
