"""The breaker: after many failed commands nothing is issued until a person runs `trimtab resume`.

A command counts as failed if its result is ``failed``, ``unknown`` or ``refused``, or if no result came back (lost).
``expired``, ``fenced`` and dry runs do not count.  A success resets the count of failures in a row, but not the count
in the window.  A move that a shedder found out to have broken its promise, or whose destination does not list the
bundle, counts in the window alone: its command did not fail.  Many brokers that do not list what was moved to them trip
it, too.
"""

from dataclasses import dataclass, replace
from typing import Final

from controller.cycle.checked import failed_predictions
from controller.cycle.guardrails.listing import ListingLimits, unconfirmed_brokers
from controller.cycle.guardrails.setting import limit
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.memory import Breaker, Memory
from controller.model.reasons import CONFIGURATION, Meaning

MEANINGS: Final = {
    Reason.BREAKER: Meaning(CONFIGURATION, "commands failed and the breaker tripped: mend it, run `trimtab resume`"),
}
#: In the key of a broken promise among the failures, behind the bundle; ids of commands do not have it.
_BROKEN: Final = "@"


@dataclass(frozen=True, kw_only=True)
class BreakerLimits(ListingLimits):
    """See the module docstring."""

    failures_in_a_row: int | None = limit(
        10, "After so many failed commands in a row, nothing is issued until `trimtab resume`."
    )
    failures_in_window: int | None = limit(
        50, "After so many failed commands in the window, nothing is issued until `trimtab resume`."
    )
    #: Length of the rolling window, for budgets and for the breaker.
    window_ms: int = 3_600_000


def watched(memory: Memory, interval: int, controls: Controls, limits: BreakerLimits) -> tuple[Memory, Verdict | None]:
    """*memory* with the breaker updated (closed by a resume, tripped by failures), and a verdict if it is tripped."""
    failures = {key: t for key, t in memory.failures.items() if t > interval - limits.window_ms}
    memory = replace(memory, failures=failures)
    breaker = memory.breaker
    if breaker.tripped_at is not None and controls.resumed_ms > breaker.resumed_ms:
        breaker = Breaker()
        memory = replace(memory, failures={}, breaker=breaker)
    if breaker.tripped_at is None:
        breaker = _after(memory, interval, controls, limits)
        memory = replace(memory, breaker=breaker)
    if breaker.tripped_at is None:
        return memory, None
    detail = f"{breaker.why}: nothing is issued; mend the cause, then run `trimtab resume`"
    return memory, Verdict(subject=CLUSTER, reason=Reason.BREAKER, by="guardrails.breaker", detail=detail)


def with_failed_predictions(memory: Memory, interval: int) -> Memory:
    """*memory*, in which the moves count as failures whose prediction the shedder found in *interval* to be wrong."""
    failures = {f"{bundle}{_BROKEN}{interval}": interval for bundle in failed_predictions(memory.shedder, interval)}
    return replace(memory, failures={**memory.failures, **failures}) if failures else memory


def _after(memory: Memory, interval: int, controls: Controls, limits: BreakerLimits) -> Breaker:
    """The breaker, tripped if there are too many failures; those of *memory* are in the rolling window."""
    breaker, failures = memory.breaker, memory.failures
    unconfirmed = unconfirmed_brokers(memory, limits)
    if limits.failures_in_a_row is not None and breaker.in_a_row >= limits.failures_in_a_row:
        why = f"{breaker.in_a_row} commands failed without a success between them"
        why += f" (failures_in_a_row = {limits.failures_in_a_row})"
    elif limits.failures_in_window is not None and len(failures) >= limits.failures_in_window:
        broken = sum(_BROKEN in key for key in failures)
        moves = f", and {broken} moves did not do what they promised," if broken else ""
        why = f"{len(failures) - broken} commands failed{moves} within {limits.window_ms // 1000} s"
        why += f" (failures_in_window = {limits.failures_in_window})"
    elif limits.unconfirmed_brokers is not None and len(unconfirmed) >= limits.unconfirmed_brokers:
        why = f"{len(unconfirmed)} brokers do not list what was moved to them, the first is {next(iter(unconfirmed))}"
        why += f" (unconfirmed_brokers = {limits.unconfirmed_brokers})"
    else:
        return breaker
    return replace(breaker, tripped_at=interval, why=why, resumed_ms=controls.resumed_ms)
