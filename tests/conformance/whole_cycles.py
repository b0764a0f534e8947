"""From a whole-cycle vector to the cycle's inputs: a cluster, a policy, and one interval decided."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from controller.cycle import decide
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.policies import Policies
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from tests.cluster import INTERVAL, Broker, Bundle, bundle, view
from tests.conformance.vectors import Case, isolation_policies

_MINUTE = 60_000


def check(case: Case) -> None:
    """One interval comes to what is expected: who moves where, what is split, and the reason for the whole."""
    given, expected = case["input"], case["expected"]
    made = _decided(case["config"], given)
    moves = {one.bundle: (one.source, one.destination) for one in made.commands if one.action == "unload"}
    splits = {one.bundle: [one.source, one.unload_after_split] for one in made.commands if one.action == "split"}
    assert {name: source for name, (source, _) in moves.items()} == {
        name: source for name, (source, _) in expected["moves"].items()
    }
    for name, (_, destination) in moves.items():
        assert destination in expected["moves"][name][1]
    assert splits == expected.get("splits", {})
    if "reason" in expected:
        assert Reason(expected["reason"]) in {v.reason for v in made.verdicts if _of_the_whole(v)}


def _of_the_whole(verdict: Verdict) -> bool:
    return verdict.subject == "cluster"


def _decided(config: Mapping[str, Any], given: Mapping[str, Any]) -> Decision:
    conf = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}
    made = policy_of(
        conf, DecisionSettings(mode="active"), GuardrailSettings(brokers_balance_unknown="ignore"), 1, "lab", _MINUTE
    )
    # Pulsar has no guardrails.
    policy = replace(made, limits=Limits())
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - _MINUTE, samples=10)
    decision, _ = decide(_view(given), [], memory, Controls(mode="active"), policy)
    return decision


def _view(given: Mapping[str, Any]) -> ClusterView:
    brokers, bundles = given["brokers"], given["bundles"]
    made = view(
        *(
            Broker(
                name,
                cpu=broker["usage"],
                bundles={key: _bundle(one) for key, one in bundles.items() if one["broker"] == name},
            )
            for name, broker in brokers.items()
        ),
        recently_unloaded=given.get("recently_unloaded", ()),
    )
    topics = np.array([brokers[name].get("topics", 0) for name in made.brokers.names], np.int64)
    policies = Policies(
        isolation=isolation_policies(given.get("isolation", {})),
        anti_affinity_group=given.get("anti_affinity", {}),
        failure_domain={name: one["domain"] for name, one in brokers.items() if "domain" in one},
        broker_version={name: one["version"] for name, one in brokers.items() if "version" in one},
    )
    return replace(
        made,
        brokers=replace(made.brokers, topic_count=topics),
        policies=policies,
        missing=tuple(given.get("missing", ())),
    )


def _bundle(given: Mapping[str, Any]) -> Bundle:
    """A bundle of messages of 1 MB, unless its message rate is given."""
    return bundle(**{key: value for key, value in given.items() if key != "broker"})
