"""Decisions and plans for clusters in which some brokers serve no persistent, or no non-persistent topics."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from controller.offline.decide import LoadDecision, decide_on_load, recorded_policy
from controller.offline.plans.planner import PlannedCluster, PlanRequest, planned_cluster
from controller.offline.plans.source import PlanSource, source_of_load
from controller.offline.recorded_load import read_load
from controller.planning.plans.plan import BALANCE, DRAIN, REMOVE, RESTART
from controller.strategies.catalogue import SHEDDERS

pytestmark = pytest.mark.slow

T = 1_800_000_000_000
EXTENSIBLE = "loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl\n"
MODULAR = "loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl\n"
MANAGERS = pytest.mark.parametrize("manager", [MODULAR, EXTENSIBLE], ids=["modular", "extensible"])
#: A shedder of each load manager.
SHEDDER_OF = {MODULAR: "ThresholdShedder", EXTENSIBLE: "TransferShedder"}
OF_EXTENSIBLE = {"TransferShedder", "PeakShedder"}
BOTH_WITH_EVERY_STRATEGY = [
    *((MODULAR, name) for name in SHEDDERS if name != "TransferShedder"),
    *((EXTENSIBLE, name) for name in SHEDDERS if name in OF_EXTENSIBLE),
]
HEAD = {"v": 1, "cluster": "lab"}
NO_NON_PERSISTENT, NO_PERSISTENT = {"nonPersistentTopicsEnabled": False}, {"persistentTopicsEnabled": False}
P, N = ("persistent",), ("non-persistent",)
HOT, COLD, WARM = "b0:8080", "b1:8080", "b2:8080"
PARTS = [f"0x{part << 29:08x}_0x{min((part + 1) << 29, 0xFFFFFFFF):08x}" for part in range(8)]


def bundle(part: int) -> str:
    return f"acme/np/{PARTS[part]}"


def sweep(broker: str, cpu: float, bundles: Mapping[int, Sequence[str]]) -> dict[str, Any]:
    """A sweep of *broker* at *cpu* percent, evenly of its *bundles*: part -> the domains of its topics."""
    each: dict[str, Any] = {"msgRateIn": 1000.0, "msgRateOut": 1000.0, "msgThroughputIn": 2e7, "msgThroughputOut": 2e7}
    stats: list[dict[str, Any]] = [
        {
            "bundle": bundle(part),
            "totals": {**each, "producerCount": 2, "consumerCount": 2, "topics": len(domains)},
            "topic": [f"{domain}://acme/np/t{i}" for i, domain in enumerate(domains)],
            **{name: [rate / len(domains)] * len(domains) for name, rate in each.items()},
            **{name: [1] * len(domains) for name in ("producerCount", "consumerCount")},
        }
        for part, domains in bundles.items()
    ]
    number = len(bundles)
    share = {name: {"usage": 10.0 * cpu, "limit": 1000} for name in ("bandwidthIn", "bandwidthOut")}
    return {
        **HEAD,
        "type": "broker_sweep",
        "broker": broker,
        "interval": T,
        "sweepId": broker,
        "chunk": 0,
        "chunks": 1,
        "lastUpdate": T,
        "cpu": {"usage": 4.0 * cpu, "limit": 400},
        **share,
        "memory": {"usage": 1, "limit": 400},
        "directMemory": {"usage": 0, "limit": 400},
        **{name: rate * number for name, rate in each.items()},
        **dict.fromkeys(("numTopics", "numBundles", "numProducers", "numConsumers"), number),
        "bundleStats": stats,
    }


def namespace(*policies: Mapping[str, object]) -> dict[str, Any]:
    edges = [part[:10] for part in PARTS] + ["0xffffffff"]
    state = {"namespace": "acme/np", "version": T, "boundaries": edges, "isolationPolicies": [*policies]}
    return {**HEAD, "type": "namespace_state", **state}


def modes(broker: str, switched_off: Mapping[str, bool]) -> dict[str, Any]:
    return {**HEAD, "type": "broker_state", "broker": broker, "version": T, **switched_off}


def uneven(
    kinds: Sequence[str], cold: Mapping[str, bool], *policies: Mapping[str, object], warm: Mapping[str, bool]
) -> list[dict[str, Any]]:
    """A hot broker with four bundles of topics of these *kinds*, a cold and a warm one: what those switch off."""
    hot = sweep(HOT, 90, dict.fromkeys(range(4), kinds))
    return [
        namespace(*policies),
        *(modes(COLD, cold), modes(WARM, warm)),
        *(hot, sweep(COLD, 5, {}), sweep(WARM, 10, {})),
    ]


def file_of(folder: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    file = folder / "load.jsonl"
    file.write_text("\n".join(map(json.dumps, records)))
    return file


def decided(folder: Path, manager: str, strategy: str, records: Sequence[Mapping[str, Any]]) -> LoadDecision:
    options = folder / "broker.conf"
    options.write_text(manager)
    policy = recorded_policy(strategy, None, options, split=False, period_ms=60_000)
    load = read_load([file_of(folder, records)], cluster=None, period_ms=60_000)
    return decide_on_load(load.last, policy, rounds=8)


def destinations(found: LoadDecision) -> set[str]:
    return {str(command.destination) for command in found.decision.commands}


def source(folder: Path, manager: str, records: Sequence[Mapping[str, Any]]) -> PlanSource:
    options = folder / "broker.conf"
    options.write_text(manager)
    return source_of_load([file_of(folder, records)], options, cluster=None, period_ms=60_000)


def moved(found: PlannedCluster) -> set[str]:
    return {found.plan.brokers[move.destination] for move in found.plan.moves}


@pytest.mark.parametrize(("manager", "strategy"), BOTH_WITH_EVERY_STRATEGY)
@pytest.mark.parametrize(("kinds", "cold"), [(N, NO_NON_PERSISTENT), (P, NO_PERSISTENT), (P + N, NO_PERSISTENT)])
def test_no_strategy_sends_a_bundle_where_its_topics_are_not_served(
    tmp_path: Path, manager: str, strategy: str, kinds: Sequence[str], cold: Mapping[str, bool]
) -> None:
    assert destinations(decided(tmp_path, manager, strategy, uneven(kinds, cold, warm={}))) <= {WARM}
    nowhere = uneven(kinds, cold, warm=cold)
    assert destinations(decided(tmp_path, manager, strategy, nowhere)) == set()


@MANAGERS
def test_what_a_broker_does_not_serve_is_no_reason_against_other_bundles(tmp_path: Path, manager: str) -> None:
    for kinds, cold in ((P, NO_NON_PERSISTENT), (N, NO_PERSISTENT), (("segment",), NO_NON_PERSISTENT)):
        found = decided(
            tmp_path, manager, SHEDDER_OF[manager], uneven(kinds, cold, warm=NO_NON_PERSISTENT | NO_PERSISTENT)
        )
        assert destinations(found) == {COLD}


@MANAGERS
def test_a_verdict_says_that_no_broker_serves_all_kinds_of_a_bundle(tmp_path: Path, manager: str) -> None:
    records = uneven(P + N, NO_PERSISTENT, warm=NO_NON_PERSISTENT)
    verdicts = decided(tmp_path, manager, SHEDDER_OF[manager], records).decision.verdicts
    assert "TopicKinds" in {str(each.reason) for each in verdicts if each.subject.startswith("acme/np/")}


def primary(host: str, secondary: Sequence[str] = ()) -> dict[str, object]:
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "100"}}
    names = {"namespaces": ["acme/np"], "primary": [host], "secondary": [*secondary]}
    return {**names, "auto_failover_policy": failover}


@MANAGERS
def test_under_an_isolation_policy_a_primary_broker_has_to_serve_the_topics_too(tmp_path: Path, manager: str) -> None:
    options = f"{manager}loadBalancerSheddingBundlesWithPoliciesEnabled=true\n"
    both = uneven(N, NO_NON_PERSISTENT, primary("b."), warm={})
    # TransferShedder asks for the emptiest broker alone.
    allowed = [{WARM}] if manager == MODULAR else [{WARM}, set()]
    assert destinations(decided(tmp_path, options, SHEDDER_OF[manager], both)) in allowed
    one = uneven(N, NO_NON_PERSISTENT, primary("b[01]", ["b2"]), warm={})
    assert destinations(decided(tmp_path, options, SHEDDER_OF[manager], one)) == set()
    found = planned_cluster(source(tmp_path, manager, one), PlanRequest(kind=DRAIN, brokers=(HOT,)))
    assert found.plan.moves == ()
    assert set(found.stays.values()) <= {
        "filters allow no other: without TopicKinds there is one",
        "filters allow no other: without IsolationPolicy or TopicKinds there is one",
        "filters allow no other: without TopicKinds or IsolationPolicy there is one",
    }


@MANAGERS
@pytest.mark.parametrize(
    "asked",
    [
        PlanRequest(kind=DRAIN, brokers=(HOT,)),
        PlanRequest(kind=RESTART),
        PlanRequest(kind=RESTART, by_zone=True),
        PlanRequest(kind=REMOVE, number=1),
        PlanRequest(kind=BALANCE),
    ],
    ids=lambda asked: f"{asked.kind}{' by zone' * asked.by_zone}",
)
def test_no_plan_sends_a_bundle_where_its_topics_are_not_served(
    tmp_path: Path, manager: str, asked: PlanRequest
) -> None:
    records = uneven(N, NO_NON_PERSISTENT, warm={})
    if asked.by_zone:
        zones = {HOT: "z0", COLD: "z1", WARM: "z2"}
        switched_off: dict[str, Mapping[str, bool]] = {HOT: {}, COLD: NO_NON_PERSISTENT, WARM: {}}
        records[1:3] = [{**modes(name, off), "failureDomain": zones[name]} for name, off in switched_off.items()]
    found = planned_cluster(source(tmp_path, manager, records), asked)
    assert COLD not in moved(found)
    assert found.stays == {}


@MANAGERS
def test_a_drain_leaves_what_nobody_else_serves_and_says_why(tmp_path: Path, manager: str) -> None:
    records = uneven(N, NO_NON_PERSISTENT, warm=NO_NON_PERSISTENT)
    found = planned_cluster(source(tmp_path, manager, records), PlanRequest(kind=DRAIN, brokers=(HOT,)))
    assert found.plan.moves == ()
    why = "filters allow no other: without TopicKinds there is one"
    assert found.stays == {bundle(part): why for part in range(4)}


@MANAGERS
def test_a_move_that_a_person_names_is_refused_with_the_reason(tmp_path: Path, manager: str) -> None:
    records = uneven(N, NO_NON_PERSISTENT, warm={})
    found = planned_cluster(
        source(tmp_path, manager, records), PlanRequest(named=((bundle(0), COLD), (bundle(1), WARM)))
    )
    assert moved(found) == {WARM}
    assert list(found.stays) == [bundle(0)]
    assert "TopicKinds" in found.stays[bundle(0)]


@MANAGERS
def test_where_an_anti_affinity_group_would_rather_have_a_broker_that_serves_no_such_topics_another_one_is_taken(
    tmp_path: Path, manager: str
) -> None:
    records = uneven(P, NO_PERSISTENT, warm={})
    records[0]["antiAffinityGroup"] = "apart"
    records[-3:] = [sweep(HOT, 40, dict.fromkeys(range(4), P)), sweep(COLD, 5, {}), sweep(WARM, 10, {7: P})]
    found = planned_cluster(source(tmp_path, manager, records), PlanRequest(kind=DRAIN, brokers=(HOT,)))
    assert moved(found) == {WARM}
    assert found.stays == {}


def reported(folder: Path, name: str, cpu: float, bundles: Sequence[int], **said: bool) -> dict[str, Any]:
    """A load report as brokers write it, without an envelope and without names of topics."""
    one = sweep(name, cpu, dict.fromkeys(bundles, P))
    resources = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
    kept = (*resources, "msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut", "lastUpdate", "numTopics")
    also = ("numBundles", "numProducers", "numConsumers")
    stats = {each["bundle"]: each["totals"] for each in one["bundleStats"]}
    return {"webServiceUrl": f"http://{name}", **{key: one[key] for key in (*kept, *also)}, "lastStats": stats, **said}


def test_load_reports_of_brokers_say_what_these_serve_and_a_bundle_may_hold_all_of_it(tmp_path: Path) -> None:
    def taken(hot: Mapping[str, bool]) -> set[str]:
        records = [
            reported(tmp_path, HOT, 90, range(4), **hot),
            reported(tmp_path, COLD, 5, (), **NO_NON_PERSISTENT),
            reported(tmp_path, WARM, 10, ()),
        ]
        return destinations(decided(tmp_path, MODULAR, "ThresholdShedder", records))

    assert taken({}) == {WARM}
    assert COLD in taken(NO_NON_PERSISTENT)
