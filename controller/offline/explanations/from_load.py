"""What would be decided on recorded load, as ``trimtab decide`` decides it, to be explained."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from controller.cycle import policy_for
from controller.model.pulsar_version import PulsarVersion
from controller.offline.decide import decide_on_load
from controller.offline.explanations.examined import Examined, heard_policy
from controller.offline.explanations.explanation import ExplainedDecision
from controller.offline.recorded_load import notes_on, read_load
from controller.offline.recorded_policy import recorded_policy


def decision_on_load(
    load: Sequence[Path],
    strategy: str,
    broker_conf: Path | None,
    *,
    period_ms: int,
    rounds: int = 1,
    pulsar: PulsarVersion | None = None,
) -> ExplainedDecision:
    """The decision on the last interval of *load* by *strategy*, with the options in *broker_conf*.

    *rounds* and *pulsar*: as in ``trimtab decide``.  Raises SettingsError where the load or an option is invalid.
    """
    policy = recorded_policy(strategy, None, broker_conf, split=False, period_ms=period_ms, pulsar=pulsar)
    recorded = read_load(load, cluster=None, period_ms=period_ms)
    policy = policy_for([recorded.last], policy.initial_memory(0), policy)
    listening, heard = heard_policy(policy)
    found = decide_on_load(recorded.last, listening, rounds=rounds)
    # Without the listeners.
    of_strategies = {name: getattr(policy, name) for name in ("shedder", "selection", "membership")}
    made_of = replace(found.made_of, policy=replace(found.made_of.policy, **of_strategies))
    examined = Examined(
        policy=policy, view=found.view, decision=found.decision, memory=found.memory, heard=heard, made_of=made_of
    )
    return ExplainedDecision(
        cluster=recorded.cluster,
        interval=found.view.as_of_ms,
        source="load",
        summary=found.decision.summary,
        pulsar=found.decision.pulsar,
        commands=tuple((command, None) for command in found.decision.commands),
        verdicts=found.decision.verdicts,
        policy=policy,
        examined=examined,
        notes=tuple(notes_on(recorded, found.view.brokers.names)),
    )
