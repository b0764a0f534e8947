"""What is known of a journalled decision: its entry, its verdicts while they are kept, and the decision made again."""

from controller.adapters.opened import log_system
from controller.adapters.recent import ReadEntry, decided_at, entries_backwards, recent_results
from controller.cycle import Policy
from controller.model.decision import Command, Decision
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.offline.explanations.examined import Examined, examine
from controller.offline.explanations.explanation import ExplainedDecision
from controller.offline.reconstruction import snapshot_at
from controller.ports.systems import LogTail
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.status.decisions import kept_verdicts
from controller.wire.journal import to_decision
from controller.wire.readable import utc

_NO_MEMORY = "the journal no longer has the memory that this decision began with, so it cannot be made again"
_NO_LOAD = "the log no longer has the load of this interval, so what was found about each broker is not known"
_OTHERWISE = (
    "made again, the decision comes out otherwise: settings may have changed since, or averages began before what was"
    " read of the log (--intervals); what is said about each broker is that of the decision made again"
)
_NO_VERDICTS = "the verdicts of this interval are not kept any more, or are on another machine (journal.verdicts_path)"


def journalled_decision(settings: Settings, wanted: int | None, *, before: int) -> ExplainedDecision:
    """The newest decision, or the newest one that is not after *wanted*, epoch ms.

    *before*: so many intervals before it are read of the log, too.  TrimtabError where there is none.
    """
    tail, cluster, policy = log_system(settings).tail(), settings.cluster.name, read_policy(settings)
    record = _newest(tail, cluster, wanted).record
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


def _newest(tail: LogTail, cluster: str, wanted: int | None) -> ReadEntry:
    for read in entries_backwards(tail, cluster):
        if wanted is None or read.record.interval <= wanted:
            return read
    when = "" if wanted is None else f" at or before {utc(wanted)}"
    raise TrimtabError(f"the journal has no decision about cluster {cluster!r}{when}: see `trimtab journal`")


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
