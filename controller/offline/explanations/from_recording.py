"""A decision of a recording, made again from its records, to be explained."""

from controller.adapters.recordings.reading import Recording
from controller.cycle import Policy
from controller.model.errors import WireError
from controller.offline.decided_again import decided_again
from controller.offline.explanations.examined import examine
from controller.offline.explanations.explanation import ExplainedDecision
from controller.wire.results import Result, decode_result

_NO_JOURNAL = "the recording has no journal of this cluster: whether the live run decided so is not known"
_OTHERWISE = (
    "made again, the decisions up to here come out otherwise than in the recorded journal; what is said is that of the"
    " decision made again: `trimtab replay` tells the first difference"
)


def recorded_decision(recording: Recording, wanted: int | None) -> ExplainedDecision:
    """The last decision of *recording*, or the last one that is not after *wanted*, epoch ms, by its own settings.

    TrimtabError where there is none, or the recording cannot be read.
    """
    again = decided_again(recording, wanted)
    policy, made_of = again.policy, again.interval
    [snapshot] = made_of.snapshots
    examined = examine(snapshot, made_of.memory, made_of.controls, policy)
    results = _results(recording, policy)
    decision = examined.decision
    return ExplainedDecision(
        cluster=policy.cluster,
        interval=snapshot.interval,
        source="recording",
        summary=decision.summary,
        pulsar=decision.pulsar,
        commands=tuple((command, results.get(command.id)) for command in decision.commands),
        verdicts=decision.verdicts,
        policy=examined.policy,
        examined=examined,
        reproduced=again.same,
        notes={None: (_NO_JOURNAL,), False: (_OTHERWISE,), True: ()}[again.same],
    )


def _results(recording: Recording, policy: Policy) -> dict[str, Result]:
    """Command id -> its first result."""
    found: dict[str, Result] = {}
    for record in recording.read("results", recording.extents("results")):
        try:
            result = decode_result(record.value, cluster=policy.cluster, period_ms=policy.period_ms)
        except WireError:
            continue
        if isinstance(result, Result):
            found.setdefault(result.id, result)
    return found
