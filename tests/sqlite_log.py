"""A log in an SQLite file: what a fourth log system takes.  Its appends are atomic, as SQLite's transactions are."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from controller.adapters.network.deadline import Deadline
from controller.log.port import (
    OLDEST,
    Ends,
    LogRecord,
    LogTopic,
    Out,
    PartitionTakenOverError,
    Position,
    Scope,
    Start,
    TakenOverError,
)
from controller.model.errors import LeadershipLostError, TrimtabError

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS partitions (topic, partition INTEGER, next INTEGER, first INTEGER,
    PRIMARY KEY (topic, partition));
CREATE TABLE IF NOT EXISTS records (topic, partition INTEGER, position INTEGER, key, value, at INTEGER, headers,
    PRIMARY KEY (topic, partition, position));
CREATE TABLE IF NOT EXISTS letters (name PRIMARY KEY);
CREATE TABLE IF NOT EXISTS holders (name PRIMARY KEY, holder INTEGER);
CREATE TABLE IF NOT EXISTS members (team, member INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE IF NOT EXISTS cells (team, partition INTEGER, state, done INTEGER, PRIMARY KEY (team, partition));
"""
_ONE_PARTITION: Final = ("journal", "dead_letters", "summaries", "election")
_LOOK_SECONDS: Final = 0.01


