from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
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


def test_where_all_that_is_kept_is_overloaded_filters_give_way_but_for_binding_ones() -> None:
    assert acceptable(Only((3,))) == [2]
    assert acceptable(Only((3,)), Allowed((0, 3))) == [0]
    assert acceptable(Allowed((3,))) == [3]


def test_filters_hold_even_then_if_the_operator_says_so() -> None:
    assert acceptable(Only((3,)), keep_filters=True) == [3]
