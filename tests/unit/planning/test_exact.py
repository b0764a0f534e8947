"""The search and the bounds against HiGHS, which finds the best plan of a small cluster and proves it."""

import pytest

from controller.planning.checking.checker import flaws
from controller.planning.problem import PRICES
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.balance_problems import problem, seeded
from tests.effort import tries
from tests.measure.exact import fewest_to, reachable, solved, with_prices

pytest.importorskip("highspy")

#: Brokers, bundles, resources, moves, seed, uneven capacities: solved in well under a second each.
CASES = [
    (3, 12, 1, 2, 1, False),
    (10, 200, 1, 10, 2, False),
    (4, 20, 1, 3, 3, False),
    (4, 20, 2, 5, 6, True),
    (4, 20, 2, 5, 5, True),
    (3, 14, 2, 4, 2, True),
    (5, 24, 1, 6, 5, True),
    (5, 64, 2, 8, 3, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("brokers", "bundles", "resources", "moves", "seed", "uneven"), CASES[: tries(plain=4, thorough=len(CASES))]
)
def test_the_plan_is_within_2_percent_of_the_best_one(
    brokers: int, bundles: int, resources: int, moves: int, seed: int, uneven: bool
) -> None:
    one = seeded(brokers, bundles, resources, seed, uneven=uneven)
    plan, best = planned(one, SearchLimits(max_moves=moves)), solved(one, moves)
    assert best.reached <= best.bound * (1 + 1e-5)
    assert plan.certificate.reached <= best.reached * 1.02
    assert plan.certificate.bound <= best.reached * (1 + 1e-6)


def test_the_bound_with_prices_is_verified_and_no_lower() -> None:
    higher = 0
    for seed in range(tries(plain=3, thorough=6)):
        one = seeded(6, 60, 3, seed)
        plan = planned(one, SearchLimits(max_moves=6, effort=0))
        priced = with_prices(one, plan.certificate)
        assert priced.bound >= plan.certificate.bound
        assert flaws(one, plan.moves, priced) == []
        higher += priced.kind == PRICES
    assert higher


def test_the_fewest_moves_to_a_level_are_found_and_none_is_said_where_no_plan_gets_there() -> None:
    hot = problem([[10.0]] * 5, [(0, [2.0])] * 4)
    assert [fewest_to(hot, level, seconds=10) for level in (0.8, 0.6, 0.4, 0.2, 0.1)] == [0, 1, 2, 3, None]


def test_the_moves_of_the_solver_reach_what_it_says() -> None:
    hot = problem([[10.0]] * 5, [(0, [2.0])] * 4)
    best = solved(hot, 2)
    assert len(best.moves) == 2
    assert best.reached == pytest.approx(0.4)


def test_a_level_is_reachable_from_that_of_the_best_plan_on() -> None:
    one = problem([[1.0], [1.0]], [(0, [0.5]), (0, [0.3]), (1, [0.2])])
    best = solved(one, 1).reached
    assert reachable(one, 1, best * (1 + 1e-6), seconds=10.0) is True
    assert reachable(one, 1, best * (1 - 1e-3), seconds=10.0) is False
