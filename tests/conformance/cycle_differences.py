"""Recorded cycles of Pulsar's load managers over several rounds, and what trimtab decides about the same rounds.

Each round begins with the cluster that Pulsar's classes had, so that one difference is not the cause of the next.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any, Final

import numpy as np

from controller.cycle import Policy, decide
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Decision, Reason
from controller.model.load import ClusterView
from controller.model.memory import BrokerHitCounts, Memory, RoundRobinTurn, TransferHistory, UsageHistory
from controller.model.policies import Policies
from controller.model.records import CommandResult
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, close_to, isolation_policies, resources

_PERIOD_MS: Final = 60_000
_MINUTE_MS: Final = 60_000
#: Of trimtab's pick among brokers that are as good as each other; the driver's is the same.
_SEED: Final = 7
#: Intervals since the start, so that no guardrail waits for more.
_SETTLED: Final = 9
_SPLIT: Final = "loadBalancerAutoBundleSplitEnabled"
_ALGORITHMS: Final = "range_equally_divide,specified_positions_divide"
#: What the driver sets for a bundle's averages.
_SHORT_SAMPLES: Final = 10
_LONG_SAMPLES: Final = 50


def differences(case: Case) -> Iterator[str]:
    """What trimtab decides or remembers otherwise, in the first round with a difference."""
    policy = _policy(case["config"])
    rounds = case["input"]["rounds"]
    memory = replace(policy.initial_memory(_SEED), last_interval=rounds[0]["t"] - _PERIOD_MS, samples=_SETTLED)
    results: list[CommandResult] = []
    counters: Mapping[str, int] = {}
    for nth, (given, expected) in enumerate(zip(rounds, case["expected"]["rounds"], strict=True)):
        before, view = memory, _view(given, case["input"])
        decision, memory = decide(view, results, before, Controls(mode="active"), policy)
        found = [
            *_of_recent(before, given, policy),
            *_of_commands(decision, expected),
            *_of_memory(memory, expected, {broker["name"] for broker in given["brokers"]}),
            *_of_reason(decision, counters, expected.get("counters", {})),
        ]
        yield from (f"round {nth}: {one}" for one in found)
        if found:
            return
        counters = expected.get("counters", {})
        results = [CommandResult(id=command.id, status="done") for command in decision.commands]


def _policy(config: Mapping[str, Any]) -> Policy:
    """The policy of these options, without guardrails: Pulsar has none."""
    words = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}
    split = words.pop(_SPLIT, "false") == "true"
    words["supportedNamespaceBundleSplitAlgorithms"] = _ALGORITHMS
    made = policy_of(words, DecisionSettings(mode="active", split=split), GuardrailSettings(), 1, "lab", _PERIOD_MS)
    return replace(made, limits=Limits())


def _view(given: Mapping[str, Any], fixed: Mapping[str, Any]) -> ClusterView:
    brokers, bundles = given["brokers"], dict(sorted(given["bundles"].items()))
    names = [broker["name"] for broker in brokers]
    usage, limit = resources(brokers)
    owner = np.array([names.index(bundle["owner"]) for bundle in bundles.values()], np.int64)
    short_term = _rows(bundle["st"] for bundle in bundles.values())
    counts = {
        key: np.array([bundle[key] for bundle in bundles.values()], np.int64)
        for key in ("topics", "producers", "consumers")
    }
    view = cluster_view(
        broker_table(
            names,
            usage=usage,
            limit=limit,
            load=_rows(broker["load"] for broker in brokers),
            long_term=_rows(broker["long_term"] for broker in brokers),
            bundle_count=np.bincount(owner, minlength=len(names)),
        ),
        bundle_table(
            list(bundles),
            owner,
            load=short_term,
            short_term=short_term,
            long_term=_rows(bundle["lt"] for bundle in bundles.values()),
            short_samples=np.full(len(bundles), _SHORT_SAMPLES),
            long_samples=np.full(len(bundles), _LONG_SAMPLES),
            **counts,
        ),
        recently_unloaded=[name for name in given["recently_unloaded"] if name in bundles],
    )
    alive = {*names, *given.get("missing", ())}
    policies = Policies(
        isolation=isolation_policies(fixed["isolation"]),
        anti_affinity_group=fixed["anti_affinity"],
        failure_domain=fixed["domains"],
        broker_version={name: version for name, version in fixed["versions"].items() if name in alive},
    )
    topics = np.array([broker["topics"] for broker in brokers], np.int64)
    return replace(
        view,
        as_of_ms=given["t"],
        brokers=replace(view.brokers, topic_count=topics),
        policies=policies,
        missing=tuple(given.get("missing", ())),
    )


def _rows(loads: Iterable[list[float]]) -> Any:
    return np.array(list(loads), np.float64).reshape(-1, 4)


def _of_recent(memory: Memory, given: Mapping[str, Any], policy: Policy) -> Iterator[str]:
    since = given["t"] - policy.balancer.grace_period_minutes * _MINUTE_MS
    ours = {name for name, at in memory.recently_unloaded.items() if at >= since}
    theirs = set(given["recently_unloaded"])
    if ours != theirs:
        yield f"recently unloaded: {sorted(ours)}, Pulsar: {sorted(theirs)}"


def _of_commands(decision: Decision, expected: Mapping[str, Any]) -> Iterator[str]:
    ours = {c.bundle: [c.source, c.destination] for c in decision.commands if c.action == "unload"}
    # An unload to its own broker closes a bundle for nothing: trimtab leaves it where it is.
    theirs = {name: [source, to] for name, source, to in expected.get("unloads", ()) if source != to}
    yield from _apart("unloads", ours, theirs)
    splits = {c.bundle: c.unload_after_split for c in decision.commands if c.action == "split"}
    of_pulsar = {name: unloaded == "true" for name, unloaded in expected.get("splits", ())}
    yield from _apart("splits", splits, of_pulsar)


def _apart(what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """The entries that are not the same."""
    names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if names:
        yield f"{what}: " + ", ".join(f"{name}: {ours.get(name)}, Pulsar: {theirs.get(name)}" for name in names)


def _of_memory(memory: Memory, expected: Mapping[str, Any], reporting: Set[str]) -> Iterator[str]:
    shedder, placement = memory.shedder, memory.placement
    ours: dict[str, Any] = {}
    if isinstance(shedder, UsageHistory):
        ours["usage_history"] = shedder.usage
    if isinstance(placement, UsageHistory):
        ours["placement_history"] = placement.usage
    if isinstance(placement, RoundRobinTurn):
        ours["placements"] = placement.count
    if isinstance(shedder, TransferHistory):
        # A broker without new data keeps its averages; Pulsar's are with the broker itself.
        averages = {name: value for name, value in shedder.weighted_max_ema.items() if name in reporting}
        ours |= {"usage_history": averages, "hit_count": shedder.hit_count}
    if isinstance(shedder, BrokerHitCounts):
        ours |= {"hit_high": shedder.high, "hit_low": shedder.low}
    for name, value in ours.items():
        theirs = expected.get(name, {})
        if value != close_to(theirs):
            yield from _apart(name, *(one if isinstance(one, Mapping) else {"all": one} for one in (value, theirs)))


def _of_reason(decision: Decision, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    """Why TransferShedder did nothing, where its counters say so."""
    skipped = {name.removeprefix("Skip/") for name, count in after.items() if count > before.get(name, 0)}
    theirs = {name for name in skipped if "/" not in name}
    ours = {str(verdict.reason) for verdict in decision.verdicts if verdict.subject == CLUSTER}
    if Reason.BALANCED in ours:
        ours.add(Reason.HIT_COUNT)  # Pulsar's word for both
    if not theirs <= ours:
        yield f"reasons: {sorted(ours)}, Pulsar: {sorted(theirs)}"