class SqliteLog:
    """Log in the file *path*; a new topic gets so many *partitions*."""

    def __init__(self, path: Path, *, partitions: int, at_commit: Callable[[str], None] = lambda _: None) -> None:
        """*at_commit* is called before and after each transaction; raises to kill this process there."""
        self._partitions, self._at_commit = partitions, at_commit
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        self._file.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {_TABLES}")

    def sql(self, text: str, *values: object) -> list[Any]:
        """The rows that *text* gives."""
        try:
            return self._file.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise TrimtabError(f"the log: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written in the block is seen at once, or never."""
        self._at_commit("before")
        self.sql("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.sql("ROLLBACK")
            raise
        self.sql("COMMIT")
        self._at_commit("after")

    def name(self, topic: LogTopic) -> str:
        """See Log."""
        return f"table {topic}"

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:
        """See Log."""
        return f"{topic}, partition {partition}, row {position}"

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:
        """See Log."""
        found = {topic: self.count(topic) for topic in topics}
        if missing := [topic for topic, count in found.items() if not count]:
            with self.transaction():
                for topic in missing:
                    self.add_partitions(topic, 1 if topic in _ONE_PARTITION else self._partitions)
        return {topic: self.count(topic) for topic in topics}

    def count(self, topic: LogTopic) -> int:
        """How many partitions *topic* has; 0 where there is no such topic."""
        return int(self.sql("SELECT count(*) FROM partitions WHERE topic = ?", topic)[0][0])

    def add_partitions(self, topic: LogTopic, count: int) -> None:
        """Give *topic* so many more."""
        there = self.count(topic)
        for partition in range(there, there + count):
            self.sql("INSERT OR IGNORE INTO partitions VALUES (?, ?, 0, 0)", topic, partition)

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:
        """See Log."""
        outs = list(outs)
        self.partitions(*{out.topic for out in outs})
        with self.transaction():
            if name and self.sql("INSERT OR IGNORE INTO letters VALUES (?) RETURNING name", name) == []:
                return
            self.store(outs)

    def store(self, outs: Iterable[Out]) -> None:
        """Append *outs*, in a transaction."""
        for out in outs:
            partition = crc32(out.key) % self.count(out.topic) if out.partition is None else out.partition
            # A gap behind each record: positions are no counts.
            [(position,)] = self.sql(
                "UPDATE partitions SET next = next + 2 WHERE topic = ? AND partition = ? RETURNING next - 2",
                out.topic,
                partition,
            )
            headers = json.dumps({name: value.decode("latin-1") for name, value in out.headers.items()})
            row = (out.topic, partition, position, out.key, out.value, time.time_ns() // 1_000_000, headers)
            self.sql("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def found(self, topic: LogTopic, partition: int, where: str = "", *values: object) -> Iterator[LogRecord]:
        """The records of a partition, in order; *where* goes on with the condition, or with another order."""
        text = f"""SELECT position, key, value, at, headers FROM records JOIN partitions USING (topic, partition)
            WHERE topic = ? AND partition = ? AND position >= first {where or "ORDER BY position"}"""
        for position, key, value, at, headers in self.sql(text, topic, partition, *values):
            named = {name: text.encode("latin-1") for name, text in json.loads(headers).items()}
            yield LogRecord(partition, position, key, value, at, named)

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> "SqliteReader":
        """See Log."""
        return SqliteReader(self, topic, start, partition)

    def read_backwards(
        self, topic: LogTopic, partition: int, before: Position | None, about: int
    ) -> Sequence[LogRecord]:
        """See Log."""
        end = 1 << 62 if before is None else before
        return [*self.found(topic, partition, "AND position < ? ORDER BY position DESC LIMIT ?", end, about)][::-1]

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """See Log."""
        rows = self.sql(
            """SELECT partition, next, min(position), count(position)
            FROM partitions LEFT JOIN records USING (topic, partition)
            WHERE topic = ? AND (position IS NULL OR (position >= first AND at >= ?)) GROUP BY partition""",
            topic,
            since_ms or 0,
        )
        found = {partition: Ends(end if first is None else first, end, count) for partition, end, first, count in rows}
        ends = dict(self.sql("SELECT partition, next FROM partitions WHERE topic = ?", topic))
        return {partition: found.get(partition, Ends(end, end, 0)) for partition, end in ends.items()}

    def delete_before(self, topic: LogTopic, partition: int, first: Position) -> None:
        """See Log."""
        self.sql("UPDATE partitions SET first = ? WHERE topic = ? AND partition = ?", first, topic, partition)

    def counted_from(self, topic: LogTopic) -> str:
        """See Log."""
        return ""

    def fence(self, scope: Scope) -> "SqliteScope":
        """See Log."""
        self.partitions(*scope.owns, *scope.shares, "journal")
        return SqliteScope(self, scope)

    def claims(self, group: str) -> "SqliteClaims":
        """See Log."""
        self.partitions("commands", "results")
        return SqliteClaims(self, group)

    def hold(self, name: str) -> int:
        """Hold *name*, in a transaction; the holder before it does so no more."""
        text = "INSERT INTO holders VALUES (?, 1) ON CONFLICT DO UPDATE SET holder = holder + 1 RETURNING holder"
        return int(self.sql(text, name)[0][0])

    def holds(self, name: str, holder: int) -> bool:
        """Whether *holder* holds *name* still."""
        return self.sql("SELECT holder FROM holders WHERE name = ?", name) == [(holder,)]

    def close(self) -> None:
        """See Log."""
        self._file.close()

    def expel(self, group: str) -> None:
        """Take its partitions from all members of *group*, as from members that hang."""
        self.sql("DELETE FROM members WHERE team = ?", group)


class SqliteReader:
    """Reader."""

    def __init__(self, log: SqliteLog, topic: LogTopic, start: Start, partition: int | None) -> None:
        self._log, self._topic, self._partition = log, topic, partition
        #: Partition -> the position from which on it is read.
        self._at = {each: self._begin(each, start) for each in self._wanted()}

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        deadline = Deadline.after(timeout_seconds)
        while True:
            for partition in self._wanted():
                for record in self._from(partition, "ORDER BY position LIMIT 1"):
                    self._at[partition] = record.position + 1
                    return record
            if deadline.passed:
                return None
            time.sleep(min(_LOOK_SECONDS, deadline.remaining))

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader."""
        for record in [record for partition in self._wanted() for record in self._from(partition, "ORDER BY position")]:
            self._at[record.partition] = record.position + 1
            yield record

    def close(self) -> None:
        """See Reader."""

    def _wanted(self) -> Sequence[int]:
        return range(self._log.count(self._topic)) if self._partition is None else (self._partition,)

    def _from(self, partition: int, order: str) -> Iterator[LogRecord]:
        at = self._at.setdefault(partition, 0)
        return self._log.found(self._topic, partition, f"AND position >= ? {order}", at)

    def _begin(self, partition: int, start: Start) -> Position:
        if start.position is not None:
            return start.position
        end = self._log.ends(self._topic)[partition].end
        if start.since_ms is not None:
            late = self._log.found(self._topic, partition, "AND at >= ? ORDER BY position LIMIT 1", start.since_ms)
            return next((record.position for record in late), end)
        if start.last:
            return next((record.position for record in self._log.read_backwards(self._topic, partition, None, 1)), end)
        return end if start.end else 0


class SqliteScope:
    """Fenced."""

    def __init__(self, log: SqliteLog, scope: Scope) -> None:
        self._log, self._scope = log, scope
        with log.transaction():
            self._holder = log.hold(scope.name)

    def history(self, about: int | None = None) -> Iterator[LogRecord]:
        """See Fenced."""
        return iter(self._log.read_backwards(*self._scope.decides, None, -1 if about is None else about))

    def complete(self, follow: Sequence[Out], mark: bytes = b"", identity: Callable[[bytes], object] = bytes) -> None:
        """See Fenced."""

    def append(
        self, decide: Sequence[Out], follow: Sequence[Out] = (), before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """See Fenced."""
        with self._held(before_commit):
            self._log.store([*(out for out in decide if out.topic != "ticks"), *follow])

    def prune_before(self, first: Position) -> None:
        """See Fenced."""
        with self._held():
            self._log.sql(
                "UPDATE partitions SET first = ? WHERE topic = ? AND partition = ?", first, *self._scope.decides
            )

    def close(self) -> None:
        """See Fenced."""

    @contextmanager
    def _held(self, before_commit: Callable[[], None] = lambda: None) -> Iterator[None]:
        with self._log.transaction():
            if not self._log.holds(self._scope.name, self._holder):
                raise LeadershipLostError(f"{self._scope.name}: another process holds it now")
            yield
            before_commit()


class SqliteClaims:
    """Claims: the member that joined first has the first partition, and so on, in turn."""

    largest_state = 1 << 20
    remedy = "Delete it from the table cells."

    def __init__(self, log: SqliteLog, team: str) -> None:
        self._log, self._team = log, team
        with log.transaction():
            [(self._me,)] = log.sql("INSERT INTO members (team) VALUES (?) RETURNING member", team)
        self._claims: dict[int, SqliteClaim] = {}
        self._readers: dict[int, SqliteReader] = {}

    @property
    def assigned(self) -> int:
        """See Claims."""
        return len(self._own())

    def poll(self, most: int, timeout_seconds: float) -> Sequence[LogRecord]:
        """See Claims.  Returns at once."""
        own, found = self._own(), list[LogRecord]()
        for gone in self._claims.keys() - own:
            del self._claims[gone], self._readers[gone]
        for partition in own:
            claim = self.claim(partition)
            reader = self._readers.setdefault(
                partition, self._log.read("commands", Start(position=claim.done + 1), partition=partition)
            )
            while len(found) < most and (record := reader.next(0.0)) is not None:
                found.append(record)
        return found

    def claim(self, partition: int) -> "SqliteClaim":
        """See Claims."""
        if partition not in self._claims:
            self._claims[partition] = SqliteClaim(self._log, self._team, partition)
        return self._claims[partition]

    def close(self) -> None:
        """See Claims."""
        with self._log.transaction():
            self._log.sql("DELETE FROM members WHERE member = ?", self._me)

    def _own(self) -> list[int]:
        members = [each for (each,) in self._log.sql("SELECT member FROM members WHERE team = ?", self._team)]
        if self._me not in members:
            raise TakenOverError(f"{self._team}: this executor was removed")
        count = self._log.count("commands")
        return [each for each in range(count) if sorted(members)[each % len(members)] == self._me]


class SqliteClaim:
    """Claim."""

    def __init__(self, log: SqliteLog, team: str, partition: int) -> None:
        self._log, self._place, self._name = log, (team, partition), f"{team}/{partition}"
        with log.transaction():
            self._holder = log.hold(self._name)
        known = log.sql("SELECT state, done FROM cells WHERE team = ? AND partition = ?", *self._place)
        self.state: bytes = known[0][0] if known else b""
        self.done: int = known[0][1] if known else -1

    def store(self, state: bytes) -> None:
        """See Claim."""
        self.finish(state, (), self.done)

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """See Claim."""
        with self._log.transaction():
            if not self._log.holds(self._name, self._holder):
                raise PartitionTakenOverError(f"{self._name}: another executor has it now")
            self._log.sql("REPLACE INTO cells VALUES (?, ?, ?, ?)", *self._place, state, upto)
            self._log.store(results)
        self.state, self.done = state, upto
