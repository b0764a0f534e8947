"""The store's file: SQLite, of which nothing is needed but what the log has.  A damaged file is built anew."""

import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

#: Of the tables below; a file with another one is built anew.
_SCHEMA: Final = 2
_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE ranges (
    id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, lower INTEGER NOT NULL, upper INTEGER NOT NULL,
    UNIQUE (namespace, lower, upper)
);
CREATE TABLE chunks (
    kind TEXT NOT NULL, level INTEGER NOT NULL, number INTEGER NOT NULL, layer TEXT NOT NULL, content BLOB NOT NULL,
    UNIQUE (kind, level, number, layer)
);
CREATE TABLE decisions (
    interval INTEGER PRIMARY KEY, epoch INTEGER, summary TEXT, mode TEXT, paused INTEGER, commands INTEGER,
    controls TEXT, reasons TEXT, verdicts INTEGER, decided_at_ms INTEGER, tick_ms INTEGER, details BLOB,
    hot_topics BLOB
);
CREATE TABLE reasons (
    reason TEXT NOT NULL, interval INTEGER NOT NULL, PRIMARY KEY (reason, interval)
) WITHOUT ROWID;
CREATE TABLE commands (
    id TEXT PRIMARY KEY, interval INTEGER NOT NULL, place INTEGER NOT NULL, action TEXT, bundle TEXT, namespace TEXT,
    source TEXT, destination TEXT, mode TEXT, reason TEXT, why TEXT
);
CREATE INDEX commands_interval ON commands (interval);
CREATE INDEX commands_bundle ON commands (bundle, interval);
CREATE INDEX commands_namespace ON commands (namespace, interval);
CREATE INDEX commands_source ON commands (source, interval);
CREATE INDEX commands_destination ON commands (destination, interval);
CREATE INDEX commands_reason ON commands (reason, interval);
CREATE TABLE results (
    id TEXT PRIMARY KEY, at_ms INTEGER, status TEXT, detail TEXT, started_at INTEGER, finished_at INTEGER
);
CREATE TABLE outcomes (id TEXT PRIMARY KEY, interval INTEGER, outcome TEXT);
CREATE TABLE controls (
    at_ms INTEGER NOT NULL, "by" TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL, reason TEXT NOT NULL,
    UNIQUE (at_ms, "by", action, detail, reason)
);
"""
_PAGE_BYTES: Final = 8_192
#: Bytes of the write-ahead log that stay on the disk.
_LARGEST_LOG: Final = 16 << 20


class StoreDamagedError(TrimtabError):
    """The store's file is damaged; it is built anew from the log."""


