"""Detects that a journal has lost its newest entries, by the traces they left in other logs.

A journal can lose them where a backup is restored, or where a topic is truncated or expires.  What they held would be
forgotten: a tripped breaker, used budgets, bundles that were just moved.  The journal is written before or together
with everything that follows from an entry, so whoever knows of a newer interval or leadership proves the loss.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.errors import JournalLostError

#: Witnesses that an error names.
_MAX_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one witness knows of the journal."""

    #: The witness and what it holds, for the message.
    what: str
    #: An interval that was in the journal, T, epoch ms; None where none is known.
    interval: int | None = None
    #: A leadership that was in the journal; 0 where none is known.
    epoch: int = 0
    #: When that was journalled, epoch ms; a loss that a person accepted later is no reason to stop again.
    at_ms: int
    #: False: of a leadership that the election never had, so somebody forged it.  It proves no loss.
    genuine: bool = True


def refuse_lost(
    cluster: str, interval: int | None, epoch: int, evidence: Iterable[Evidence], *, accepted_ms: int = 0
) -> None:
    """Raise JournalLostError where *evidence* shows that the journal of *cluster* had newer entries than it has.

    Its last decision is of *interval*, T, epoch ms, None before the first; *epoch* is its newest leadership.
    *accepted_ms*: when a person accepted a loss, epoch ms; 0: never.
    """
    believed = [each for each in evidence if each.genuine and each.at_ms > accepted_ms]
    lost = [each for each in believed if _is_newer(each, interval, epoch)]
    if not lost:
        return
    extent = f"ends with interval {_utc(interval)}, epoch {epoch}" if interval else f"ends with epoch {epoch}"
    state = extent if interval or epoch else "is empty"
    proof = "; ".join(each.what for each in lost[:_MAX_SHOWN])
    raise JournalLostError(
        f"the journal of cluster {cluster!r} {state}, and {proof}: entries are lost."
        "  Restore the journal; or go on without what they held (budgets, moves under way, a tripped breaker):"
        " `trimtab accept-loss` pauses the cluster, and then this one starts; `trimtab resume` once all is as it should"
        " be"
    )


def _is_newer(each: Evidence, interval: int | None, epoch: int) -> bool:
    return each.epoch > epoch or (each.interval is not None and (interval is None or each.interval > interval))


def _utc(epoch_ms: int) -> str:
    return f"{np.datetime64(epoch_ms // 1000, 's')}Z"
