"""Which brokers share load, and that a plan of a pool is about the pool alone."""

from dataclasses import replace
from typing import Final

import numpy as np

from controller.model.load import ClusterView
from controller.model.policies import IsolationPolicy, Policies
from controller.planning.objective import owner_after
from controller.planning.problem import PlannedMove
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.pools import PoolProblem, Pools, pools_of
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.balance_problems import problem

FILTERS: Final = (IsolationPolicies(),)
#: acme/own has the brokers a and b to itself.
OWN: Final = Policies(isolation=(IsolationPolicy(namespaces=("acme/own",), primary=("a", "b")),))


def cluster(policies: Policies | None = OWN, at: int = 0, **brokers: tuple[str, int, float]) -> ClusterView:
    """Brokers with so many bundles of a namespace, each of so many MB/s; each MB/s takes 1 % of the CPU."""
    made = [
        Broker(
            f"{name}:80",
            cpu=number * each / 100,
            bundles={
                f"acme/{of}/0x{row:02x}{ord(name):02x}0000_0x{row:02x}{ord(name):02x}ffff": Bundle(
                    mbytes_in=each, producers=3
                )
                for row in range(number)
            },
        )
        for name, (of, number, each) in brokers.items()
    ]
    return cluster_view(*made, policies=policies, as_of_ms=at * 60_000)


def pools(view: ClusterView) -> list[int]:
    found: list[int] = pools_of(view, np.arange(len(view.bundles)), FILTERS).of.tolist()
    return found


def test_without_policies_all_brokers_are_one_pool() -> None:
    assert pools(cluster(None, a=("own", 2, 5.0), b=("own", 2, 5.0), c=("other", 2, 5.0))) == [0, 0, 0]


def test_brokers_that_policies_divide_are_pools_and_one_that_no_bundle_may_use_is_its_own() -> None:
    view = cluster(a=("own", 2, 5.0), b=("own", 1, 5.0), c=("other", 2, 5.0), d=("other", 2, 5.0))
    assert pools(view) == [0, 0, 1, 1]
    closed = Policies(isolation=(*OWN.isolation, IsolationPolicy(namespaces=("acme/later",), primary=("d",))))
    assert pools(cluster(closed, a=("own", 2, 5.0), b=("own", 1, 5.0), c=("other", 2, 5.0), d=("own", 0, 0.0))) == [
        0, 0, 1, 2,
    ]  # fmt: skip


def test_while_a_bundle_is_where_its_policy_does_not_want_it_both_sides_are_one_pool() -> None:
    assert pools(cluster(a=("own", 2, 5.0), b=("other", 1, 5.0), c=("other", 2, 5.0))) == [0, 0, 0]


def test_the_mean_of_a_pool_goes_by_capacity_and_by_how_much_each_broker_counts() -> None:
    two = Pools(of=np.array([0, 1, 0]))
    load, capacity = np.array([[4.0], [9.0], [6.0]]), np.array([[10.0], [10.0], [30.0]])
    assert two.means(load, capacity).ravel().tolist() == [0.25, 0.9, 0.25]
    assert two.means(load, capacity, np.array([1.0, 1.0, 0.0])).ravel().tolist() == [0.4, 0.9, 0.4]
    assert two.holds(np.array([False, False, True])).tolist() == [True, False, True]
    assert [rows.tolist() for rows in two.with_any(np.array([False, False, True]))] == [[0, 2]]


def test_the_moves_of_a_pool_are_those_of_the_cluster_in_its_own_rows() -> None:
    whole = problem([[10.0]] * 4, [(3, [1.0]), (0, [2.0]), (3, [3.0]), (1, [4.0])])
    part = PoolProblem.of(whole, np.array([1, 3]))
    assert (part.problem.size.ravel().tolist(), part.problem.owner.tolist()) == ([1, 3, 4], [1, 1, 0])
    [move] = part.back([PlannedMove(1, 1, 0)])
    assert move == PlannedMove(2, 3, 1)
    assert owner_after(whole, [move]).tolist() == [3, 0, 1, 1]


def test_filters_see_the_moves_of_other_pools_and_of_the_same_plan_as_the_clusters() -> None:
    whole = problem([[10.0]] * 4, [(3, [1.0]), (0, [2.0]), (3, [3.0]), (1, [4.0])])
    part, seen = PoolProblem.of(whole, np.array([1, 3])), []

    def asked(bundle: int, moves: object) -> np.ndarray:
        seen.append((bundle, moves))
        return np.array([True, True, True, False])

    before = PlannedMove(1, 0, 2)
    allowed = part.allowed(asked, [before])
    assert allowed is not None
    assert allowed(0, [PlannedMove(2, 0, 1)]).tolist() == [True, False]
    assert seen == [(0, [before, PlannedMove(3, 1, 3)])]
    assert part.allowed(None, []) is None


def test_a_full_pool_beside_idle_brokers_moves_nothing_and_an_uneven_one_is_levelled_within_itself() -> None:
    shedder = replace(PeakShedder(), hold=1, filters=FILTERS)
    full = cluster(a=("own", 18, 5.0), b=("own", 19, 5.0), c=("other", 4, 5.0), d=("other", 4, 5.0))
    assert shedder.decide(full, PeakHistory())[0].unloads == ()
    uneven = cluster(a=("own", 18, 5.0), b=("own", 6, 5.0), c=("other", 4, 5.0), d=("other", 4, 5.0))
    found = shedder.decide(uneven, PeakHistory())[0].unloads
    assert {(each.source, each.destination) for each in found} == {("a:80", "b:80")}


def test_each_pool_has_its_own_plan_in_the_same_round() -> None:
    shedder = replace(PeakShedder(), hold=1, filters=FILTERS)
    both = cluster(a=("own", 12, 5.0), b=("own", 4, 5.0), c=("other", 10, 5.0), d=("other", 2, 5.0))
    found = shedder.decide(both, PeakHistory())[0].unloads
    assert {(each.source, each.destination) for each in found} == {("a:80", "b:80"), ("c:80", "d:80")}
