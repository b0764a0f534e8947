"""The journal: every decision, with the memory after it.  A command is issued if and only if it is in the journal.

An interval's entry and its commands are written together or not at all: see controller.log.journal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.errors import EntryTooLargeError
from controller.model.load import ClusterView
from controller.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One decided interval: the decision, the controls it was made with, and the memory after it."""

    cluster: str
    #: An entry that was read has no verdicts: they are kept elsewhere, and not for ever.
    decision: Decision
    #: After the decision: what the next interval starts from.
    memory: Memory
    controls: Controls

    @property
    def interval(self) -> int:
        """T, epoch ms."""
        return self.decision.interval

    @property
    def waits_for_brokers(self) -> str:
        """Why nothing was issued: brokers balance by themselves, or may do so; "": another reason, or none.

        Without names of brokers, which are in the memory.
        """
        now, balancing = self.controls, self.memory.balancing
        otherwise = not now.moves_load or now.paused or now.stale or now.maintenance or now.unknown
        if otherwise or not balancing.why:
            return ""
        if balancing.on:
            return f"the brokers' own balancing is on (brokers: {balancing.on}); `trimtab status` names them"
        unknown = len(balancing.unknown)
        return f"nobody knows whether brokers balance by themselves (brokers: {unknown}); `trimtab status` names them"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalHead:
    """The newest decision and the newest epoch of a journal."""

    #: The newest decision; the next one starts from its memory.  None if there is none.
    last: JournalEntry | None
    #: The newest epoch; 0 before the first leadership.
    epoch: int


class Journal(Protocol):
    """The journal of one cluster; one leader at a time writes it."""

    def open(self) -> JournalHead:
        """Fence earlier writers, complete what a crash left half done, and read to the end.

        Raises JournalError; AnotherClusterError where it is another cluster's; LeadershipLostError if another writer
        opened it meanwhile.
        """
        ...

    def begin_epoch(self, epoch: int) -> None:
        """Write the new *epoch* to the journal and to every partition of the command topic."""
        ...

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """Write *entry* and issue the commands of its decision, all or nothing.

        *epoch* and *issued_at_ms* (epoch ms, wall clock) are added to the commands.  *before_commit* is called when
        everything is written but not committed; if it raises, nothing is written and the error is passed on.
        Raises EntryTooLargeError if an entry cannot hold that many commands; then nothing was written.
        """
        ...

    def prune(self, *, committed: int, before: int) -> None:
        """Remove entries that are no longer needed: of intervals before *before* and up to *committed*, epoch ms.

        The newest of them that holds the whole memory stays, and so do all entries after it.  Raises JournalError if
        it is not allowed or fails; the journal is still valid then.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedInterval:
    """One interval that was decided now."""

    #: Its decision still has the verdicts.
    entry: JournalEntry
    #: False: it is too old to act on, and a later entry holds what it did to the memory.
    journalled: bool
    #: Why all of its commands are held back although the guardrails allow them: the journal cannot hold so many.
    too_large: EntryTooLargeError | None
    #: Rows that the shards have dropped since the checkpoint began.
    dropped_rows: int
    #: States of namespaces and brokers that they have dropped since then.
    dropped_states: int
    #: Bundles with an owner.
    bundles: int
    #: Action and status of each command that is not in flight any more; "lost" where no result came back.
    settled: tuple[tuple[str, str], ...]
    #: What it was decided on; None: not known.
    view: ClusterView | None = None

    @property
    def breaker_tripped(self) -> bool:
        """Whether this interval tripped the breaker."""
        return self.entry.memory.breaker.tripped_at == self.entry.interval
