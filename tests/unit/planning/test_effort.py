"""What a search counts of its work, and how much it looks at in a step: so it takes as long on any machine."""

import numpy as np
import pytest

from controller.planning.problem import BalanceProblem
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.limits import Effort
from controller.planning.solving.steps import compared, emptiest, largest


def standing(brokers: int, bundles: int, resources: int) -> Assignment:
    """All bundles on the first broker, each a little larger than the one before it."""
    size = np.arange(1.0, bundles + 1)[:, None] * np.ones(resources)
    return Assignment(
        BalanceProblem(
            resources=tuple(f"r{column}" for column in range(resources)),
            capacity=np.full((brokers, resources), 1e6),
            fixed=np.zeros((brokers, resources)),
            size=size,
            owner=np.zeros(bundles, np.int64),
            connections=np.ones(bundles),
            disturbance=np.ones(bundles),
        )
    )


@pytest.mark.parametrize(("resources", "pairs"), [(1, 2050), (3, 2050), (6, 8200), (4, 3644)])
def test_a_step_counts_as_2000_pairs_besides_those_it_looks_at_and_more_with_many_resources(
    resources: int, pairs: int
) -> None:
    effort = Effort(100_000)
    effort.spend(50, resources)
    assert 100_000 - effort.remaining_pairs == pairs


@pytest.mark.parametrize(("numbers", "pairs"), [(0, 200), (15, 200), (16, 201), (160, 210)])
def test_a_choice_counts_as_200_pairs_and_one_more_for_16_numbers(numbers: int, pairs: int) -> None:
    effort = Effort(100_000)
    effort.choose(numbers)
    assert 100_000 - effort.remaining_pairs == pairs


def test_a_question_to_the_filters_counts_as_1000_pairs_and_nothing_is_left_at_0() -> None:
    effort = Effort(1001)
    effort.ask()
    assert (effort.remaining_pairs, effort.exhausted) == (1, False)
    effort.ask()
    assert effort.exhausted
    assert Effort(0).exhausted


@pytest.mark.parametrize(("resources", "brokers"), [(1, 128), (3, 128), (4, 96), (9, 42), (24, 16), (40, 16)])
def test_bundles_are_compared_with_128_brokers_and_with_fewer_where_resources_are_many(
    resources: int, brokers: int
) -> None:
    assert compared(standing(2, 1, resources)) == brokers


@pytest.mark.parametrize(("bundles", "looked_at"), [(128, 128), (129, 128), (300, 128)])
def test_of_the_bundles_of_a_broker_the_128_largest_are_exchanged(bundles: int, looked_at: int) -> None:
    assert largest(standing(2, bundles, 1), 0).tolist() == [*range(bundles - looked_at, bundles)]


def test_the_emptiest_brokers_are_others_in_the_order_of_their_names() -> None:
    assert emptiest(standing(5, 3, 1), 0, 3).tolist() == [1, 2, 3]
    assert emptiest(standing(5, 3, 1), 2, 9).tolist() == [1, 3, 4, 0]
