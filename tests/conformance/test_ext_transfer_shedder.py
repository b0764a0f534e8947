"""No case is order-sensitive: brokers and bundles are given in the order in which Pulsar went through them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from controller.model.decision import Reason
from controller.model.names import namespace_of
from controller.strategies.shedding.transfer_shedder import (
    BrokerLoads,
    Exchange,
    Gate,
    LoadStore,
    Round,
    TopBundle,
    TransferShedder,
)
from tests.conformance.vectors import Case, close_to, configured, floats

COMPONENT = "ext_transfer_shedder"
NOW = 1_700_000_040_000


def test_the_same_bundles_go_to_the_same_brokers(case: Case) -> None:
    shedder = configured(TransferShedder, case["config"])
    hit_count, spread, skipped = 0, [0.0, 0.0], Counter[str]()
    for given, expected in zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True):
        unloaded = {name: NOW - age for name, age in given["recently_unloaded_brokers_age_ms"].items()}
        found = shedder.plan(_store(given, shedder, policies=case["input"]["with_policies"]), hit_count, unloaded)
        hit_count = found.hit_count
        decisions = _decisions(found)
        if not decisions:
            skipped[f"Skip/{found.reason}"] += 1
        assert decisions == expected["decisions"]
        assert hit_count == expected["condition_hit_count"]
        assert dict(skipped) == expected["counters_total"]
        assert sorted(found.ready.recently_unloaded) == sorted(expected["recently_unloaded_brokers_after"])
        if found.average is not None and found.std is not None:
            spread = [found.average, found.std]
        assert spread == close_to([expected["load_avg"], expected["load_std"]])


def _store(given: Mapping[str, Any], shedder: TransferShedder, *, policies: bool) -> LoadStore:
    brokers = given["brokers"]
    load = floats([broker["weighted_max_ema"] for broker in brokers])
    loads = BrokerLoads(
        names=tuple(broker["name"] for broker in brokers),
        load=load,
        throughput_ema=floats([broker["msg_throughput_ema"] for broker in brokers]),
        throughput=floats([broker["msg_throughput_in"] for broker in brokers])
        + floats([broker["msg_throughput_out"] for broker in brokers]),
        updated_at_ms=np.array([NOW - broker["age_ms"] for broker in brokers], np.int64),
    )
    reports = {broker["name"]: broker["top_bundles"] for broker in brokers}

    def report(broker: str) -> Sequence[TopBundle]:
        return [TopBundle(name, float(into) + float(out)) for name, into, out in reports[broker] or ()]

    return LoadStore(
        now_ms=NOW,
        loads=loads,
        order=np.argsort(load, kind="stable"),
        available=given["available_brokers"],
        bundles_of=report,
        gate=_gate(given, shedder, policies=policies),
    )


def _gate(given: Mapping[str, Any], shedder: TransferShedder, *, policies: bool) -> Gate:
    """The recorded classes ran with stubs, or without any policies: then nobody asks whether a broker is there."""
    stub = given.get("policies", {}) if policies else {}
    recent, others = set(given["recently_unloaded_bundles"]), set(stub.get("not_owned_bundles", ()))
    bound, spaces = set(stub.get("anti_affinity_bundles", ())), set(stub.get("isolation_namespaces", ()))
    allowed = stub.get("bundle_allowed_brokers", {})
    everywhere = set(given["available_brokers"])

    def stays(bundle: str, broker: str) -> Reason | None:
        return Reason.RECENTLY_UNLOADED if bundle in recent | others else None

    def barred(bundle: str, destination: str) -> Reason | None:
        has_policies = bundle in bound or namespace_of(bundle) in spaces
        if has_policies and not shedder.with_policies:
            return Reason.EXCLUDED
        may = not policies or (destination in everywhere and destination in allowed.get(bundle, everywhere))
        return None if may else Reason.EXCLUDED

    return Gate(stays=stays, barred=barred, retained=lambda _bundle, _broker: None)


def _decisions(found: Round) -> dict[str, list[str | None]]:
    """Bundle -> source, destination, label and reason."""
    return {
        move.bundle: [move.source, move.destination or None, f"Success/{attempt.why.reason}"]
        for attempt in found.attempts
        if isinstance(attempt.outcome, Exchange)
        for move in attempt.outcome.moves
    }
