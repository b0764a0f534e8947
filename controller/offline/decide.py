"""Decides on a recorded load without issuing commands: the real fold and the real engine, on its last interval.

The guardrails for a new controller, for old data and for budgets do not apply: the answer is that of the strategies.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy, policy_for, view_of
from controller.cycle.limits import Limits
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.errors import SettingsError
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.pulsar_version import PulsarVersion
from controller.offline.flips import Redecision
from controller.settings.broker_conf import origin_of, read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import PLACEMENT, SHEDDER, needed_by
from controller.settings.policy import versioned_policy
from controller.settings.trimtab_toml import DecisionSettings


def recorded_policy(
    strategy: str,
    placement: str | None,
    broker_conf: Path | None,
    *,
    split: bool,
    period_ms: int,
    pulsar: PulsarVersion | None = None,
) -> Policy:
    """The policy of the options.  What --strategy needs besides is the default of the other options.

    *pulsar*: the version of Pulsar; None: what the load says.
    """
    file = broker_conf or Path(os.devnull)
    conf = read_broker_conf(file, os.environ)
    own = needed_by(strategy)
    classes = {SHEDDER: strategy} | ({} if placement is None else {PLACEMENT: placement})
    decisions = DecisionSettings(mode="active", split=split)
    try:
        merged = {**own, **{k: v for k, v in conf.items() if v}, **classes}
        return versioned_policy(merged, decisions, GuardrailSettings(), 1, "", period_ms, pulsar=pulsar)
    except SettingsError as error:
        where = "--strategy, --placement"
        if broker_conf is not None:
            where = f"{where}, {origin_of(file, os.environ)}"
        raise SettingsError(f"{where}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDecision:
    """The decision, and the round in which it was made."""

    view: ClusterView
    decision: Decision
    #: After the decision.
    memory: Memory
    round: int
    #: What the decision was made of.
    made_of: Redecision


def decide_on_load(last: Snapshot, policy: Policy, *, seed: int = 0, rounds: int = 1) -> LoadDecision:
    """Decide on *last*, the only shard of an interval: up to *rounds* times, until something moves.

    A round is one shedding interval after the one before, with the same load and whatever the strategies remember.
    """
    policy = _unhindered(policy_for([last], policy.initial_memory(seed), policy))
    memory = policy.initial_memory(seed)
    view = _with_bundle_counts(view_of([last], memory, policy))

    def same_load(now: Sequence[Snapshot], _memory: Memory, _policy: Policy) -> ClusterView:
        return replace(view, as_of_ms=now[0].interval)

    step = policy.balancer.shedding_interval_ms
    # The next time that bundles are unloaded at all.
    begin = -(-view.as_of_ms // step) * step
    for number in range(1, rounds + 1):
        now = replace(last, interval=begin + (number - 1) * step)
        controls = Controls(mode="active")
        entry = decide_interval([now], memory, controls, policy, same_load)
        made_of = Redecision(
            view=replace(view, as_of_ms=now.interval),
            results=now.results,
            memory=memory,
            controls=controls,
            policy=policy,
        )
        if entry.decision.commands:
            break
        memory = entry.memory
    return LoadDecision(view=view, decision=entry.decision, memory=entry.memory, round=number, made_of=made_of)


def _unhindered(policy: Policy) -> Policy:
    """*policy* without the guardrails: how long the controller has been there, how whole its data is, budgets."""
    step = policy.balancer.shedding_interval_ms
    balancer = replace(policy.balancer, enabled=True)
    # A gap is measured in periods: rounds are no gaps.
    period_ms = max(step, policy.period_ms)
    return replace(policy, period_ms=period_ms, balancer=balancer, warm_up_samples=1, limits=Limits())


def _with_bundle_counts(view: ClusterView) -> ClusterView:
    """*view*, in which a namespace whose bundles nobody told has at least those that brokers list."""
    listed = np.bincount(view.bundles.namespace, minlength=len(view.bundles.namespaces))
    counts = view.namespace_bundle_count
    return replace(view, namespace_bundle_count=np.where(counts < 0, listed, counts))
