"""What a log system has to offer: topics of bytes that can be appended to, read, fenced and claimed.

A system implements ``Log``.  Everything that trimtab keeps in a log (the journal, commands, results, ticks, dead
letters) is written once, in the other files of this room, on these protocols.  tests/contracts states what they
promise; docs/adr says why they are cut this way.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

#: A topic by its role; the settings of a system give it a name.
Topic: TypeAlias = Literal["metrics", "results", "commands", "journal", "dead_letters"]
#: A place in one partition: grows as records are appended, possibly with gaps.  Opaque: never add to it or subtract.
Position: TypeAlias = int

NO_HEADERS: Final[Mapping[str, bytes]] = {}


class Record(NamedTuple):
    """A record of a log."""

    partition: int
    position: Position
    #: b"" where it has none.
    key: bytes
    value: bytes
    #: When it was appended, epoch ms.
    timestamp_ms: int
    headers: Mapping[str, bytes] = NO_HEADERS


class Out(NamedTuple):
    """A record to append."""

    topic: Topic
    value: bytes
    key: bytes = b""
    #: None: the partition that the system chooses for the key.
    partition: int | None = None
    headers: Mapping[str, bytes] = NO_HEADERS


class Start(NamedTuple):
    """Where to begin to read: the first that is given; otherwise the oldest record."""

    position: Position | None = None
    #: Records appended at this time or later, epoch ms.
    since_ms: int | None = None
    #: The newest record.
    last: bool = False
    #: What is appended from now on.
    end: bool = False


OLDEST: Final = Start()


class Ends(NamedTuple):
    """What a partition holds: positions from *first* on, up to *end*, which does not belong to it."""

    first: Position
    end: Position
    #: How many records lie between; None where positions do not tell.
    records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one process at a time writes: its holder.  Whoever fences a scope ends the holder before it."""

    #: As ``journal-<cluster>``: one holder at a time has this name.
    name: str
    #: The partition whose records decide; only the holder writes there.  None: nothing is decided, what follows may
    #: be written again.
    decides: tuple[Topic, int] | None
    #: Topics that only the holder writes.
    owns: tuple[Topic, ...] = ()
    #: Topics that others write, too.
    shares: tuple[Topic, ...] = ()


class Reader(Protocol):
    """Reads a topic in the order of each partition.  For one thread."""

    def next(self, timeout_seconds: float) -> Record | None:
        """The next record; None if none came within *timeout_seconds*."""
        ...

    def rest(self) -> Iterator[Record]:
        """All records that were acknowledged before this call, then an end.  Raises rather than end early."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Fenced(Protocol):
    """A scope while this process holds it.

    LeadershipLostError where another process holds it by now.  After any error but EntryTooLargeError it is not known
    what was stored: only a new ``Log.fence`` and its ``behind`` tell.
    """

    def behind(self, start: Start) -> Iterator[Record]:
        """What earlier holders wrote to ``Scope.decides``, from *start* on: complete, or JournalError.

        Nothing of an earlier holder is appended after this.
        """
        ...

    def complete(self, follow: Sequence[Out]) -> None:
        """Append those of *follow* that an earlier holder decided and did not append.

        *follow*: all that follows from its last decision, byte for byte as it would have written it.  No effect where
        ``append`` is atomic.
        """
        ...

    def append(
        self, decide: Sequence[Out], follow: Sequence[Out] = (), before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """Append *decide* and *follow*: all of them or none, eventually.

        A system with transactions shows all at once.  Others store *decide* first; then *follow* is appended by this
        holder, or by the next one's ``complete``.  *before_commit* runs before the last record of *decide* can be seen;
        if it raises, nothing is decided (earlier records of *decide* may be there).  *follow* is a pure function of the
        bytes and headers of *decide*.  Within a partition records keep their order, also over several calls.
        """
        ...

    def close(self) -> None:
        """Hold the scope no longer."""
        ...


class Claim(Protocol):
    """One partition of commands while this executor has it.  PartitionTakenOverError once another one has it."""

    #: What the last ``store`` or ``finish`` of any executor left; b"" at first.
    state: bytes

    def store(self, state: bytes) -> None:
        """Keep *state*.  When this returns it is durable, and the partition was still ours."""
        ...

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """Keep *state*, append *results* and take all records up to and including *upto* as done: all or nothing."""
        ...


class Claims(Protocol):
    """One executor's share of the partitions of commands.  For one thread.

    TakenOverError: the whole share is lost, and this object must not be used any more.
    """

    #: The longest state that can be kept, bytes.
    largest_state: int

    @property
    def assigned(self) -> int | None:
        """How many partitions this executor has; None until the group has assigned them."""
        ...

    def take(self, most: int, timeout_seconds: float) -> Sequence[Record]:
        """Up to *most* records that are not done, in the order of their partitions; empty if none came in time."""
        ...

    def claim(self, partition: int) -> Claim:
        """Take over *partition*, of which ``take`` returned records: fence who had it, complete its last ``finish``."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class Log(Protocol):
    """A log system, opened for one cluster.  Every method may raise a TrimtabError that names topic and cause."""

    def partitions(self, *topics: Topic, writable: bool = False) -> Mapping[Topic, int]:
        """How many partitions each of *topics* has now; creates what is missing.

        *writable*: LogOfflineError where one of them cannot be written to now.
        """
        ...

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:
        """Append records without a fence; returns when all are stored.

        After an error nothing follows later.  *name*: where the system can, a repeat of the same name is stored once.
        """
        ...

    def read(self, topic: Topic, start: Start = OLDEST, *, partition: int | None = None) -> Reader:
        """Read *topic*, or one partition of it.  Partitions that are added later are read from their beginning."""
        ...

    def back(self, topic: Topic, partition: int, before: Position | None, about: int) -> Sequence[Record]:
        """*about* so many records right before *before* (None: the end), in order; empty only at the oldest."""
        ...

    def ends(self, topic: Topic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """What each partition holds now, of records appended at *since_ms* or later; empty where there is no topic."""
        ...

    def keep(self, topic: Topic, partition: int, first: Position) -> None:
        """Records before *first* may be deleted.  Never deletes *first*, or what comes after it."""
        ...

    def fence(self, scope: Scope) -> Fenced:
        """Hold *scope*: its holder before this can append nothing any more."""
        ...

    def claims(self, topic: Topic, group: str, results: Topic) -> Claims:
        """Take part in sharing out *topic* among the executors of *group*; their results go to *results*."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...
