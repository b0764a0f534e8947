"""A drain of bundles in anti-affinity groups, from the plan to the last unload, with the real engine."""

from dataclasses import replace
from pathlib import Path

import pytest

from controller.model.records import NamespaceState
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.planning.plans.plan import DRAIN
from controller.wire.base import encode
from controller.wire.metrics import NamespaceStateRecord
from tests import live_cluster
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in

pytestmark = pytest.mark.slow

BROKER = "broker-1:8080"
EXTENSIBLE = (
    "loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl\n"
    "loadBalancerLoadSheddingStrategy=TransferShedder\n"
)


def in_a_group(cluster: str, state: NamespaceState) -> tuple[str, bytes]:
    wire = NamespaceStateRecord(
        cluster=cluster,
        namespace=state.namespace,
        version=state.version,
        boundaries=state.boundaries,
        anti_affinity_group="apart",
    )
    return state.namespace, encode(wire)


@pytest.mark.parametrize("conf", [QUIET, EXTENSIBLE], ids=["modular", "extensible"])
def test_a_drain_moves_bundles_of_an_anti_affinity_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: str
) -> None:
    monkeypatch.setattr(live_cluster, "namespace_record", in_a_group)
    live = LiveCluster(settings_in(tmp_path, broker_conf=conf, more=SETTINGS))
    source = live.source()
    assert {source.view.policies.group_of(name) for name in source.view.bundles.namespaces} == {"apart"}
    before = live.bundles_on(BROKER)
    assert before
    asked = PlanRequest(kind=DRAIN, brokers=(BROKER,), wave_moves=3, wave_moves_per_broker=3)
    plan = planned_cluster(source, asked).plan
    found = live.run(plan).run()
    assert (found.done, found.left_behind) == (len(before), ())
    assert live.bundles_on(BROKER) == []


def test_no_broker_gets_more_than_its_share_of_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_cluster, "namespace_record", in_a_group)
    live = LiveCluster(settings_in(tmp_path, broker_conf=EXTENSIBLE, more=SETTINGS))
    plan = planned_cluster(live.source(), replace(PlanRequest(kind=DRAIN), brokers=(BROKER,))).plan
    owner = plan.before(len(plan.steps)).owner.tolist()
    others = [owner.count(row) for row, name in enumerate(plan.brokers) if name != BROKER]
    begun = [plan.problem.owner.tolist().count(row) for row, name in enumerate(plan.brokers) if name != BROKER]
    assert max(others) <= max(max(begun), -(-len(owner) // len(others)))
