"""Commands without a result: shows whether any executor is working."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controller.log.recent import journal_tail, recent_results
from controller.model.decision import Command
from controller.model.memory import InFlight
from controller.settings.trimtab_toml import Settings
from controller.wire.readable import counted, utc
from controller.wire.results import Result

#: Commands of so many decisions are looked at.
RECENT_DECISIONS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """Active commands without a result; at least one."""

    commands: int
    #: T of the oldest, epoch ms.
    since_ms: int
    #: Whether an executor answered any command after that; and whether it answered any of the recent ones.
    answered_since: bool
    answered_before: bool

    def nobody_executes(self, now_ms: float, *, executors: int, settings: Settings) -> bool:
        """Whether no executor works, given the number of registered *executors*.

        An executor without write access to the registry works all the same, and a slow one answers late.  So any sign
        of an executor gives it the time that a command may take.
        """
        if self.answered_since:
            return False
        patience_seconds = settings.decisions.executor_timeout_seconds + settings.intervals.period_seconds
        shows_itself = executors or self.answered_before
        return not shows_itself or now_ms - self.since_ms > patience_seconds * 1000

    def __str__(self) -> str:
        return f"{counted(self.commands, 'command')} without an answer since {utc(self.since_ms)}"


def unanswered(
    commands: Iterable[Command], in_flight: Mapping[str, InFlight], results: Mapping[str, Result]
) -> Unanswered | None:
    """Those of *commands* and of *in_flight*, at the last decision, that are not in *results*; dry runs do not count.

    None if there are none.
    """
    since = {key: each.interval for key, each in in_flight.items() if not each.dry_run}
    since |= {each.id: each.interval for each in commands if each.mode != "dry_run"}
    open_since = [interval for key, interval in since.items() if key not in results]
    if not open_since:
        return None
    return Unanswered(
        commands=len(open_since),
        since_ms=min(open_since),
        answered_since=any(result.finished_at >= min(open_since) for result in results.values()),
        answered_before=bool(results),
    )


def recent_unanswered(settings: Settings, in_flight: Mapping[str, InFlight]) -> Unanswered | None:
    """What the log says now.  TrimtabError where it cannot be read."""
    decisions = journal_tail(settings, RECENT_DECISIONS).decisions
    commands = [command for decision in decisions for command in decision.commands]
    intervals = [*(each.interval for each in commands), *(each.interval for each in in_flight.values())]
    results = recent_results(settings, min(intervals)) if intervals else {}
    return unanswered(commands, in_flight, results)
