"""What a log system has to offer: topics of bytes that can be appended to, read, fenced and claimed.

A system implements ``Log``.  Everything that trimtab keeps in a log (the journal, commands, results, ticks, dead
letters) is written once, in the other files of this room, on these protocols.  tests/contracts/bytes_log.py states what
they promise; docs/adr says why they are cut this way.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from controller.model.errors import TrimtabError

#: A topic by its role; the settings of a system give it a name.  "ticks" holds what is about to be ticked: a system
#: that appends atomically needs no such topic, drops what is to be appended there, and finds nothing ``behind``.
LogTopic: TypeAlias = Literal["metrics", "results", "commands", "journal", "dead_letters", "ticks"]
#: A place in one partition: grows as records are appended, possibly with gaps.  Opaque: never add to it or subtract.
Position: TypeAlias = int

#: The header of decisions and ticks that says of which interval they are: T, epoch ms, in decimal digits.
INTERVAL: Final = "interval"
NO_HEADERS: Final[Mapping[str, bytes]] = {}


class LogRecord(NamedTuple):
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
    """A record to append.  Headers are stored in journal and ticks, and elsewhere where the system has them."""

    topic: LogTopic
    value: bytes
    #: Not stored where the system has no keys.
    key: bytes = b""
    #: None: the partition that the system chooses for the key.
    partition: int | None = None
    headers: Mapping[str, bytes] = NO_HEADERS


class Start(NamedTuple):
    """Where to begin to read: the first that is given; otherwise the oldest record."""

    #: The record at this position, or the first one after it.
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
    #: About how many records lie between; None where positions do not tell.
    records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one process at a time writes: its holder.  Whoever fences a scope ends the holder before it."""

    #: As ``journal-<cluster>``: one holder at a time has this name.
    name: str
    #: The partition whose records decide; only the holder writes there.
    decides: tuple[LogTopic, int]
    #: Topics that only the holder writes.
    owns: tuple[LogTopic, ...] = ()
    #: Topics that others write, too.
    shares: tuple[LogTopic, ...] = ()


class TakenOverError(TrimtabError):
    """Another executor may have taken over these commands: commands that were not begun must not be begun."""

    exit_code = 75  # EX_TEMPFAIL: the service manager restarts us


class PartitionTakenOverError(TakenOverError):
    """Another executor has a partition now: it carries its commands out and answers them.

    The executor goes on with its other partitions, and with this one once it is given to this executor again.
    """


