"""Detects a query without progress while ticks arrive: it must be ended and restarted."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from controller.model.errors import StalledError, TrimtabError
from streaming.batches.running_strategy import running_strategy

log = logging.getLogger(__name__)

#: Number of looks within the time after which a query counts as stalled.
_LOOKS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How far everything had come at a moment."""

    #: By a monotonic clock.
    at_seconds: float
    #: The number of the last finished batch; -1 before the first.
    batch: int
    #: The newest interval that was ticked, epoch ms; 0 before the first.
    ticked: int


def stalled(looks: Sequence[Look], after_seconds: float) -> bool:
    """Whether the query has finished no batch for *after_seconds* although a tick had arrived.

    *looks*: oldest first.  Every tick causes a batch, so a query without batches is idle or stalled.
    """
    last = looks[-1]
    still = [*takewhile(lambda look: look.batch == last.batch, reversed(looks))][::-1]
    since = next((look.at_seconds for look in still if look.ticked > still[0].ticked), None)
    return since is not None and last.at_seconds - since >= after_seconds


class ProgressWatch:
    """Checks periodically, in a thread of its own, since Kafka and Spark may not answer."""

    def __init__(self, newest_tick: Callable[[], int | None], *, after_seconds: float) -> None:
        self._newest_tick, self._after = newest_tick, after_seconds
        self._looks: deque[Look] = deque(maxlen=3 * _LOOKS)
        self._began = time.monotonic()
        #: Whether the last look has ended.
        self._answered = threading.Event()
        self._answered.set()

    def check(self, last_batch: Callable[[], int]) -> None:
        """Raise StalledError where the query stalled; *last_batch* says which batch it finished last."""
        now = time.monotonic()
        if not self._answered.is_set():
            if now - self._began >= self._after:
                raise _stalled(f"neither Spark nor the log has answered for {self._after:g} s")
            return
        if now - self._began < self._after / _LOOKS:
            return
        if self._looks and stalled(self._looks, self._after):
            raise _stalled(f"the query has finished no batch for {self._after:g} s while ticks arrived")
        self._began = now
        self._answered.clear()
        threading.Thread(target=self._look, args=(last_batch,), name="progress", daemon=True).start()

    def _look(self, last_batch: Callable[[], int]) -> None:
        try:
            batch, ticked = last_batch(), self._newest_tick()
        except TrimtabError as error:
            log.debug("the progress of the log cannot be read: %s", error)
        else:
            self._looks.append(Look(at_seconds=time.monotonic(), batch=batch, ticked=ticked or 0))
        finally:
            self._answered.set()


def _stalled(why: str) -> StalledError:
    """An error that names the running strategy, if any: then a restart alone does not help."""
    strategy = running_strategy()
    if not strategy:
        return StalledError(f"{why}: restart this process")
    return StalledError(
        f"{why}; {strategy} was called and has not returned: fix it, or set another strategy, and restart"
    )
