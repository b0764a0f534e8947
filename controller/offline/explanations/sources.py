"""The decision that is to be explained: from the journal, from a recording, or made on recorded load."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from controller.adapters.recordings.reading import Recording
from controller.cycle import Policy, policy_for
from controller.log.factory import log_system
from controller.log.recent import ReadEntry, decided_at, entries_backwards, recent_results
from controller.log.tail import LogTail
from controller.model.decision import Command, Decision
from controller.model.errors import NothingFoundError, WireError
from controller.model.journal import JournalEntry
from controller.model.pulsar_version import PulsarVersion
from controller.offline.decide import decide_on_load, recorded_policy
from controller.offline.decided_again import decided_again
from controller.offline.explanations.examined import Examined, examine, observed_policy
from controller.offline.explanations.explanation import ExplainedDecision
from controller.offline.reconstruction import snapshot_at
from controller.offline.recorded_load import notes_on, read_load
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.status.decisions import kept_verdicts
from controller.wire.journal import to_decision
from controller.wire.readable import utc
from controller.wire.results import Result, decode_result

_NO_JOURNAL = "the recording has no journal of this cluster, so it is not known whether the live run decided the same"
_OTHERWISE = (
    "replaying the decisions up to here gives another result than the recorded journal; this explains the replayed"
    " decision: `trimtab replay` shows the first difference"
)


def recorded_decision(recording: Recording, interval: int | None) -> ExplainedDecision:
    """The last decision of *recording*, or the last one that is not after *interval*, epoch ms, by its own settings.

    TrimtabError where there is none, or the recording cannot be read.
    """
    again = decided_again(recording, interval)
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
    by_command: dict[str, Result] = {}
    for record in recording.read("results", recording.extents("results")):
        try:
            result = decode_result(record.value, cluster=policy.cluster, period_ms=policy.period_ms)
        except WireError:
            continue
        if isinstance(result, Result):
            by_command.setdefault(result.id, result)
    return by_command


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
    listening, answers = observed_policy(policy)
    decided = decide_on_load(recorded.last, listening, rounds=rounds)
    # Without the listeners.
    of_strategies = {name: getattr(policy, name) for name in ("shedder", "selection", "membership")}
    made_of = replace(decided.made_of, policy=replace(decided.made_of.policy, **of_strategies))
    examined = Examined(
        policy=policy,
        view=decided.view,
        decision=decided.decision,
        memory=decided.memory,
        answers=answers,
        made_of=made_of,
    )
    return ExplainedDecision(
        cluster=recorded.cluster,
        interval=decided.view.as_of_ms,
        source="load",
        summary=decided.decision.summary,
        pulsar=decided.decision.pulsar,
        commands=tuple((command, None) for command in decided.decision.commands),
        verdicts=decided.decision.verdicts,
        policy=policy,
        examined=examined,
        notes=tuple(notes_on(recorded, decided.view.brokers.names)),
    )


_NO_MEMORY = "the journal no longer has the memory that this decision began with, so it cannot be replayed"
_NO_LOAD = "the log no longer has the load of this interval, so the findings about each broker are not known"
_OTHERWISE = (
    "replaying the decision gives another result: settings may have changed since, or averages began before the part"
    " of the log that was read (--intervals); what is said about each broker is that of the replayed decision"
)
_NO_VERDICTS = "the verdicts of this interval are no longer stored, or are on another machine (journal.verdicts_path)"


def journalled_decision(settings: Settings, interval: int | None, *, before: int) -> ExplainedDecision:
    """The newest decision, or the newest one that is not after *interval*, epoch ms.

    *before*: this many intervals before it are read from the log, too.  NothingFoundError where there is none.
    """
    tail, cluster, policy = log_system(settings).tail(), settings.cluster.name, read_policy(settings)
    record = _newest(tail, cluster, interval).record
    decision = to_decision(record)
    examined, why_not = _again(tail, settings, policy, decision.interval, before)
    reproduced = None if examined is None else _moves(examined.decision) == _moves(decision)
    verdicts = kept_verdicts(settings, decision.interval)
    if verdicts is None and examined is not None and reproduced:
        verdicts = examined.decision.verdicts
    notes = [why_not, "" if reproduced is not False else _OTHERWISE, _NO_VERDICTS if verdicts is None else ""]
    results = recent_results(settings, decision.interval) if decision.commands else {}
    return ExplainedDecision(
        cluster=cluster,
        interval=decision.interval,
        source="journal",
        summary=decision.summary,
        pulsar=decision.pulsar,
        commands=tuple((command, results.get(command.id)) for command in decision.commands),
        verdicts=verdicts,
        policy=policy if decision.pulsar is None else policy.on(decision.pulsar.version),
        examined=examined,
        reproduced=reproduced,
        notes=tuple(filter(None, notes)),
    )


def _newest(tail: LogTail, cluster: str, interval: int | None) -> ReadEntry:
    for read in entries_backwards(tail, cluster):
        if interval is None or read.record.interval <= interval:
            return read
    when = "" if interval is None else f" at or before {utc(interval)}"
    raise NothingFoundError(f"the journal has no decision about cluster {cluster!r}{when}: see `trimtab journal`")


def _again(
    tail: LogTail, settings: Settings, policy: Policy, interval: int, before: int
) -> tuple[Examined | None, str]:
    """The decision of *interval* made again; or None, and why that is not possible."""
    earlier, entry = decided_at(tail, settings.cluster.name, interval)
    if entry is None or (earlier is None and not _is_first(entry)):
        return None, _NO_MEMORY
    snapshot = snapshot_at(tail, settings, policy, interval, before=before)
    if snapshot is None:
        return None, _NO_LOAD
    memory = policy.initial_memory(settings.decisions.seed) if earlier is None else earlier.memory
    return examine(snapshot, memory, entry.controls, policy), ""


def _is_first(entry: JournalEntry) -> bool:
    return entry.memory.samples == 1


def _moves(decision: Decision) -> list[tuple[str, str, str, str, tuple[int, ...]]]:
    """What *decision* does, without the numbers in its reasons."""
    return [_move(command) for command in decision.commands]


def _move(command: Command) -> tuple[str, str, str, str, tuple[int, ...]]:
    return command.action, command.bundle, command.source, command.destination, command.boundaries
