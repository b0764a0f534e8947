"""The frontier of moves and evenness: ascending numbers of moves, plans that get no worse, and proofs that hold."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.checking.checker import flaws
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.frontier import numbers_of_moves, plans_by_moves


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
    problem = clusters(seed)
    found = list(plans_by_moves(problem, numbers_of_moves(14), 20_000))
    assert [each.certificate.max_moves for each in found] == numbers_of_moves(14)
    reached = [each.certificate.reached for each in found]
    assert all(later <= earlier for earlier, later in pairwise(reached))
    assert reached[-1] < reached[0] == found[0].certificate.before
    assert [flaws(problem, each.moves, each.certificate) for each in found] == [[]] * len(found)


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