class Reader(Protocol):
    """Reads a topic in the order of each partition.  For one thread.  Marks of the system are never returned."""

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """The next record; None if none came within *timeout_seconds*."""
        ...

    def rest(self) -> Iterator[LogRecord]:
        """All records that were acknowledged before this call, then an end.  Raises rather than end early."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Fenced(Protocol):
    """A scope while this process holds it.

    LeadershipLostError where another process holds it by now; every other failure is a TrimtabError.  After either it
    is not known what was stored, and only a new ``Log.fence`` and its ``behind`` tell.
    """

    def behind(self, about: int | None = None) -> Iterator[LogRecord]:
        """What earlier holders wrote to ``Scope.decides``: about the *about* newest records, or all; oldest first.

        Complete, or JournalError.  Nothing of an earlier holder is appended after this.
        """
        ...

    def complete(self, follow: Sequence[Out], mark: bytes = b"", identity: Callable[[bytes], object] = bytes) -> None:
        """Append those of *follow* that an earlier holder decided and did not append.  Before the first ``append``.

        *follow*: all that follows from its last decision, as it would have written it.  No effect where ``append`` is
        atomic.  *mark*: the value of marks that the system may need in topics of ``Scope.owns``, for those who read
        them without this port.  *identity*: what two values have in common that are the same record, where their bytes
        may differ because another release wrote one of them.
        """
        ...

    def append(
        self, decide: Sequence[Out], follow: Sequence[Out] = (), before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """Append *decide*, all to ``Scope.decides``, and *follow*: all of them or none, eventually.

        A system with transactions shows all at once.  Others store *decide* first; then *follow* is appended by this
        holder, or by the next one's ``complete``: so *follow* is a pure function of the bytes and headers of *decide*,
        and in a topic of ``Scope.owns`` no two records of it are alike.  *before_commit* runs before the last record of
        *decide* can be seen; if it raises, nothing is decided (earlier records of *decide* may be there), and the scope
        can be used on.  Within a partition records keep their order, also over several calls; the last one of *follow*
        is stored when all others are.  LogOfflineError where a partition cannot be written to now: nothing is decided.
        """
        ...

    def keep(self, first: Position) -> None:
        """Records of ``Scope.decides`` before *first* are needed no more: the oldest one is at *first* from now on."""
        ...

    def close(self) -> None:
        """Hold the scope no longer."""
        ...


class PartitionClaim(Protocol):
    """One partition of commands while this executor has it.

    PartitionTakenOverError once another one has it; TakenOverError where it may be so.
    """

    @property
    def state(self) -> bytes:
        """What the last ``store`` or ``finish`` of any executor left; b"" at first."""
        ...

    def store(self, state: bytes) -> None:
        """Keep *state*.  When this returns it is durable, and the partition was still ours."""
        ...

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """Keep *state*, append *results* and take all records up to and including *upto* as done: all or nothing.

        Where this process dies meanwhile, the next ``claim`` of the partition completes it.
        """
        ...


class Claims(Protocol):
    """One executor's share of the partitions of commands.  For one thread.

    TakenOverError: the whole share is lost, and this object must not be used any more; unless it is a
    PartitionTakenOverError, which is about one partition alone.
    """

    @property
    def largest_state(self) -> int:
        """The longest state that can be kept, bytes."""
        ...

    @property
    def remedy(self) -> str:
        """What a person does where a state is damaged, as the end of a message."""
        ...

    @property
    def assigned(self) -> int | None:
        """How many partitions this executor has; None until the group has assigned them."""
        ...

    def take(self, most: int, timeout_seconds: float) -> Sequence[LogRecord]:
        """Up to *most* records that were not taken since their claim, in the order of their partitions.

        Empty if none came in time.  Never those that are done.
        """
        ...

    def claim(self, partition: int) -> PartitionClaim:
        """The claim of *partition*, of which ``take`` returned records.

        The same object while this executor has the partition without a break.  A new one fences whoever had the
        partition, completes its last ``finish``, and knows its state.
        """
        ...

    def close(self) -> None:
        """Leave the group; another executor gets what was taken and not finished."""
        ...


class Log(Protocol):
    """A log system, opened for one cluster.  Every method may raise a TrimtabError that names topic and cause."""

    def name(self, topic: LogTopic) -> str:
        """What people call *topic*."""
        ...

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:
        """What people call this place, for messages."""
        ...

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:
        """How many partitions each of *topics* has now; creates what is missing.

        *writable*: LogOfflineError where one of them cannot be written to now.
        """
        ...

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:
        """Append records without a fence; returns when all are stored.

        After an error nothing follows later.  *name*: where the system can, a repeat of the same name is stored once.
        """
        ...

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> Reader:
        """Read *topic*, or one partition of it.  Partitions that are added later are read from their beginning."""
        ...

    def back(self, topic: LogTopic, partition: int, before: Position | None, about: int) -> Sequence[LogRecord]:
        """*about* so many records right before *before* (None: the end), in order; empty only at the oldest."""
        ...

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """What each partition holds now, of records appended at *since_ms* or later; empty where there is no topic."""
        ...

    def counted_from(self, topic: LogTopic) -> str:
        """What positions of *topic* are counted from; "" where records keep theirs for ever."""
        ...

    def fence(self, scope: Scope) -> Fenced:
        """Hold *scope*: its holder before this can append nothing any more."""
        ...

    def claims(self, group: str) -> Claims:
        """Take part in sharing out the partitions of commands among the executors of *group*."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...
