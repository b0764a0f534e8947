"""The decisions in the journal, the newest first, and those of them that a person looks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from controller.adapters.factory import verdict_store
from controller.log.factory import log_system
from controller.log.recent import ReadEntry, entries_backwards, recent_results
from controller.model.controls import Pause
from controller.model.decision import Command, Reason, Verdict
from controller.model.pulsar_version import VersionInUse
from controller.settings.trimtab_toml import Settings
from controller.wire.journal import to_controls, to_decision
from controller.wire.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Which decisions are looked for; what is None, or False, does not matter."""

    bundle: str | None = None
    #: As source or as destination of a command, or as the subject of a verdict.
    broker: str | None = None
    reason: Reason | None = None
    #: First and last interval, epoch ms.
    since: int | None = None
    until: int | None = None
    #: Only decisions with commands.
    issued: bool = False

    @property
    def by_content(self) -> bool:
        """Whether commands and verdicts are looked through."""
        return (self.bundle, self.broker, self.reason) != (None, None, None)

    def takes_command(self, command: Command) -> bool:
        """Whether *command* is one of those that are looked for."""
        return (
            self.bundle in (None, command.bundle)
            and self.broker in (None, command.source, command.destination)
            and self.reason in (None, command.why.reason)
        )

    def takes_verdict(self, verdict: Verdict) -> bool:
        """Whether *verdict* is one of those that are looked for."""
        subjects = (self.bundle, self.broker)
        return (subjects == (None, None) or verdict.subject in subjects) and self.reason in (None, verdict.reason)

    def takes_summary(self, summary: str) -> bool:
        """Whether *summary* gives the reason for which all commands were held back; verdicts may be gone by then."""
        about = (self.bundle, self.broker) == (None, None)
        return about and self.reason is not None and f": {self.reason}, " in summary


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDecision:
    """A decision, and what of it is looked for."""

    interval: int
    summary: str
    mode: str
    paused: bool
    stale: bool
    by: str
    reason: str
    pauses: tuple[Pause, ...]
    #: The version of Pulsar that decided.
    pulsar: VersionInUse | None
    #: With the results that have come.
    commands: tuple[tuple[Command, Result | None], ...]
    #: None: those of this interval are not kept any more, or they were not looked for.
    verdicts: tuple[Verdict, ...] | None


def decisions(settings: Settings, wanted_filter: DecisionFilter, limit: int) -> list[FoundDecision]:
    """The newest *limit* decisions that match *wanted_filter*, newest first.  TrimtabError: the log cannot be read."""
    matching = list(islice(_matching(settings, wanted_filter), limit))
    if not any(commands for _, commands, _ in matching):
        results = {}
    else:
        results = dict(recent_results(settings, matching[-1][0].record.interval))
    return [
        FoundDecision(
            interval=read.record.interval,
            summary=read.record.summary,
            mode=read.record.controls.mode,
            paused=read.record.controls.paused,
            stale=read.record.controls.stale,
            by=read.record.controls.by,
            reason=read.record.controls.reason,
            pauses=to_controls(read.record.controls).pauses,
            pulsar=to_decision(read.record).pulsar,
            commands=tuple((command, results.get(command.id)) for command in commands),
            verdicts=verdicts,
        )
        for read, commands, verdicts in matching
    ]


def kept_verdicts(settings: Settings, interval: int) -> tuple[Verdict, ...] | None:
    """The verdicts of *interval*, epoch ms; None where they are not kept, or are on another machine."""
    try:
        return verdict_store(settings).read(interval)
    except FileNotFoundError:
        return None


def _matching(
    settings: Settings, wanted_filter: DecisionFilter
) -> Iterator[tuple[ReadEntry, list[Command], tuple[Verdict, ...] | None]]:
    for read in entries_backwards(log_system(settings).tail(), settings.cluster.name):
        record = read.record
        if wanted_filter.since is not None and record.interval < wanted_filter.since:
            return
        if wanted_filter.until is not None and record.interval > wanted_filter.until:
            continue
        if wanted_filter.issued and not record.commands:
            continue
        commands = [command for command in to_decision(record).commands if wanted_filter.takes_command(command)]
        verdicts = (
            kept_verdicts(settings, record.interval) if wanted_filter.by_content and not wanted_filter.issued else None
        )
        verdicts = None if verdicts is None else tuple(filter(wanted_filter.takes_verdict, verdicts))
        if commands or verdicts or not wanted_filter.by_content or wanted_filter.takes_summary(record.summary):
            yield read, commands, verdicts
