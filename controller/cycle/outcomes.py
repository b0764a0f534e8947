"""What became of the commands: results take them off the in-flight list, and failures let a bundle rest.

A command leaves the list with its result, or as lost when its executor can no longer answer.  A bundle whose command
failed is left alone for a while, and for twice as long with every further failure: what went wrong once goes wrong at
once again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controller.model.decision import Reason, Verdict
from controller.model.memory import Failed, InFlight, Memory
from controller.model.records import CommandResult

_HOUR_MS: Final = 3_600_000
_SETTLED_WELL: Final = frozenset({"done", "already_done", "obsolete", "skipped", "dry_run"})
#: An executor tried, and it did not work out, or nobody knows whether it did.
_WENT_WRONG: Final = frozenset({"failed", "unknown"})
#: No executor ever began it: the bundle was not unloaded.
_NEVER_BEGUN: Final = frozenset({"expired", "fenced"})
_MOVED: Final = frozenset({"done", "already_done"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long results are waited for, and failures are."""

    #: After a command has expired: what an executor may take, and what a result may take to come back.
    lost_after_ms: int
    #: A bundle rests for so long when a command about it failed for the first time; never for more than an hour,
    #: unless this is more.
    retry_after_ms: int

    def rests_for_ms(self, failed: Failed) -> int:
        """How long after its last failure a bundle is left alone."""
        longest = max(self.retry_after_ms, _HOUR_MS)
        doublings = min(failed.times - 1, longest.bit_length())
        return min(self.retry_after_ms << doublings, longest)


def settle(
    memory: Memory, results: Iterable[CommandResult], interval: int, patience: Patience
) -> tuple[Memory, list[Verdict]]:
    """Take answered and lost commands off the in-flight list, and remember what failed, as of *interval*.

    What was never begun costs no budget.  Failures, dry runs' apart, are counted for the breaker.
    """
    in_flight, unloaded, issued = dict(memory.in_flight), dict(memory.recently_unloaded), dict(memory.issued)
    failed = dict(_not_forgotten(memory.failed, interval, patience))
    verdicts, went_wrong, succeeded = [], list[str](), False
    for result in results:
        command = in_flight.pop(result.id, None)
        if command is None:
            continue
        if result.status in _WENT_WRONG:
            before = failed.get(command.bundle)
            failed[command.bundle] = Failed(times=1 if before is None else before.times + 1, interval=interval)
            went_wrong += [] if command.dry_run else [result.id]
        elif result.status in _MOVED:
            failed.pop(command.bundle, None)
            succeeded = True
        elif result.status in _NEVER_BEGUN:
            issued.pop(result.id, None)
            if unloaded.get(command.bundle) == command.interval:
                del unloaded[command.bundle]
        reason = Reason.SETTLED if result.status in _SETTLED_WELL else Reason.FAILED
        detail = f"{result.status}{': ' + result.detail if result.detail else ''}"
        verdicts.append(Verdict(subject=command.bundle, reason=reason, by=command.action, detail=detail))
    for key, command in sorted(in_flight.items()):
        if interval > command.expires_at_ms + patience.lost_after_ms:
            del in_flight[key]
            went_wrong += [] if command.dry_run else [key]
            detail = "no result came back"
            verdicts.append(Verdict(subject=command.bundle, reason=Reason.LOST, by=command.action, detail=detail))
    # Results of one interval have no order: one success among them closes the row.
    in_a_row = 0 if succeeded else memory.breaker.in_a_row + len(went_wrong)
    memory = replace(
        memory,
        in_flight=in_flight,
        recently_unloaded=unloaded,
        failed=failed,
        issued=issued,
        failures={**memory.failures, **dict.fromkeys(sorted(went_wrong), interval)},
        breaker=replace(memory.breaker, in_a_row=in_a_row),
    )
    return memory, verdicts


def resting(failed: Mapping[str, Failed], interval: int, patience: Patience) -> list[str]:
    """The bundles that are left alone in *interval* because a command about them failed."""
    return [name for name, each in failed.items() if interval < each.interval + patience.rests_for_ms(each)]


def on_their_way(in_flight: Mapping[str, InFlight], results: Iterable[CommandResult]) -> dict[str, str]:
    """Bundle -> the broker it was sent to: without a result yet, or done by now, perhaps behind the last sweep."""
    stayed = {result.id for result in results if result.status not in _MOVED}
    return {c.bundle: c.destination for key, c in in_flight.items() if c.destination and key not in stayed}


def _not_forgotten(failed: Mapping[str, Failed], interval: int, patience: Patience) -> Iterator[tuple[str, Failed]]:
    """Failures count together as long as the next one follows within the time of rest that the last one earned."""
    for name, each in failed.items():
        if interval <= each.interval + 2 * patience.rests_for_ms(each):
            yield name, each
