"""A decision of a recording, made again from its records, to be explained."""

from controller.adapters.long_work import long_work, pieces
from controller.adapters.recordings.reading import Recording
from controller.cycle import Policy
from controller.model.errors import TrimtabError, WireError
from controller.offline.explanations.examined import examine
from controller.offline.explanations.explanation import ExplainedDecision
from controller.offline.record_texts import begin_of
from controller.offline.replay import LogReplay, Replay
from controller.wire.readable import utc
from controller.wire.results import Result, decode_result

_NO_JOURNAL = "the recording has no journal of this cluster: whether the live run decided so is not known"
_OTHERWISE = (
    "made again, the decisions up to here come out otherwise than in the recorded journal; what is said is that of the"
    " decision made again: `trimtab replay` tells the first difference"
)


def recorded_decision(recording: Recording, wanted: int | None) -> ExplainedDecision:
    """The last decision of *recording*, or the last one that is not after *wanted*, epoch ms, by its own settings.

    Every interval up to it is decided again.  TrimtabError where there is none, or the recording cannot be read.
    """
    settings, cluster = recording.manifest.settings, recording.manifest.cluster
    policy = settings.policy(cluster)
    again = LogReplay(recording, settings, policy, begin_of(recording))
    replay = Replay(recording, settings, policy)
    with long_work("replaying, records", again.size(), pieces) as tell:
        for snapshot in again.snapshots(tell):
            if wanted is not None and snapshot.interval > wanted:
                break
            replay.decide([snapshot])
    newest = replay.newest
    if newest is None:
        when = "" if wanted is None else f" at or before {utc(wanted)}"
        raise TrimtabError(f"{recording.where} has no decision{when}: `trimtab what-if` shows what it spans")
    [snapshot], told = newest.snapshots, replay.ended(None)
    same = told.comparison.first is None if told.has_journal else None
    examined = examine(snapshot, newest.memory, newest.controls, policy)
    results = _results(recording, policy)
    decision = examined.decision
    return ExplainedDecision(
        cluster=cluster,
        interval=snapshot.interval,
        source="recording",
        summary=decision.summary,
        commands=tuple((command, results.get(command.id)) for command in decision.commands),
        verdicts=decision.verdicts,
        policy=policy,
        examined=examined,
        reproduced=same,
        notes={None: (_NO_JOURNAL,), False: (_OTHERWISE,), True: ()}[same],
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
