"""Scopes and claims for systems that store one record at a time, as Pulsar and files do.

A decision is made by its last record.  Records that follow from it are appended afterwards, by the process that decided
or, if that one dies or hangs, by its successor, which reads what is there and appends what is missing.  In topics that
only the holder writes, the successor fences the earlier holder, so nothing of it comes later.  In topics with other
writers, records have numbers that are stored with the decision, and the system drops a number that it has already
(docs/adr/0008-a-log-in-pulsar.md).
"""

import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Annotated, Final, NamedTuple, Protocol

from pydantic import Field

from controller.adapters.process.failpoints import failpoint
from controller.log.port import (
    Log,
    LogRecord,
    LogTopic,
    Out,
    PartitionTakenOverError,
    Position,
    Scope,
    Start,
    TakenOverError,
)
from controller.model.errors import (
    AccessDeniedError,
    JournalError,
    LeadershipLostError,
    StateError,
    TrimtabError,
    WireError,
)
from controller.wire.base import Items, encode, validate
from controller.wire.base import Record as WireRecord

#: The header of a decision's last record that holds the number of what follows from it.
NUMBER: Final = "number"
#: How many records back the newest decision, and what follows from it, is looked for at first.
_NEAR: Final = 200
#: Records of one partition that may follow from a decision.
_MAX_FOLLOWERS: Final = 1_000
#: With it the numbers of records have 63 bits.
_MAX_DECISION_NUMBER: Final = (1 << 63) // _MAX_FOLLOWERS - 1
_DIGITS: Final = 18
#: How far the clocks of those who append may lie apart, ms.
_SKEW_MS: Final = 60_000


class Numbered(NamedTuple):
    """A record with its number; the numbers of one partition and name grow."""

    number: int
    out: Out


class Exclusive(Protocol):
    """A partition that this process took over: earlier writers cannot append to it any more.

    LeadershipLostError where another process has taken it over; every other failure is a TrimtabError.
    """

    def append(self, outs: Sequence[Out]) -> None:
        """Append *outs* in their order; returns when all are stored."""
        ...

    def before(self, about: int | None) -> Iterator[LogRecord]:
        """Records of earlier holders, without marks: about the *about* newest, or all; oldest first.

        Complete, or JournalError.
        """
        ...

    def prune_before(self, first: Position) -> None:
        """See Fenced."""
        ...

    def close(self) -> None:
        """Write no more."""
        ...


class Once(Protocol):
    """Appends to partitions that have other writers, too.  One process at a time has its name."""

    def append(self, numbered: Sequence[Numbered]) -> None:
        """Append those whose number is higher than the last one stored under this name in their partition.

        Returns when all are stored.  Each has a partition.
        """
        ...

    def forgot(self, topic: LogTopic, partition: int) -> bool:
        """Whether the system has forgotten the last number, so that it could store a repeat."""
        ...

    def close(self) -> None:
        """Let another process have the name."""
        ...


