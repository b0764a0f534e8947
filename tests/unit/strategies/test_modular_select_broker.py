from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.candidates import Candidates
from controller.strategies.filters.bundles_with_policies import BundlesWithPolicies
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.protocols import Anchor, Filter
from tests.cluster import broker, view

#: Rows 0 to 3, the first of which owns the bundle; the emptier, the later.
CLUSTER = view(
    broker("w", usage=0.5, x=40), broker("x", usage=0.5, y=30), broker("y", usage=0.5, z=20), broker("z", usage=0.9)
)
PLACEMENT = LeastLongTermMessageRate()


@dataclass(frozen=True)
class Only:
    """Keeps these rows."""

    rows: tuple[int, ...]
    binding: ClassVar[bool] = False
    reason: ClassVar[Reason] = Reason.EXCLUDED

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        return candidates[np.isin(candidates, self.rows)]


class Every:
    """A placement to which all brokers are equally good."""

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,
        candidates: Ints,
        memory: NoMemory,
    ) -> tuple[Ints, NoMemory]:
        return candidates, memory


class Allowed(Only):
    binding: ClassVar[bool] = True


class Staying(Only):
    def may_leave(self, view: ClusterView, bundle: int, candidates: Ints) -> bool:
        return len(candidates) > 2


def found(*filters: Filter) -> Candidates:
    return ModularSelectBroker().candidates(CLUSTER, 0, filters)


def acceptable(*filters: Filter, cluster: ClusterView = CLUSTER, **options: Any) -> list[int]:
    select = ModularSelectBroker(**options)
    rows, _ = select.acceptable(
        cluster, 0, select.candidates(cluster, 0, filters), PLACEMENT, PLACEMENT.initial_memory()
    )
    return [int(row) for row in rows]


def test_each_filter_sees_what_the_ones_before_left_binding_ones_first() -> None:
    made = found(Only((1, 2)), Allowed((0, 1, 3)))
    assert (made.allowed.tolist(), made.remaining.tolist()) == ([0, 1, 3], [1])
    assert [left.tolist() for _, left in made.steps] == [[0, 1, 3], [1]]


def test_where_filters_leave_none_the_allowed_brokers_are_back() -> None:
    assert found(Allowed((1, 2)), Only((3,))).remaining.tolist() == [1, 2]
    assert found(Allowed(()), Only((3,))).remaining.tolist() == []


def test_the_first_filter_that_excludes_a_broker_is_named() -> None:
    allowed, first, second = Allowed((0, 1, 2)), Only((0, 1)), Only((0,))
    made = found(allowed, first, second)
    assert [made.excludes(row) for row in range(4)] == [None, second, first, allowed]


def test_the_first_filter_that_leaves_only_the_own_broker_is_named() -> None:
    first, second = Only((0, 1)), Only((0,))
    assert found(first, second).leaves_only(0) is second
    assert found(first, second).leaves_only(1) is None
    assert found(Allowed(()), first).leaves_only(0) == Allowed(())
    assert found().leaves_only(0) is None


def test_a_filter_that_finds_a_bundle_better_off_where_it_is_is_asked_about_the_allowed_brokers() -> None:
    staying = Staying((0, 1, 2, 3))
    assert found(Allowed((0, 1)), Only((0,)), staying).anchored(CLUSTER, 0) is staying
    assert found(Allowed((0, 1, 2)), Only((0,)), staying).anchored(CLUSTER, 0) is None
    assert isinstance(BundlesWithPolicies(), Anchor)


def test_the_placement_chooses_among_what_the_filters_keep() -> None:
    assert acceptable() == [2]
    assert acceptable(Only((0, 1))) == [1]
    assert acceptable(Allowed(())) == []


def test_where_all_that_is_kept_is_overloaded_filters_give_way_but_for_binding_ones() -> None:
    assert acceptable(Only((3,))) == [2]
    assert acceptable(Only((3,)), Allowed((0, 3))) == [0]
    assert acceptable(Allowed((3,))) == [3]


def test_filters_hold_even_then_if_the_operator_says_so() -> None:
    assert acceptable(Only((3,)), keep_filters=True) == [3]


def test_overloaded_is_above_the_threshold() -> None:
    assert acceptable(Only((3,)), overloaded_percent=90) == [3]


def test_of_equally_good_brokers_an_overloaded_one_is_not_taken_while_another_is_not() -> None:
    rows, _ = ModularSelectBroker().acceptable(CLUSTER, 0, found(Only((1, 3))), Every(), NoMemory())
    assert rows.tolist() == [1]
