"""Results of commands: they end the time in flight, and after a failure the bundle gets no command for a while.

A command is in flight until its result comes, or until it is lost: its executor can no longer answer.  After a failure
the bundle rests (no commands about it), twice as long after each further failure, since a quick retry would mostly fail
again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controller.model.decision import Reason, Verdict
from controller.model.memory import Failed, InFlight, Memory
from controller.model.records import CommandResult

_HOUR_MS: Final = 3_600_000
_SETTLED_WELL: Final = frozenset({"done", "already_done", "obsolete", "skipped", "dry_run"})
#: An executor began it, and it failed or may have failed; or none believes that a controller issued it.
_WENT_WRONG: Final = frozenset({"failed", "unknown", "refused"})
#: No executor began it: the bundle was not unloaded.
_NEVER_BEGUN: Final = frozenset({"expired", "fenced", "refused"})
_MOVED: Final = frozenset({"done", "already_done"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a result, and how long a bundle rests after a failure."""

    #: A command without a result is lost this long after it expired: time for the executor and for its result.
    lost_after_ms: int
    #: Rest after a bundle's first failure; it doubles with each further one, up to an hour (or this, if longer).
    retry_after_ms: int

    def rests_for_ms(self, failed: Failed) -> int:
        """How long a bundle rests after its last failure, ms."""
        longest = max(self.retry_after_ms, _HOUR_MS)
        doublings = min(failed.times - 1, longest.bit_length())
        return min(self.retry_after_ms << doublings, longest)


def settle(
    memory: Memory, results: Iterable[CommandResult], interval: int, patience: Patience
) -> tuple[Memory, list[Verdict]]:
    """Remove answered and lost commands from those in flight, and remember failures, as of *interval*.

    Commands that were never begun no longer count against budgets.  Failures count for the breaker, except dry runs'.
    """
    in_flight, unloaded, issued = dict(memory.in_flight), dict(memory.recently_unloaded), dict(memory.issued)
    dry_run_unloaded = dict(memory.dry_run_unloaded)
    failed = dict(_not_forgotten(memory.failed, interval, patience))
    verdicts, went_wrong, succeeded = [], list[str](), False
    for result in results:
        command = in_flight.pop(result.id, None)
        if command is None:
            continue
        if result.status in _WENT_WRONG:
            failed[command.bundle] = _failed_again(failed.get(command.bundle), command, interval)
            went_wrong += [] if command.dry_run else [result.id]
        elif result.status in _MOVED:
            failed.pop(command.bundle, None)
            succeeded = True
        if result.status in _NEVER_BEGUN:
            issued.pop(result.id, None)
            grace = dry_run_unloaded if command.dry_run else unloaded
            if grace.get(command.bundle) == command.interval:
                del grace[command.bundle]
        verdicts.append(_verdict_of(command, result))
    for key, command in sorted(in_flight.items()):
        if interval > command.expires_at_ms + patience.lost_after_ms:
            del in_flight[key]
            went_wrong += [] if command.dry_run else [key]
            verdicts.append(_verdict_of(command, None))
    # Results of one interval have no order: one success among them resets the count.
    in_a_row = 0 if succeeded else memory.breaker.in_a_row + len(went_wrong)
    memory = replace(
        memory,
        in_flight=in_flight,
        recently_unloaded=unloaded,
        dry_run_unloaded=dry_run_unloaded,
        failed=failed,
        issued=issued,
        failures={**memory.failures, **dict.fromkeys(sorted(went_wrong), interval)},
        breaker=replace(memory.breaker, in_a_row=in_a_row),
    )
    return memory, verdicts


def _failed_again(before: Failed | None, command: InFlight, interval: int) -> Failed:
    """The failures of a bundle after *command* failed; a dry run's do not add to those of real commands."""
    if before is None or (before.dry_run and not command.dry_run):
        return Failed(times=1, interval=interval, dry_run=command.dry_run)
    if command.dry_run and not before.dry_run:
        return before
    return replace(before, times=before.times + 1, interval=interval)


def _verdict_of(command: InFlight, result: CommandResult | None) -> Verdict:
    """The verdict on a command with its *result*; None: the command is lost."""
    if result is None:
        reason, detail = Reason.LOST, "no result came back"
    else:
        reason = Reason.SETTLED if result.status in _SETTLED_WELL else Reason.FAILED
        detail = f"{result.status}{': ' + result.detail if result.detail else ''}"
    return Verdict(subject=command.bundle, reason=reason, by=command.action, detail=detail)


def resting(failed: Mapping[str, Failed], interval: int, patience: Patience) -> list[str]:
    """The bundles that rest in *interval* because a command about them failed."""
    return [name for name, each in failed.items() if interval < each.interval + patience.rests_for_ms(each)]


def on_their_way(in_flight: Mapping[str, InFlight], results: Iterable[CommandResult]) -> dict[str, str]:
    """Bundle -> the broker it was sent to, of unloads without a result, or done: the last sweep may be older."""
    stayed = {result.id for result in results if result.status not in _MOVED}
    return {c.bundle: c.destination for key, c in in_flight.items() if c.destination and key not in stayed}


def _not_forgotten(failed: Mapping[str, Failed], interval: int, patience: Patience) -> Iterator[tuple[str, Failed]]:
    """Failures of bundles that still count: those whose rest ended no longer ago than it lasted."""
    for name, each in failed.items():
        if interval <= each.interval + 2 * patience.rests_for_ms(each):
            yield name, each
