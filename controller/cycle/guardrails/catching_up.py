"""What an interval may do that is decided late: after an absence several close at once, and act as one.

T and the time at which it is decided are compared.  Usually an interval is decided before the next one begins.  Later,
a newer one is about to close, or has closed: that one acts, on newer load.  Intervals that are decided late share a
budget with what was issued within a period before, however batches were cut.

Clocks may be wrong.  One that is ahead makes every interval late, so nothing is issued; one that is behind makes
intervals share budgets.  Where it is set back, commands of a time to come count as well.
"""

from collections.abc import Iterable
from typing import Final

from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.memory import Issued, Memory
from controller.model.reasons import THROTTLED, Meaning

MEANINGS: Final = {
    Reason.CATCHING_UP: Meaning(
        THROTTLED, "the interval is decided late, so a newer one acts: after an absence, or with a clock ahead"
    ),
}
#: ``by`` of the verdict that holds back an interval that is decided late.
CATCHING_UP: Final = "catching_up"
#: Short periods are no longer than one micro-batch: a controller that is never quicker must act all the same.
_SLOW_BATCH_MS: Final = 30_000


def catching_up(interval: int, controls: Controls, memory: Memory, period_ms: int) -> Verdict | None:
    """Why *interval* leaves it to a newer one to act; None where it may act.  *memory*: that before it.

    A controller that decides every interval late by the same time, less than two periods, has no newer one to wait for.
    """
    lag = controls.decided_at(interval) - interval
    late, too_late = late_ms(period_ms), late_ms(2 * period_ms)
    if lag < late or (lag < too_late and _is_steady(lag, memory, period_ms)):
        return None
    detail = "decided so late that a newer interval acts, after an absence; or this host's clock is ahead"
    return Verdict(
        subject=CLUSTER,
        reason=Reason.CATCHING_UP,
        observed=lag / 1000,
        limit=late / 1000,
        unit="s",
        by=CATCHING_UP,
        detail=detail,
    )


def late_ms(period_ms: int) -> int:
    """How long after T, or after its decision, an interval is late, ms."""
    return max(period_ms, _SLOW_BATCH_MS)


def _is_steady(lag: int, memory: Memory, period_ms: int) -> bool:
    """Whether the interval before was decided about as late as this one."""
    if memory.last_interval is None or not memory.decided_at_ms:
        return False
    return abs(lag - (memory.decided_at_ms - memory.last_interval)) < period_ms / 2


def within_window(each: Issued, interval: int, decided_at_ms: int, window_ms: int) -> bool:
    """Whether a command counts in the rolling window: by its interval or by when it was issued, which is safer."""
    return each.interval > interval - window_ms or each.decided_at > decided_at_ms - window_ms


def shares_budget(issued: Iterable[Issued], interval: int, decided_at_ms: int, period_ms: int) -> list[Issued]:
    """Those of *issued* that *interval*'s own budget has to count: issued within a period before, by late intervals.

    Intervals that are both decided in their own time do not share, whatever lies between.
    """
    in_time = abs(decided_at_ms - interval) < period_ms
    lately = [each for each in issued if each.decided_at > decided_at_ms - period_ms]
    return [each for each in lately if not in_time or abs(each.decided_at - each.interval) >= period_ms]
