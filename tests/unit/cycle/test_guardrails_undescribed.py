"""Bundles of namespaces that no record describes stay where they are."""

from dataclasses import replace
from typing import Any

from controller.cycle import decide
from controller.cycle.limits import Limits
from controller.model.decision import Decision, Reason
from tests.cluster import INTERVAL, broker, bundle, view
from tests.unit.cycle.test_cycle import ACTIVE, HEARTBEAT, POLICY, WARM, moved, split, verdicts

KNOWN, UNKNOWN = "acme/known/0x00000000_0x80000000", "acme/unknown/0x00000000_0x80000000"


def cycle(*, topics: int = 1, move_undescribed: bool = False) -> Decision:
    hot: dict[str, Any] = {UNKNOWN: bundle(60, topics=topics), KNOWN: bundle(40, topics=topics), HEARTBEAT: bundle(1)}
    seen = view(
        broker("hot", usage=0.9, **hot),
        broker("cold", usage=0.1, z=5),
        bundle_count={"acme/unknown": -1, "pulsar/hot:8080": -1},
    )
    policy = replace(POLICY, limits=Limits(move_undescribed=move_undescribed))
    return decide(replace(seen, as_of_ms=INTERVAL), [], WARM, ACTIVE, policy)[0]


def test_they_are_not_unloaded_and_bundle_and_namespace_get_a_verdict() -> None:
    decision = cycle()
    assert moved(decision) == [(KNOWN, "cold")]
    assert verdicts(decision, UNKNOWN) == [(Reason.NAMESPACE_UNKNOWN, "guardrails.move_undescribed")]
    (of_cluster,) = [v for v in decision.verdicts if v.unit == "namespaces"]
    assert (of_cluster.observed, of_cluster.unit) == (1, "namespaces")
    assert of_cluster.detail == "no namespace_state of acme/unknown: their bundles stay where they are"


def test_they_are_not_split() -> None:
    assert split(cycle(topics=101)) == [KNOWN]


def test_they_move_if_move_undescribed_is_set() -> None:
    assert moved(cycle(move_undescribed=True)) == [(UNKNOWN, "cold")]
