"""The port of a log system: topics of bytes that can be appended to, read, fenced and claimed.

A system implements ``Log``.  Journal, commands, results, ticks and dead letters are written once, on these protocols,
in the other files of this room.  tests/contracts/bytes_log.py is the contract; docs/adr/0012-one-log-protocol.md has
the reasons.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from controller.model.errors import TrimtabError

#: A topic by its role; the settings of a system give it a name.  "ticks" holds what is about to be ticked: a system
#: that appends atomically needs no such topic, drops appends to it, and has no ``history`` of it.
LogTopic: TypeAlias = Literal[
    "metrics", "results", "commands", "journal", "dead_letters", "ticks", "summaries", "election"
]
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
    #: Records appended from now on.
    end: bool = False


OLDEST: Final = Start()


class Ends(NamedTuple):
    """The extent of a partition: positions from *first* up to, and without, *end*."""

    first: Position
    end: Position
    #: Approximate number of records; None if positions do not tell.
    records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Topics with one writer at a time, the holder.  Fencing a scope ends the earlier holder."""

    #: As ``journal-<cluster>``: one holder at a time has this name.
    name: str
    #: The partition whose records decide; only the holder writes there.
    decides: tuple[LogTopic, int]
    #: Topics that only the holder writes.
    owns: tuple[LogTopic, ...] = ()
    #: Topics that others write, too.
    shares: tuple[LogTopic, ...] = ()


class TakenOverError(TrimtabError):
    """Another executor may have taken over these commands: no further command must be started."""

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

    def read_to_end(self) -> Iterator[LogRecord]:
        """All records that were acknowledged before this call, then an end.  Raises rather than end early.

        Also where the topic is shorter than what was read, as far as the system's positions can tell.
        """
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Fenced(Protocol):
    """A scope while this process holds it.

    LeadershipLostError: another process holds it; every other failure is a TrimtabError.  After either it is unknown
    what was stored; a new ``Log.fence`` and its ``history`` tell.
    """

    def history(self, about: int | None = None) -> Iterator[LogRecord]:
        """Records of earlier holders in ``Scope.decides``: about the *about* newest, or all; oldest first.

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

    def prune_before(self, first: Position) -> None:
        """Delete the records of ``Scope.decides`` before *first*, at once or later; readers do not get them now."""
        ...

    def close(self) -> None:
        """Release the scope."""
        ...


class PartitionClaim(Protocol):
    """One partition of commands while this executor has it.

    PartitionTakenOverError: another executor has it.  TakenOverError: another executor may have it.
    """

    @property
    def state(self) -> bytes:
        """The state of the last ``store`` or ``finish`` of any executor; b"" at first."""
        ...

    def store(self, state: bytes) -> None:
        """Store *state*.  When this returns it is durable, and this executor still had the partition."""
        ...

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """Store *state*, append *results* and commit all records up to and including *upto*: all or nothing.

        If this process dies meanwhile, the next ``claim`` of the partition completes it.
        """
        ...


class Claims(Protocol):
    """One executor's share of the partitions of commands.  For one thread.

    PartitionTakenOverError concerns one partition.  After any other TakenOverError the whole share is lost, and this
    object must not be used any more.
    """

    @property
    def largest_state(self) -> int:
        """The longest state that can be stored, bytes."""
        ...

    @property
    def remedy(self) -> str:
        """How to recover from a damaged state, as the end of a message."""
        ...

    @property
    def assigned(self) -> int | None:
        """Number of partitions assigned to this executor; None until the group has assigned them."""
        ...

    def poll(self, limit: int, timeout_seconds: float) -> Sequence[LogRecord]:
        """Up to *limit* records that were not returned since their claim, in the order of their partitions.

        Empty if none came in time.  Never records that are finished.
        """
        ...

    def claim(self, partition: int) -> PartitionClaim:
        """The claim of *partition*, of which ``poll`` returned records.

        The same object while this executor has the partition without a break.  A new one fences the executor before
        it, completes that one's last ``finish``, and has its state.
        """
        ...

    def close(self) -> None:
        """Leave the group; another executor gets the records that were polled and not finished."""
        ...


class Log(Protocol):
    """A log system, opened for one cluster.  Every method may raise a TrimtabError that names topic and cause."""

    def name(self, topic: LogTopic) -> str:
        """The name of *topic* in this system."""
        ...

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:
        """The place of a record, for messages."""
        ...

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:
        """The number of partitions of each of *topics*; creates missing topics.

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

    def read_backwards(
        self, topic: LogTopic, partition: int, before: Position | None, about: int
    ) -> Sequence[LogRecord]:
        """About *about* records right before *before* (None: the end), in order; empty only at the oldest."""
        ...

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """The extent of each partition, of records appended at *since_ms* or later; empty if there is no topic."""
        ...

    def delete_before(self, topic: LogTopic, partition: int, first: Position) -> None:
        """Delete the records of *topic*, which no scope decides, before *first*: at once, or later, or not all."""
        ...

    def counted_from(self, topic: LogTopic) -> str:
        """What positions of *topic* are counted from; "" where records keep theirs for ever."""
        ...

    def fence(self, scope: Scope) -> Fenced:
        """Become the holder of *scope*: the earlier holder cannot append any more."""
        ...

    def claims(self, group: str) -> Claims:
        """Join *group*, whose executors share the partitions of commands."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...
