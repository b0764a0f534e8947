"""The journal: what was decided, and the memory it left behind.  What lies in it was issued, and nothing else.

An interval's entry, its memory and its commands are written all or nothing.  A folder and Kafka do that
differently; both keep this contract.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from controller.model.journal import JournalEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalHead:
    """How far the journal has come."""

    #: The newest decision: its memory is where the next one starts from.
    last: JournalEntry | None
    #: The newest leadership's number; 0 before the first.
    epoch: int


class Journal(Protocol):
    """One cluster's journal, to be written by one leader at a time."""

    def open(self) -> JournalHead:
        """Fence off earlier writers, complete what a crash left half done, and read to the end.

        Raises JournalError, or LeadershipLostError when another writer came in between.
        """
        ...

    def begin_epoch(self, epoch: int) -> None:
        """Begin leadership *epoch*, in the journal and for everyone who reads commands."""
        ...

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """Write *entry* and issue its decision's commands, all or nothing.

        *epoch* and *issued_at_ms* (wall clock) are stamped on the commands.  *before_commit* is called with
        everything written and only the commit missing; what it raises leaves nothing behind and is raised on.
        EntryTooLargeError where there are more commands than an entry can hold: nothing was written.
        """
        ...

    def prune(self, *, committed: int, before: int) -> None:
        """Remove what is needed no more: entries of intervals before *before* and up to *committed*, epoch ms.

        The newest of these with the whole memory stays, and so does all that builds on it.  JournalError where that
        is not allowed or does not succeed; the journal is as good as before then.
        """
        ...
