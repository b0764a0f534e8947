"""Plays the rounds of a recorded run of Pulsar's load manager, and compares each round with the cycle's decision."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from controller.cycle import Policy, decide
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.policies import Policies
from controller.model.records import CommandResult
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.pulsar_versions import options_of
from tests.conformance.vectors import Case, floats, isolation_policies, resources, rows_of_4

_MINUTE = 60_000
#: The seed that the recorded run drew its random choices from.
_SEED = 7
#: On or off in trimtab.toml.
_SPLITS = "loadBalancerAutoBundleSplitEnabled"


def played(case: Case, **conf: str) -> Iterator[tuple[Mapping[str, Any], Decision, Memory]]:
    """Each round: what is expected of it, the decision, and the memory after it; *conf*: more options.

    trimtab decides as the release of Pulsar whose answers these are.
    Each round begins with the recorded cluster.
    """
    policy = _policy({**options_of(case["pulsar"]), **case["config"]}, conf)
    rounds = case["input"]["rounds"]
    memory = replace(policy.initial_memory(_SEED), last_interval=rounds[0]["t"] - _MINUTE, samples=9)
    results: list[CommandResult] = []
    for given, expected in zip(rounds, case["expected"]["rounds"], strict=True):
        view = _view(given, case["input"])
        assert _in_grace(memory, view, policy) == set(given["recently_unloaded"]) & {*view.bundles.names}
        made, memory = decide(view, results, memory, Controls(mode="active"), policy)
        results = [CommandResult(id=command.id, status="done") for command in made.commands]
        yield expected, made, memory


def check_commands(expected: Mapping[str, Any], made: Decision) -> None:
    """The *made* decision unloads and splits what is *expected*."""
    unloads = {c.bundle: (c.source, c.destination) for c in made.commands if c.action == "unload"}
    splits = {c.bundle: str(c.unload_after_split).lower() for c in made.commands if c.action == "split"}
    assert unloads == {bundle: (source, to) for bundle, source, to in expected["unloads"]}
    assert splits == dict(expected["splits"])


def _policy(config: Mapping[str, Any], more: Mapping[str, str]) -> Policy:
    given = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}
    decisions = DecisionSettings(mode="active", split=given.pop(_SPLITS, "false") == "true")
    # Pulsar has no guardrails.
    return replace(policy_of({**given, **more}, decisions, GuardrailSettings(), 0, "lab", _MINUTE), limits=Limits())


def _in_grace(memory: Memory, view: ClusterView, policy: Policy) -> set[str]:
    since = view.as_of_ms - policy.balancer.grace_period_minutes * _MINUTE
    return {name for name, t in memory.recently_unloaded.items() if t >= since} & {*view.bundles.names}


def _view(given: Mapping[str, Any], world: Mapping[str, Any]) -> ClusterView:
    brokers = sorted(given["brokers"], key=lambda broker: broker["name"])
    bundles = dict(sorted(given["bundles"].items()))
    names = [broker["name"] for broker in brokers]
    owner = np.array([names.index(bundle["owner"]) for bundle in bundles.values()], np.int64)
    missing = given.get("missing", ())
    usage, limit = resources(brokers)
    table = broker_table(
        names,
        usage=usage,
        limit=limit,
        load=rows_of_4([broker["load"] for broker in brokers]),
        long_term=rows_of_4([broker["long_term"] for broker in brokers]),
        bundle_count=np.bincount(owner, minlength=len(names)),
    )
    short_term = rows_of_4([bundle["st"] for bundle in bundles.values()])
    view = cluster_view(
        replace(table, topic_count=_column(brokers, "topics")),
        bundle_table(
            list(bundles),
            owner,
            load=short_term,
            short_term=short_term,
            long_term=rows_of_4([bundle["lt"] for bundle in bundles.values()]),
            long_samples=np.full(len(bundles), 50),
            topics=_column(bundles.values(), "topics"),
            producers=_column(bundles.values(), "producers"),
            consumers=_column(bundles.values(), "consumers"),
        ),
        recently_unloaded=[name for name in given["recently_unloaded"] if name in bundles],
        policies=Policies(
            isolation=isolation_policies(world["isolation"]),
            anti_affinity_group=world["anti_affinity"],
            failure_domain=world["domains"],
            broker_version={name: version for name, version in world["versions"].items() if name in {*names, *missing}},
        ),
    )
    return replace(view, as_of_ms=given["t"], missing=tuple(missing))


def _column(rows: Collection[Mapping[str, Any]], key: str) -> Any:
    numbers: Sequence[Any] = [row[key] for row in rows]
    return floats(numbers).astype(np.int64)
