"""Plans that a person asks for, of bundles with policies: these say where a bundle goes, not whether it leaves."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from controller.offline.plans.planner import PlannedCluster, PlanRequest, planned_cluster
from controller.offline.plans.source import PlanSource, source_of_load
from controller.offline.plans.today import today
from controller.planning.plans.plan import BALANCE, DRAIN, REMOVE, RESTART

T = 1_800_000_000_000
EXTENSIBLE = "loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl\n"
MODULAR = "loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl\n"
BOTH = pytest.mark.parametrize("manager", [MODULAR, EXTENSIBLE], ids=["modular", "extensible"])
RANGE = "0x00000000_0xffffffff"


def bundle(namespace: str) -> str:
    return f"acme/{namespace}/{RANGE}"


def records(
    brokers: dict[str, list[str]],
    *,
    group: str = "",
    policies: Mapping[str, object] | None = None,
    msg_rate: float = 100,
) -> list[dict[str, object]]:
    """Brokers with one bundle of each of these namespaces: all in the anti-affinity *group*, or with *policies*."""
    made: list[dict[str, object]] = []
    head = {"v": 1, "cluster": "lab"}
    for namespace in sorted(name for names in brokers.values() for name in names):
        state = {"boundaries": ["0x00000000", "0xffffffff"], "isolationPolicies": [policies] if policies else []}
        state |= {"antiAffinityGroup": group} if group else {}
        made.append({**head, "type": "namespace_state", "namespace": f"acme/{namespace}", "version": T, **state})
    for broker, names in brokers.items():
        rates = {"msgRateIn": msg_rate, "msgRateOut": 0.0, "msgThroughputIn": 5e5, "msgThroughputOut": 0.0}
        totals = {**rates, "producerCount": 1, "consumerCount": 1, "topics": 1}
        of_topics = {key: [value] for key, value in totals.items() if key != "topics"}
        stats = [
            {
                "bundle": bundle(name),
                "totals": totals,
                "topic": [f"persistent://acme/{name}/t"],
                **of_topics,
            }
            for name in names
        ]
        counted = {"numTopics": len(names), "numBundles": len(names), "numProducers": len(names)}
        load = {
            "cpu": {"usage": 40.0 * len(names), "limit": 400},
            "memory": {"usage": 1000, "limit": 4000},
            "directMemory": {"usage": 0, "limit": 4000},
            "bandwidthIn": {"usage": 4000.0 * len(names), "limit": 10_000_000},
            "bandwidthOut": {"usage": 0.0, "limit": 10_000_000},
        }
        sweep = {"interval": T, "sweepId": broker, "chunk": 0, "chunks": 1, "lastUpdate": T}
        total = {key: value * len(names) for key, value in rates.items()}
        counted["numConsumers"] = len(names)
        made.append(
            {**head, "type": "broker_sweep", "broker": broker, **sweep, **load, **total, **counted}
            | {"bundleStats": stats}
        )
    return made


def cluster(folder: Path, conf: str, made: list[dict[str, object]]) -> PlanSource:
    file, options = folder / "load.jsonl", folder / "broker.conf"
    file.write_text("\n".join(map(json.dumps, made)))
    options.write_text(conf)
    return source_of_load([file], options, cluster=None, period_ms=60_000)


def where(found: PlannedCluster) -> dict[str, str]:
    """Bundle -> broker, after all moves."""
    plan = found.plan
    owner = plan.before(len(plan.steps)).owner
    return {name: plan.brokers[broker] for name, broker in zip(plan.bundles, owner.tolist(), strict=True)}


@BOTH
def test_bundles_of_an_anti_affinity_group_leave_a_drained_broker(tmp_path: Path, manager: str) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": ["n1"]}, group="apart")
    found = planned_cluster(cluster(tmp_path, manager, made), PlanRequest(kind=DRAIN, brokers=("b0:8080",)))
    assert found.stays == {}
    assert where(found)[bundle("n0")] == "b1:8080"


@BOTH
def test_the_other_brokers_keep_the_group_as_far_apart_as_they_can(tmp_path: Path, manager: str) -> None:
    made = records({"b0:8080": ["n0", "n1", "n2"], "b1:8080": ["n3"], "b2:8080": [], "b3:8080": []}, group="apart")
    found = planned_cluster(cluster(tmp_path, manager, made), PlanRequest(kind=DRAIN, brokers=("b0:8080",)))
    assert found.stays == {}
    assert sorted(Counter(where(found).values()).values()) == [1, 1, 2]


@BOTH
@pytest.mark.parametrize("kind", [RESTART, REMOVE])
def test_a_restart_and_a_removal_move_them_as_well(tmp_path: Path, manager: str, kind: str) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": ["n1"], "b2:8080": ["n2"]}, group="apart")
    asked = PlanRequest(kind=kind, number=1 if kind == REMOVE else 0)  # type: ignore[arg-type]
    assert planned_cluster(cluster(tmp_path, manager, made), asked).stays == {}


@BOTH
def test_a_restart_by_failure_domain_moves_them_as_well(tmp_path: Path, manager: str) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": ["n1"]}, group="apart")
    of_brokers = {"v": 1, "cluster": "lab", "type": "broker_state", "version": T}
    made[:0] = [{**of_brokers, "broker": f"b{n}:8080", "failureDomain": f"zone-{n}"} for n in range(2)]
    source = cluster(tmp_path, f"{manager}failureDomainsEnabled=true\n", made)
    assert planned_cluster(source, PlanRequest(kind=RESTART, by_zone=True)).stays == {}


@BOTH
def test_a_move_that_a_person_names_is_possible(tmp_path: Path, manager: str) -> None:
    made = records({"b0:8080": ["n0", "n1"], "b1:8080": []}, group="apart")
    found = planned_cluster(cluster(tmp_path, manager, made), PlanRequest(named=((bundle("n0"), "b1:8080"),)))
    assert found.stays == {}
    assert where(found)[bundle("n0")] == "b1:8080"


def test_a_shedding_option_keeps_no_bundle_on_a_drained_broker(tmp_path: Path) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": ["n1"]})
    conf = f"{EXTENSIBLE}loadBalancerSheddingExcludedNamespaces=acme/n0\n"
    found = planned_cluster(cluster(tmp_path, conf, made), PlanRequest(kind=DRAIN, brokers=("b0:8080",)))
    assert found.stays == {}
    assert len(found.plan.moves) == 1


def test_a_balance_leaves_bundles_with_policies_where_they_are_as_the_shedder_does(tmp_path: Path) -> None:
    made = records({"b0:8080": ["n0", "n1", "n2", "n3"], "b1:8080": []}, group="apart")
    assert planned_cluster(cluster(tmp_path, EXTENSIBLE, made), PlanRequest(kind=BALANCE)).plan.moves == ()


def isolated(primary: str, secondary: list[str]) -> dict[str, object]:
    """A policy of all namespaces."""
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "100"}}
    return {
        "namespaces": ["acme/.*"],
        "primary": [primary],
        "secondary": secondary,
        "auto_failover_policy": failover,
    }


@BOTH
def test_an_isolation_policy_still_says_where_a_bundle_may_go(tmp_path: Path, manager: str) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": []}, policies=isolated("b0", []))
    found = planned_cluster(cluster(tmp_path, manager, made), PlanRequest(kind=DRAIN, brokers=("b0:8080",)))
    assert found.stays == {bundle("n0"): "filters allow no other: without IsolationPolicy there is one"}


@BOTH
def test_where_the_last_primary_broker_is_drained_a_secondary_one_gets_the_bundle(tmp_path: Path, manager: str) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": [], "b2:8080": []}, policies=isolated("b0", ["b2"]))
    found = planned_cluster(cluster(tmp_path, manager, made), PlanRequest(kind=DRAIN, brokers=("b0:8080",)))
    assert found.stays == {}
    assert where(found)[bundle("n0")] == "b2:8080"


@BOTH
def test_where_the_brokers_with_the_least_of_the_group_are_full_the_next_ones_get_the_bundle(
    tmp_path: Path, manager: str
) -> None:
    made = records({"b0:8080": ["n0"], "b1:8080": ["n1"], "b2:8080": []}, group="apart")
    made[-1]["cpu"] = {"usage": 395.0, "limit": 400}
    source = cluster(tmp_path, manager, made)
    plan = planned_cluster(source, PlanRequest(kind=DRAIN, brokers=("b0:8080",))).plan
    assert [plan.brokers[move.destination] for move in plan.moves] == ["b1:8080"]
    now = today(plan, 0, source, tolerance=0.25)  # `trimtab apply` agrees
    assert now.changed == ()
    assert len(now.waves) == 1
