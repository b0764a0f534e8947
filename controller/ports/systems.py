"""What a log system and an election system have to offer: one of each is opened by what the settings name.

A new log system implements ``LogSystem`` in a folder of its own below controller/adapters, and
controller/adapters/opened.py gets a line for it.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.ports.collectors import CollectorGroup, CollectorLog
from controller.ports.controls import ControlStore
from controller.ports.inbox import Inbox
from controller.ports.journal import LogJournal
from controller.ports.leadership import Leader, Leadership
from controller.ports.log import CommandLog, DeadLetterLog, MetricsLog, Retention
from controller.ports.records import RecordLog
from controller.ports.registry import Registry

#: Topics that are read backwards.
ReadTopic: TypeAlias = Literal["metrics", "results", "commands"]


class JournalTail(NamedTuple):
    """The newest decisions, newest first, and the newest leadership's number, 0 before the first."""

    decisions: tuple[Decision, ...]
    epoch: int
    #: Whether fewer were looked at than were asked for, and the journal may hold more: too much of others lies before.
    is_cut: bool = False


class WatchedServer(NamedTuple):
    """A server that a system lies on, as whoever depends on it looks at it."""

    #: As messages name it.
    name: str
    #: What to do where it cannot be reached.
    advice: str
    #: Why it cannot be reached, "" where it can; takes four seconds at most.  For one thread.
    why: Callable[[], str]
    close: Callable[[], None] = lambda: None


class LogTail(Protocol):
    """The end of a log, newest first: for people who ask what happened lately, not for decisions.

    Every method may raise TrimtabError where the log cannot be read.
    """

    @property
    def where(self) -> str:
        """Where the metrics are, for messages."""
        ...

    @property
    def endless(self) -> bool:
        """Whether it holds more than anybody wants to read: a log that collectors write to, and no recording."""
        ...

    def backwards(self, topic: ReadTopic, wanted: tuple[bytes, ...]) -> Iterator[bytes]:
        """The records of *topic* that have one of the texts *wanted* in them, the newest first.  b"" is in each."""
        ...

    def journal_backwards(self, cluster: str) -> Iterator[bytes]:
        """The records of the journal, the newest first, without those that say that they are another cluster's.

        Those are left out before they are read: what is wrong with them is no matter here.
        """
        ...

    def last_entry(self, cluster: str, *, far: bool = True) -> JournalEntry | None:
        """The newest decision about *cluster* with the memory behind it; None before the first.  JournalError.

        Not *far*: None, too, where others have written so much to the journal since that all of it would be read.
        """
        ...

    def journal_tail(self, cluster: str, most: int, about: bytes) -> JournalTail:
        """Of the newest decisions about *cluster*, *most* of them, those with the text *about* in them.

        JournalError where an entry cannot be read.
        """
        ...


class LogSystem(Protocol):
    """A system that holds a log.  Each method opens something of its own; the caller closes what has a ``close``."""

    def server(self) -> WatchedServer | None:
        """The server that it lies on; None for a folder."""
        ...

    def metrics(self) -> MetricsLog:
        """The writing end of the metrics and result topics."""
        ...

    def commands(self) -> CommandLog:
        """The reading end of the command topic."""
        ...

    def dead_letters(self) -> DeadLetterLog:
        """Where records go that cannot be used."""
        ...

    def retention(self) -> Retention | None:
        """What deletes old records; None where the system does so itself."""
        ...

    def journal(self) -> LogJournal:
        """The journal, not opened yet."""
        ...

    def decisions(self) -> Iterator[JournalEntry]:
        """Every decision in the journal, oldest first; disturbs no writer."""
        ...

    def inbox(self) -> Inbox:
        """The commands, as an executor takes them."""
        ...

    def collectors(self) -> CollectorLog:
        """The log, as collectors see it."""
        ...

    def tail(self) -> LogTail:
        """The end of the log, newest first."""
        ...

    def records(self) -> RecordLog:
        """The topics as they lie there, byte for byte."""
        ...


class ElectionSystem(Protocol):
    """A system in which controllers elect their leader; what else all processes of a cluster share lies there too."""

    def server(self) -> WatchedServer | None:
        """The server that it lies on; None for a folder."""
        ...

    def leadership(self) -> Leadership:
        """This process's part in the election."""
        ...

    def leader(self) -> Leader | None:
        """The process that leads now, None where none does; for people who ask.  Creates nothing.

        Raises TrimtabError where the election cannot be read.
        """
        ...

    def collectors(self) -> CollectorGroup:
        """The group of collectors."""
        ...

    def controls(self) -> ControlStore:
        """The operator's controls."""
        ...

    def registry(self) -> Registry:
        """The processes that run, as each describes itself."""
        ...
