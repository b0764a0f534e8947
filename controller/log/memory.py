"""A log in memory, for tests of the code above the port, with fault injection at every effect.

In one mode appends are atomic, as in Kafka; in the other the records that follow are appended after the decision, as in
Pulsar and in files.  Positions have gaps, as in both.
"""

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import attrgetter
from random import Random
from typing import Final
from zlib import crc32

from controller.log.followed import Exclusive, FollowedClaim, FollowedScope, Numbered
from controller.log.port import (
    OLDEST,
    Claims,
    Ends,
    Fenced,
    LogRecord,
    LogTopic,
    Out,
    PartitionClaim,
    PartitionTakenOverError,
    Position,
    Scope,
    Start,
    TakenOverError,
)
from controller.model.errors import LeadershipLostError, TrimtabError

_MARK: Final = "mark"
_ONE_PARTITION: Final = ("journal", "ticks", "dead_letters", "summaries", "election")
_CELL: Final = "cells"
_LARGEST_GAP: Final = 3


@dataclass(slots=True)
class _Partition:
    records: list[LogRecord] = field(default_factory=list)
    next: Position = 0
    first: Position = 0


def _nothing(when: str, effect: str) -> None:
    """No fault."""


class MemoryServer:
    """The state that all processes share.  Safe for threads."""

    def __init__(
        self,
        *,
        partitions: int = 1,
        atomic: bool = True,
        seed: int = 0,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.atomic, self._partitions, self.now_ms = atomic, partitions, now_ms
        self._random = Random(seed)
        self._topics: dict[str, list[_Partition]] = {}
        #: Called before and after each effect, as ``append journal/0``.  Raises to kill the process that is at work, or
        #: to lose the answer; what it does itself comes while that process hangs.
        self.at_effect: Callable[[str, str], None] = _nothing
        self.changed = threading.Condition()
        #: Who holds what: a scope, or a partition -> a number that grows.
        self.holders: dict[str, int] = defaultdict(int)
        #: Name and partition -> the last number.
        self.numbers: dict[tuple[str, str], int] = {}
        #: Group -> its members, those that joined first come first.
        self.members: dict[str, list[object]] = defaultdict(list)
        #: Group and partition -> state, and the last record that is done.
        self.done: dict[tuple[str, int], tuple[bytes, Position]] = {}

    def topic(self, name: str) -> list[_Partition]:
        """The partitions of a topic, which is created."""
        if name not in self._topics:
            count = 1 if name in _ONE_PARTITION else self._partitions
            self._topics[name] = [_Partition() for _ in range(count)]
        return self._topics[name]

    def exists(self, name: str) -> bool:
        """Whether the topic *name* was created."""
        return name in self._topics

    def add_partitions(self, name: str, count: int = 1) -> None:
        """Add partitions, as an administrator would."""
        self.topic(name).extend(_Partition() for _ in range(count))

    def expel(self, group: str) -> None:
        """Take its partitions from all members, as from members that do not answer."""
        self.members[group].clear()

    @contextmanager
    def effect(self, what: str) -> Iterator[None]:
        """Make the changes of the block visible at once."""
        self.at_effect("before", what)
        with self.changed:
            yield
            self.changed.notify_all()
        self.at_effect("after", what)

    def append(self, what: str, change: Callable[[], None]) -> None:
        """Have *change* append to the log, in one effect."""
        with self.effect(what):
            change()

    def store(self, topic: str, partition: int, out: Out) -> None:
        """Append *out*, within an effect."""
        here = self.topic(topic)[partition]
        here.next += self._random.randint(0, _LARGEST_GAP)
        headers = dict(out.headers)
        here.records.append(LogRecord(partition, here.next, out.key, out.value, self.now_ms(), headers))
        here.next += 1

    def acquire(self, what: str) -> int:
        """Become the holder of *what*, in place of the one before."""
        self.holders[what] += 1
        return self.holders[what]

    def check_holder(self, what: str, holder: int) -> None:
        """LeadershipLostError where *holder* does not hold *what* any more."""
        if self.holders[what] != holder:
            raise LeadershipLostError(f"{what}: another process writes it now")


class MemoryLog:
    """Log on *server*, as one process sees it."""

    def __init__(self, server: MemoryServer) -> None:
        self.server = server

    def name(self, topic: LogTopic) -> str:
        """See Log."""
        return f"memory/{topic}"

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:
        """See Log."""
        return f"{topic}, partition {partition}, position {position}"

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:  # noqa: ARG002
        """See Log."""
        return {topic: len(self.server.topic(topic)) for topic in topics}

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:  # noqa: ARG002
        """See Log."""

        def change() -> None:
            for out in outs:
                self.server.store(out.topic, self.partition_for(out), out)

        self.server.append("append", change)

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> "MemoryReader":
        """See Log."""
        return MemoryReader(self.server, topic, start, partition)

    def read_backwards(
        self, topic: LogTopic, partition: int, before: Position | None, about: int
    ) -> Sequence[LogRecord]:
        """See Log."""
        here = self.server.topic(topic)[partition]
        end = len(here.records) if before is None else bisect_left(here.records, before, key=_position)
        older = (here.records[at] for at in range(end - 1, -1, -1))
        readable = (each for each in older if each.position >= here.first and _MARK not in each.headers)
        return list(islice(readable, about))[::-1]

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """See Log."""
        if not self.server.exists(topic):
            return {}
        return {number: _ends(each, since_ms) for number, each in enumerate(self.server.topic(topic))}

    def delete_before(self, topic: LogTopic, partition: int, first: Position) -> None:
        """See Log."""
        with self.server.effect(f"delete {topic}"):
            here = self.server.topic(topic)[partition]
            here.first = max(here.first, first)

    def counted_from(self, topic: LogTopic) -> str:  # noqa: ARG002
        """See Log."""
        return ""

    def fence(self, scope: Scope) -> Fenced:
        """See Log."""
        self.partitions(scope.decides[0], *scope.owns, *scope.shares)
        if self.server.atomic:
            return _AtomicScope(self, scope)
        return FollowedScope(self, scope, self.server.now_ms)

    def claims(self, group: str) -> Claims:
        """See Log."""
        return MemoryClaims(self, group)

    def close(self) -> None:
        """See Log."""

    def take_over(self, name: str, topic: LogTopic, partition: int, *, mark: bytes | None) -> "_ExclusivePartition":
        """See Primitives."""
        return _ExclusivePartition(self.server, name, topic, partition, mark)

    def once(self, name: str, targets: Sequence[tuple[LogTopic, int]]) -> "_NumberedWriter":  # noqa: ARG002
        """See Primitives."""
        return _NumberedWriter(self.server, name)

    def partition_of(self, topic: LogTopic, key: bytes, partitions: int) -> int:  # noqa: ARG002
        """See Primitives."""
        return crc32(key) % partitions

    def partition_for(self, out: Out) -> int:
        """Where *out* is appended."""
        if out.partition is not None:
            return out.partition
        return self.partition_of(out.topic, out.key, len(self.server.topic(out.topic)))


class MemoryReader:
    """Reader."""

    def __init__(self, server: MemoryServer, topic: LogTopic, start: Start, partition: int | None) -> None:
        self._server, self._topic, self._partition = server, topic, partition
        #: Partition -> the position from which on it is read.
        self._at = {each: _begin(server.topic(topic)[each], start) for each in self._partitions()}
        #: Partition -> the record that was returned last.
        self._returned = dict[int, Position]()

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        deadline = time.monotonic() + timeout_seconds
        with self._server.changed:
            while (record := self._next_record()) is None:
                if not self._server.changed.wait(deadline - time.monotonic()):
                    return None
            self._at[record.partition] = record.position + 1
            return record

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader."""
        with self._server.changed:
            ends = {each: self._server.topic(self._topic)[each].next for each in self._partitions()}
            if any(self._returned.get(each, -1) >= end for each, end in ends.items()):
                raise TrimtabError(f"{self._topic}: it is shorter than what was read: it was deleted and created again")
        while (record := self.next(0.0)) is not None:
            if record.position < ends.get(record.partition, 0):
                self._returned[record.partition] = record.position
                yield record
            else:
                self._at[record.partition] = record.position
                return

    def close(self) -> None:
        """See Reader."""

    def _partitions(self) -> Sequence[int]:
        return range(len(self._server.topic(self._topic))) if self._partition is None else (self._partition,)

    def _next_record(self) -> LogRecord | None:
        for number in self._partitions():
            here, at = self._server.topic(self._topic)[number], self._at.setdefault(number, 0)
            for record in _visible(here, at):
                return record
        return None


class _AtomicScope:
    """Fenced: everything is one effect."""

    def __init__(self, log: MemoryLog, scope: Scope) -> None:
        self._log, self._server, self._scope = log, log.server, scope
        with self._server.effect(f"fence {scope.name}"):
            self._holder = self._server.acquire(scope.name)

    def history(self, about: int | None = None) -> Iterator[LogRecord]:
        """See Fenced."""
        self._server.check_holder(self._scope.name, self._holder)
        topic, partition = self._scope.decides
        return iter(list(_visible(self._server.topic(topic)[partition]))[-(about or 0) :])

    def complete(self, follow: Sequence[Out], mark: bytes = b"", identity: Callable[[bytes], object] = bytes) -> None:
        """See Fenced."""

    def append(
        self, decide: Sequence[Out], follow: Sequence[Out] = (), before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """See Fenced."""
        before_commit()
        decisive = decide if self._scope.decides[0] != "ticks" else ()

        def change() -> None:
            self._server.check_holder(self._scope.name, self._holder)
            for out in (*decisive, *follow):
                self._server.store(out.topic, self._log.partition_for(out), out)

        self._server.append(f"commit {self._scope.name}", change)

    def prune_before(self, first: Position) -> None:
        """See Fenced."""
        with self._server.effect(f"keep {self._scope.name}"):
            self._server.check_holder(self._scope.name, self._holder)
            topic, partition = self._scope.decides
            self._server.topic(topic)[partition].first = first

    def close(self) -> None:
        """See Fenced."""


class _ExclusivePartition:
    """Exclusive."""

    def __init__(self, server: MemoryServer, name: str, topic: str, partition: int, mark: bytes | None) -> None:
        self._server, self._topic, self._partition = server, topic, partition
        self._what = f"{topic}/{partition}"
        with server.effect(f"take over {self._what} for {name}"):
            self._holder = server.acquire(self._what)
        if mark is not None:
            self._store(f"mark {self._what}", [Out("journal", mark, headers={_MARK: b"1"})])
            self._mark = server.topic(topic)[partition].records[-1].position

    def append(self, outs: Sequence[Out]) -> None:
        """See Exclusive.  One effect each: a process may die between two."""
        for out in outs:
            self._store(f"append {self._what}", [out])

    def before(self, about: int | None) -> Iterator[LogRecord]:
        """See Exclusive."""
        here = [
            each for each in _visible(self._server.topic(self._topic)[self._partition]) if each.position < self._mark
        ]
        return iter(here[-(about or 0) :])

    def prune_before(self, first: Position) -> None:
        """See Exclusive."""
        with self._server.effect(f"keep {self._what}"):
            self._server.check_holder(self._what, self._holder)
            self._server.topic(self._topic)[self._partition].first = first

    def close(self) -> None:
        """See Exclusive."""

    def _store(self, effect: str, outs: Sequence[Out]) -> None:
        def change() -> None:
            self._server.check_holder(self._what, self._holder)
            for out in outs:
                self._server.store(self._topic, self._partition, out)

        self._server.append(effect, change)


class _NumberedWriter:
    """Once."""

    def __init__(self, server: MemoryServer, name: str) -> None:
        self._server, self._name = server, name

    def append(self, numbered: Sequence[Numbered]) -> None:
        """See Once.  One effect each: a process may die between two."""
        for number, out in numbered:
            self._server.append(f"append {out.topic}/{out.partition}", partial(self._store, number, out))

    def _store(self, number: int, out: Out) -> None:
        place = self._name, f"{out.topic}/{out.partition}"
        if number > self._server.numbers.get(place, -1):
            self._server.numbers[place] = number
            self._server.store(out.topic, out.partition or 0, out)

    def forgot(self, topic: LogTopic, partition: int) -> bool:
        """See Once."""
        return (self._name, f"{topic}/{partition}") not in self._server.numbers

    def close(self) -> None:
        """See Once."""


class MemoryClaims:
    """Claims: the member that joined first has the first partition, and so on, in turn."""

    largest_state = 4_000
    remedy = "start a new process"

    def __init__(self, log: MemoryLog, group: str) -> None:
        self._log, self._server, self._group = log, log.server, group
        self._members = log.server.members[group]
        self._members.append(self)
        self._claims: dict[int, _AtomicClaim | FollowedClaim] = {}
        #: Partition -> the number by which this executor holds it.
        self._holders: dict[int, int] = {}
        #: Partition -> the last record taken.
        self._polled: dict[int, Position] = {}

    @property
    def assigned(self) -> int | None:
        """See Claims."""
        return len(self._own())

    def poll(self, limit: int, timeout_seconds: float) -> Sequence[LogRecord]:  # noqa: ARG002
        """See Claims.  Returns at once."""
        if self not in self._members:
            raise TakenOverError(f"{self._log.name('commands')}: the group has removed this executor")
        own = self._own()
        for partition, holder in list(self._holders.items()):
            if partition not in own or self._server.holders[self._what(partition)] != holder:
                del self._claims[partition], self._holders[partition]
                self._polled.pop(partition, None)
        records: list[LogRecord] = []
        for partition in own:
            here = self._server.topic("commands")[partition]
            if here.records:
                after = max(self._polled.get(partition, -1), self._done(partition))
                records += islice(_visible(here, after + 1), limit - len(records))
        for record in records:
            self._polled[record.partition] = record.position
        return records

    def claim(self, partition: int) -> PartitionClaim:
        """See Claims."""
        if partition not in self._claims:
            if self._server.atomic:
                self._claims[partition] = _AtomicClaim(self._log, self._what(partition), (self._group, partition))
            else:
                cell, now_ms = _Cell(self._server, partition), self._server.now_ms
                self._claims[partition] = FollowedClaim(self._log, cell, partition, name=self._group, now_ms=now_ms)
            self._holders[partition] = self._server.holders[self._what(partition)]
        return self._claims[partition]

    def _what(self, partition: int) -> str:
        return f"claim {self._group}/{partition}" if self._server.atomic else f"{_CELL}/{partition}"

    def close(self) -> None:
        """See Claims."""
        if self in self._members:
            self._members.remove(self)

    def _own(self) -> list[int]:
        if self not in self._members:
            return []
        count = len(self._server.topic("commands"))
        return [each for each in range(count) if self._members[each % len(self._members)] is self]

    def _done(self, partition: int) -> Position:
        claim = self.claim(partition)
        return (
            claim.done
            if isinstance(claim, FollowedClaim)
            else self._server.done.get((self._group, partition), (b"", -1))[1]
        )


class _AtomicClaim:
    """Claim: everything is one effect."""

    def __init__(self, log: MemoryLog, what: str, place: tuple[str, int]) -> None:
        self._log, self._server, self._what, self._place = log, log.server, what, place
        with self._server.effect(self._what):
            self._holder = self._server.acquire(self._what)
            self.state, self._done = self._server.done.get(self._place, (b"", -1))

    def store(self, state: bytes) -> None:
        """See PartitionClaim."""
        self._commit("store", state, (), self._done)

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """See PartitionClaim."""
        self._commit("finish", state, results, upto)

    def _commit(self, effect: str, state: bytes, results: Sequence[Out], upto: Position) -> None:
        def change() -> None:
            if self._server.holders[self._what] != self._holder:
                raise PartitionTakenOverError(f"{self._what}: another executor has it now")
            for out in results:
                self._server.store("results", self._place[1], out)
            self._server.done[self._place] = (state, upto)

        self._server.append(f"{effect} {self._what}", change)
        self.state, self._done = state, upto


class _Cell:
    """Cell: the last record of a partition that one executor at a time writes."""

    remedy = "Delete it."

    def __init__(self, server: MemoryServer, partition: int) -> None:
        self.where = f"{_CELL}, partition {partition}"
        while len(server.topic(_CELL)) <= partition:  # commands were given more
            server.add_partitions(_CELL)
        self._exclusive: Exclusive = _ExclusivePartition(server, "executor", _CELL, partition, b"")

    def read(self) -> bytes:
        """See Cell."""
        last = b""
        for record in self._exclusive.before(None):
            last = record.value
        return last

    def write(self, value: bytes) -> None:
        """See Cell."""
        self._exclusive.append([Out("results", value)])

    def close(self) -> None:
        """See Cell."""


def _visible(partition: _Partition, first: Position = 0) -> Iterator[LogRecord]:
    """The records that readers get from *first* on: no marks, and no pruned ones."""
    records, begin = partition.records, bisect_left(partition.records, max(first, partition.first), key=_position)
    return (each for at in range(begin, len(records)) if _MARK not in (each := records[at]).headers)


_position: Final = attrgetter("position")


def _ends(partition: _Partition, since_ms: int | None) -> Ends:
    if since_ms is None:
        first = next((each.position for each in _visible(partition)), partition.next)
        return Ends(first, partition.next, len(partition.records))
    there = [each for each in _visible(partition) if each.timestamp_ms >= since_ms]
    return Ends(there[0].position if there else partition.next, partition.next, len(there))


def _begin(partition: _Partition, start: Start) -> Position:
    """The position from which on to read."""
    if start.position is not None:
        return start.position
    if start.since_ms is not None:
        return next(
            (each.position for each in _visible(partition) if each.timestamp_ms >= start.since_ms), partition.next
        )
    if start.last:
        visible = list(_visible(partition))
        return visible[-1].position if visible else partition.next
    return partition.next if start.end else 0
