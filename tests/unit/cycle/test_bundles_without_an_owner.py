"""A bundle that no broker serves is neither moved nor split, and counts for no broker."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.cycle import Policy
from controller.cycle.protected import ProtectedBundles
from controller.model.load import UNOWNED, ClusterView
from controller.settings.broker_conf import build
from controller.strategies.catalogue import SHEDDERS, SPLIT_POLICIES
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.rebalance.membership import BrokerMembership, RebalanceOnMembershipChange
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import Broker, broker, bundle, view

NOBODYS = "acme/test/0x00000000_0x80000000"
AT_ONCE = {
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": "0",
    "loadBalancerAvgShedderHitCountHighThreshold": "1",
    "minUnloadMessage": "0",
    "minUnloadMessageThroughput": "0",
    "loadBalancerHistoryResourcePercentage": "0",
}


def cluster() -> ClusterView:
    """The bundle with most load and topics has no owner; the last broker by name has most load."""
    busy = bundle(90, msg_rate=50_000, topics=3000)
    made = view(
        broker("a", usage=0.1, z=bundle(1)),
        broker("b", usage=0.2, y=bundle(2)),
        Broker(
            "c",
            cpu=0.95,
            bundles={NOBODYS: busy, "x1": bundle(40, msg_rate=400), "x2": bundle(50, msg_rate=500)},
        ),
    )
    owner = made.bundles.broker.copy()
    owner[made.bundles.code_of[NOBODYS]] = UNOWNED
    return replace(made, bundles=replace(made.bundles, broker=owner))


@pytest.mark.parametrize("name", SPLIT_POLICIES)
def test_no_policy_splits_it(name: str) -> None:
    policy: Any = build(SPLIT_POLICIES[name], AT_ONCE)
    found, _ = policy.decide(cluster(), policy.initial_memory())
    assert NOBODYS not in {split.bundle for split in found.splits}
    owned = replace(cluster().bundles, broker=np.abs(cluster().bundles.broker))
    found, _ = policy.decide(replace(cluster(), bundles=owned), policy.initial_memory())
    assert NOBODYS in {split.bundle for split in found.splits}


@pytest.mark.parametrize("name", SHEDDERS)
def test_no_shedder_unloads_it(name: str) -> None:
    shedder: Any = build(SHEDDERS[name], AT_ONCE)
    found, _ = shedder.decide(cluster(), shedder.initial_memory())
    assert NOBODYS not in {unload.bundle for unload in found.unloads}


def test_it_is_not_held_back_with_the_last_brokers_bundles() -> None:
    policy = Policy(
        cluster="lab",
        period_ms=60_000,
        shedder=ThresholdShedder(),
        placement=LeastLongTermMessageRate(),
        split_policy=BundleSplitterTask(),
        split_algorithm=RangeEquallyDivide(),
    )
    held = ProtectedBundles.of(cluster(), policy.initial_memory(0), policy).and_bundles_of({"c"})
    names = cluster().bundles.names
    assert {names[row] for row in np.flatnonzero(held.mask).tolist()} == {"x1", "x2"}


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_brokers_that_join_neither_get_it_nor_count_it(protocol: str) -> None:
    rebalance = RebalanceOnMembershipChange(protocol=protocol)
    found, _ = rebalance.decide(cluster(), BrokerMembership(brokers=("b", "c")))
    assert NOBODYS not in {unload.bundle for unload in found.unloads}
    counts: Mapping[str, float | None] = {v.subject: v.observed for v in found.verdicts}
    assert counts["a"] == 1