class Primitives(Log, Protocol):
    """The operations of a system on which scopes and claims are built here."""

    def take_over(self, name: str, topic: LogTopic, partition: int, *, mark: bytes | None) -> Exclusive:
        """Become the only one that writes *partition*; *name* is the scope's.

        *mark*: append a mark with this value where one is needed to find the end of what was there.  None: ``before``
        is not called.
        """
        ...

    def once(self, name: str, targets: Sequence[tuple[LogTopic, int]]) -> Once:
        """Append to *targets* under *name*.  LogOfflineError where one of them cannot be written to now."""
        ...

    def partition_of(self, topic: LogTopic, key: bytes, partitions: int) -> int:
        """The partition for *key* where *topic* has so many *partitions*."""
        ...


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class FollowedScope:
    """Fenced: see the module docstring."""

    def __init__(self, system: Primitives, scope: Scope, now_ms: Callable[[], int] = _now_ms) -> None:
        self._system, self._scope, self._now_ms = system, scope, now_ms
        self._decides = system.take_over(scope.name, *scope.decides, mark=b"")
        self._owned: dict[LogTopic, list[Exclusive]] = {topic: [] for topic in scope.owns}
        self._failure: TrimtabError | None = None
        try:
            self._last = self._newest() if scope.shares else None
        except BaseException:
            self.close()
            raise
        self._number = 0 if self._last is None else _number(self._last)

    def history(self, about: int | None = None) -> Iterator[LogRecord]:
        """See Fenced."""
        return self._decides.before(about)

    def complete(self, follow: Sequence[Out], mark: bytes = b"", identity: Callable[[bytes], object] = bytes) -> None:
        """See Fenced."""
        with self._attempt():
            self._append_owned(self._missing([each for each in follow if each.topic in self._owned], mark, identity))
            shared = self._numbered(self._shared(follow))
            if shared and self._last is not None:
                since = Start(since_ms=max(0, self._last.timestamp_ms - _SKEW_MS))
                with closing(self._once(shared)) as once:
                    if missing := [each for each in shared if not self._is_there(once, each.out, since)]:
                        _append_last_alone(once, missing)

    def append(
        self, decide: Sequence[Out], follow: Sequence[Out] = (), before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """See Fenced."""
        self._refuse_after_failure()
        for topic in self._owned:
            self._take_over(topic, mark=None)
        self._number = max(self._number + 1, self._now_ms())
        shared = self._numbered(self._shared(follow))
        *parts, last = decide
        if shared:
            with closing(self._once(shared)) as once:
                self._decide(parts, last, before_commit)
                self._follow(follow)
                with self._attempt():
                    _append_last_alone(once, shared)
        else:
            self._decide(parts, last, before_commit)
            self._follow(follow)

    def prune_before(self, first: Position) -> None:
        """See Fenced."""
        self._decides.prune_before(first)

    def close(self) -> None:
        """See Fenced."""
        for each in (self._decides, *(each for writers in self._owned.values() for each in writers)):
            each.close()

    def _decide(self, parts: Sequence[Out], last: Out, before_commit: Callable[[], None]) -> None:
        if parts:
            with self._attempt():
                self._decides.append(parts)
        before_commit()
        if self._scope.shares:
            last = last._replace(headers={**last.headers, NUMBER: str(self._number).encode()})
        with self._attempt():
            self._decides.append([last])
        failpoint("before-follow")

    def _follow(self, follow: Sequence[Out]) -> None:
        with self._attempt():
            self._append_owned([each for each in follow if each.topic in self._owned])

    def _take_over(self, topic: LogTopic, *, mark: bytes | None) -> None:
        """Become the only one that writes *topic*, also those of its partitions that were added."""
        writers = self._owned[topic]
        for partition in range(len(writers), self._system.partitions(topic)[topic]):
            writers.append(self._system.take_over(self._scope.name, topic, partition, mark=mark))

    def _append_owned(self, outs: Sequence[Out]) -> None:
        for topic, writers in self._owned.items():
            placed = [(self._partition(each, len(writers)), each) for each in outs if each.topic == topic]
            for partition, writer in enumerate(writers):
                if here := [each for at, each in placed if at == partition]:
                    writer.append(here)

    def _partition(self, out: Out, partitions: int) -> int:
        return self._system.partition_of(out.topic, out.key, partitions) if out.partition is None else out.partition

    def _missing(self, follow: Sequence[Out], mark: bytes, identity: Callable[[bytes], object]) -> list[Out]:
        """Those of *follow* that are in none of its topics.  Fences their earlier holders."""
        # Take over all topics now, not before the first append: by then a newer holder may have them.
        for topic in self._owned:
            self._take_over(topic, mark=mark if follow else None)
        missing = {(each.topic, each.partition, identity(each.value)): each for each in follow}
        for about in (_NEAR, None):
            for topic, writers in self._owned.items():
                for partition, writer in enumerate(writers):
                    if any(each.topic == topic for each in missing.values()):
                        for record in writer.before(about):
                            record_id = identity(record.value)
                            missing.pop((topic, None, record_id), None)
                            missing.pop((topic, partition, record_id), None)
        return list(missing.values())

    def _is_there(self, once: Once, out: Out, since: Start) -> bool:
        """Whether *out* was appended although the system has forgotten its number, as some do after idle hours."""
        if not once.forgot(out.topic, out.partition or 0):
            return False
        with closing(self._system.read(out.topic, since, partition=out.partition)) as reader:
            return any(record.value == out.value for record in reader.read_to_end())

    def _shared(self, follow: Sequence[Out]) -> list[Out]:
        return [
            each if each.partition is not None else each._replace(partition=self._placed(each))
            for each in follow
            if each.topic in self._scope.shares
        ]

    def _placed(self, out: Out) -> int:
        return self._partition(out, self._system.partitions(out.topic)[out.topic])

    def _numbered(self, outs: Sequence[Out]) -> list[Numbered]:
        return number_all(self._number, outs)

    def _once(self, numbered: Sequence[Numbered]) -> Once:
        return self._system.once(self._scope.name, targets_of(numbered))

    def _newest(self) -> LogRecord | None:
        for about in (_NEAR, None):
            if newest := deque(self._decides.before(about), maxlen=1):
                return newest[0]
        return None

    def _refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Fail all later calls after an error in the block, since it is unknown what was stored."""
        self._refuse_after_failure()
        self._failure = JournalError(f"{self._scope.name}: nothing is written after an error; take over again")
        try:
            yield
        except TrimtabError as error:
            self._failure = error
            raise
        self._failure = None


class Cell(Protocol):
    """The stored state of one partition of commands, with one executor as its writer at a time.

    LeadershipLostError where another executor has it; every other failure is a TrimtabError.
    """

    #: Its place, and what to do if it is damaged, for messages.
    where: str
    remedy: str

    def read(self) -> bytes:
        """The last value written by any executor; b"" at first."""
        ...

    def write(self, value: bytes) -> None:
        """Replace the value.  When this returns it is durable, and this executor still had the partition."""
        ...

    def close(self) -> None:
        """Let another executor have it."""
        ...


class _Answer(WireRecord):
    key: str
    value: str


class _Stored(WireRecord):
    """The content of a cell.  Bytes are in base64."""

    number: Annotated[int, Field(ge=0, le=_MAX_DECISION_NUMBER)] = 0
    at_ms: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    """When it was written, epoch ms."""
    done: Annotated[int, Field(ge=-1, lt=1 << 63)] = -1
    """The last record that needs nothing more."""
    begun: bool = False
    """Whether a command was started since and is not finished."""
    state: str = ""
    results: Items[_Answer] = ()


def unfinished_since(value: bytes) -> int | None:
    """When the executor that wrote *value* started commands it has not finished, epoch ms; None: all are finished."""
    try:
        stored = validate(_Stored, value) if value else _Stored()
    except WireError:
        return None
    return stored.at_ms if stored.begun else None


class FollowedClaim:
    """Claim on a *cell*: state, position and results are stored there; results follow from it."""

    def __init__(
        self, system: Primitives, cell: Cell, partition: int, *, name: str, now_ms: Callable[[], int] = _now_ms
    ) -> None:
        """*cell* was taken over; *name*: of those who write results."""
        self._system, self._cell, self._partition, self._name, self._now_ms = system, cell, partition, name, now_ms
        with self._attempt():
            self._stored = self._read()
            self._complete()

    @property
    def state(self) -> bytes:
        """See Claim."""
        return b64decode(self._stored.state)

    @property
    def done(self) -> Position:
        """The position of the last finished record; -1 before the first."""
        return self._stored.done

    def store(self, state: bytes) -> None:
        """See Claim."""
        with self._attempt():
            self._write(state, (), self._stored.done, begun=True)

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """See Claim."""
        with self._attempt():
            self._write(
                state, [_Answer(key=_text(each.key), value=_text(each.value)) for each in results], upto, begun=False
            )
            failpoint("before-follow")
            self._append(self._results())

    def close(self) -> None:
        """Let another executor have the partition."""
        self._cell.close()

    def _read(self) -> _Stored:
        value = self._cell.read()
        try:
            return validate(_Stored, value) if value else _Stored()
        except WireError as error:
            raise StateError(
                f"{self._cell.where}: not an executor's state ({error}): check who writes there. {self._cell.remedy}"
            ) from error

    def _write(self, state: bytes, results: Sequence[_Answer], done: Position, *, begun: bool) -> None:
        now_ms = self._now_ms()
        stored = _Stored(
            # The clock is in it, so that it also grows where the state was lost.
            number=max(self._stored.number + 1, now_ms),
            at_ms=now_ms,
            done=max(self._stored.done, done),
            begun=begun,
            state=_text(state),
            results=tuple(results),
        )
        self._cell.write(encode(stored))
        self._stored = stored

    def _results(self) -> list[Numbered]:
        outs = [
            Out("results", b64decode(each.value), key=b64decode(each.key), partition=self._partition)
            for each in self._stored.results
        ]
        return number_all(self._stored.number, outs)

    def _complete(self) -> None:
        """Append the results that the last executor stored and did not append."""
        results = self._results()
        if not results:
            return
        since = Start(since_ms=max(0, self._stored.at_ms - _SKEW_MS))
        with closing(self._system.read("results", since, partition=self._partition)) as reader:
            there = {record.value for record in reader.read_to_end()}
        self._append([each for each in results if each.out.value not in there])

    def _append(self, results: Sequence[Numbered]) -> None:
        if results:
            with closing(self._system.once(self._name, targets_of(results))) as once:
                once.append(results)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        try:
            yield
        except (TakenOverError, AccessDeniedError, StateError):
            self.close()
            raise
        except LeadershipLostError as error:
            self.close()
            raise PartitionTakenOverError(
                f"partition {self._partition} of {self._system.name('commands')}: another executor has it now"
            ) from error
        except TrimtabError as error:
            self.close()
            raise TakenOverError(f"partition {self._partition} of {self._system.name('commands')}: {error}") from error


def number_all(number: int, outs: Sequence[Out]) -> list[Numbered]:
    """*outs*, which follow from the decision *number*, with numbers that grow in each partition."""
    if len(outs) > _MAX_FOLLOWERS:
        raise JournalError(f"{len(outs)} records follow from one decision, at most {_MAX_FOLLOWERS} are allowed")
    return [Numbered(number * _MAX_FOLLOWERS + nth, each) for nth, each in enumerate(outs)]


def targets_of(numbered: Sequence[Numbered]) -> list[tuple[LogTopic, int]]:
    """Where *numbered* go."""
    return list(dict.fromkeys((each.out.topic, each.out.partition or 0) for each in numbered))


def _append_last_alone(once: Once, numbered: Sequence[Numbered]) -> None:
    """Append *numbered*, the last one when the others are stored."""
    if numbered[:-1]:
        once.append(numbered[:-1])
    once.append(numbered[-1:])


def _number(record: LogRecord) -> int:
    """The number in the headers of *record*; 0 where it has none."""
    text = record.headers.get(NUMBER, b"")
    return int(text) if text.isdigit() and len(text) <= _DIGITS else 0


def _text(value: bytes) -> str:
    return b64encode(value).decode()