class Database:
    """The file at *path*.  For several threads: one writes at a time, none waits for readers."""

    def __init__(self, path: Path, *, cluster: str) -> None:
        """Open it, or create it; ``rebuilt`` says why it was built anew.  TrimtabError where it cannot be created."""
        self._path, self._cluster = path, cluster
        self._lock = threading.Lock()
        #: Held while a connection is opened for reading, or the file is replaced.
        self._opening = threading.Lock()
        self._readers = threading.local()
        #: The writer's, and one of each thread that reads.
        self._connections: list[sqlite3.Connection] = []
        self._generation = 0
        #: Why the file was built anew when it was opened; "": it was not.
        self.rebuilt = ""
        #: What was found to be damaged since then, by whoever read or wrote; "": nothing.
        self.damage = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._claimed_or_released():
                self._open()
        except OSError as error:
            raise TrimtabError(f"{path}: {error.strerror}: choose a folder that trimtab may write") from error

    def rebuild(self, why: str) -> None:
        """Empty the store; *why* is logged and shown."""
        log.warning("%s is built anew from the log: %s", self._path, why)
        with self._lock, self._opening:
            # Threads that read go on with the deleted file until their query ends, and close it by themselves.
            self._connections.remove(self._writer)
            self._writer.close()
            self._delete()
            self._create()
            self.rebuilt, self.damage = why, ""

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of the block or nothing.  StoreDamagedError, or TrimtabError where the disk is full."""
        with self._lock, self._errors(), self._writer:
            yield self._writer

    def read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows that *query* selects.  StoreDamagedError."""
        with self._errors():
            return self._reader().execute(query, values).fetchall()

    def value(self, key: str) -> Any:
        """What is stored under *key*; None: nothing."""
        rows = self.read("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    @property
    def used_bytes(self) -> int:
        """Bytes of the file that hold something."""
        (pages,), (free,) = self.read("PRAGMA page_count")[0], self.read("PRAGMA freelist_count")[0]
        return int(pages - free) * _PAGE_BYTES

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._close()
            os.close(self._claimed)

    @contextmanager
    def _claimed_or_released(self) -> Iterator[None]:
        """Lock the file for this process until it closes it or ends; or only for the block, if that fails."""
        lock = self._path.with_name(self._path.name + ".lock")
        self._claimed = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(self._claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TrimtabError(f"{self._path}: another process uses it: give each its own folder") from None
            yield
        except BaseException:
            self._close()
            os.close(self._claimed)
            raise

    def _open(self) -> None:
        try:
            with self._errors():
                self._connect_writer()
                why = self._why_unusable()
        except StoreDamagedError as error:
            why = str(error)
        self.damage = ""
        if why:
            self._close()
            existed = self._path.exists()
            self._delete()
            self._create()
            if existed and why != _EMPTY:
                self.rebuilt = why
                log.warning("%s is built anew from the log: %s", self._path, why)

    def _why_unusable(self) -> str:
        tables = self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            return _EMPTY
        known = dict(self._writer.execute("SELECT key, value FROM meta WHERE key IN ('schema', 'cluster')").fetchall())
        if known.get("schema") != _SCHEMA:
            return f"its tables are those of another release (schema {known.get('schema')}, this one has {_SCHEMA})"
        if known.get("cluster") != self._cluster:
            return f"it is about cluster {known.get('cluster')!r}, not {self._cluster!r}"
        self._writer.execute("SELECT max(interval) FROM decisions").fetchone()
        return ""

    def _create(self) -> None:
        with self._errors():
            self._connect_writer()
            self._writer.executescript(_TABLES)
            with self._writer:
                rows = [("schema", _SCHEMA), ("cluster", self._cluster)]
                self._writer.executemany("INSERT INTO meta VALUES (?, ?)", rows)

    def _connect_writer(self) -> None:
        self._generation += 1
        self._writer = sqlite3.connect(self._path, check_same_thread=False, timeout=30.0)
        self._connections.append(self._writer)
        self._writer.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        self._writer.execute("PRAGMA journal_mode = WAL")
        # The log has it all: after a power cut the last transactions may be missing, never half of one.
        self._writer.execute("PRAGMA synchronous = NORMAL")
        # Else the write-ahead log stays as long as the largest transaction was.
        self._writer.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")

    def _reader(self) -> sqlite3.Connection:
        current: tuple[int, sqlite3.Connection] | None = getattr(self._readers, "connection", None)
        if current is not None and current[0] == self._generation:
            return current[1]
        with self._opening:
            if current is not None:
                self._connections.remove(current[1])
                current[1].close()
            connection = sqlite3.connect(self._path, check_same_thread=False, timeout=30.0)
            connection.execute("PRAGMA query_only = ON")
            self._connections.append(connection)
            self._readers.connection = (self._generation, connection)
            return connection

    def _close(self) -> None:
        for connection in self._connections:
            with suppress(sqlite3.Error):
                connection.close()
        self._connections = []

    def _delete(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """SQLite's errors in the block, as this house's."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            raise TrimtabError(f"{self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            self.damage = str(error)
            raise StoreDamagedError(f"{self._path}: {error}") from error


_EMPTY: Final = "it is empty"
