"""Leader election: of all processes that balance the same cluster, one leads."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

#: No epoch is believed that is further ahead of those that were seen: a leadership adds one.
MAX_LEADERSHIPS: Final = 1_000_000
_NUMBER: Final = re.compile(rb"\s*[0-9]{1,18}\s*")


def newer_epoch(known: int, *seen: int) -> int:
    """The newest of *known* and those *seen* later, without those that are too far ahead to be a leadership's.

    Whoever may write to a topic could write any epoch: an absurd one must not fence all leaders for ever.
    """
    for epoch in seen:
        if known < epoch <= known + MAX_LEADERSHIPS:
            known = epoch
    return known


def epoch_of(stored: bytes) -> int | None:
    """The epoch that *stored*, what an election's store holds, says; None where no leadership can have that number."""
    return int(stored) if _NUMBER.fullmatch(stored) else None


def no_preparation() -> None:
    """No-op standby callback."""


class Agreement(NamedTuple):
    """One value that all processes of an election share: that of the process that proposes first."""

    #: What to delete so that another value can be agreed on, for messages; "": nobody can delete it alone.
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
        """The epoch of this leadership: one above the stored epoch and *journal_epoch*; stored before it is returned.

        A *journal_epoch* too far ahead of the stored one is no leadership's (``newer_epoch``), and does not count:
        executors would not believe it either.

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
