"""Who leads: one process of all that balance the same cluster."""

from collections.abc import Callable
from typing import Protocol


def at_ease() -> None:
    """Stand by with nothing to prepare."""


class Leadership(Protocol):
    """One process's part in the election.

    ``acquire``, ``claim``, then ``check`` before every decision and again before its commit.  After a loss
    ``acquire`` may be called again, unless ``session_lost`` says that this process has to be started anew.
    """

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = at_ease) -> bool:
        """Block until this process leads (True) or *stop* says to give up (False); clears the flag of ``lost``.

        *stand_by* is called, once, where another leads at first: there is time to prepare for the takeover.

        Raises LeadershipLostError once ``session_lost``.
        """
        ...

    def claim(self, journal_epoch: int) -> int:
        """Number this leadership: max(stored epoch, *journal_epoch*) + 1, stored before it is returned.

        Raises LeadershipLostError where another leads by now.
        """
        ...

    def check(self) -> None:
        """Raise LeadershipLostError unless this process still leads, by the flag and by the store."""
        ...

    def lost(self) -> bool:
        """The flag alone, without a round trip: True from the first doubt on, until ``acquire`` has settled it."""
        ...

    def session_lost(self) -> bool:
        """True when this process cannot lead again: it has to exit and be restarted."""
        ...

    def release(self) -> None:
        """Let the next one lead, at once; nothing else may be called afterwards."""
        ...
