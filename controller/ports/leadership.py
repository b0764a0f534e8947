"""Leader election: of all processes that balance the same cluster, one leads."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


def no_preparation() -> None:
    """No-op standby callback."""


class Agreement(NamedTuple):
    """One value that all processes of an election share: that of the process that proposes first."""

    #: What to delete so that another value can be agreed on, for messages.
    where: str
    #: Propose a value; returns the one agreed on.  Only after ``acquire``; LeadershipLostError without an answer.
    propose: Callable[[str], str]


class Leader(NamedTuple):
    """The process that leads."""

    #: "" where the process did not say who it is.
    host: str
    #: Its number on that host.
    process: int
    #: Since when it leads, epoch ms.
    since_ms: int


class Leadership(Protocol):
    """One process in the election.

    Call ``acquire``, then ``claim``, then ``check`` before every decision and again before its commit.  After a loss
    of leadership ``acquire`` may be called again, unless ``session_lost``: then the process must be restarted.
    """

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:
        """Block until this process leads (True) or *stop* returns True (False); clears the flag of ``lost``.

        *stand_by* is called once if another process leads at first: it can prepare for the takeover.
        Raises LeadershipLostError if ``session_lost``.
        """
        ...

    def claim(self, journal_epoch: int) -> int:
        """The epoch of this leadership: max(stored epoch, *journal_epoch*) + 1.  It is stored before it is returned.

        Raises LeadershipLostError if another process leads now.
        """
        ...

    def check(self) -> None:
        """Raise LeadershipLostError unless this process still leads, by the flag and by the election's store."""
        ...

    def agreement(self, name: str) -> Agreement | None:
        """What all processes of this election agree on under *name*; None where all of them are on one machine."""
        ...

    def lost(self) -> bool:
        """The flag alone, without a call to the store.

        True as soon as the leadership is in doubt, until ``acquire`` returns True again.
        """
        ...

    def session_lost(self) -> bool:
        """Whether this process cannot lead again: it must exit and be restarted."""
        ...

    def release(self) -> None:
        """Give up leadership at once.  No other method may be called after this one."""
        ...
