"""The journal in a folder: a file for each decision and each leadership, and a file for the commands of a decision.

    journal/<T>.json   journal/epoch-<n>.json   decisions, leaderships
    commands/<T>.jsonl                          the commands of T, after the epoch they were issued under

A file never changes once it has a name without a leading dot.
"""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.disk_errors import content_of
from controller.adapters.folder.log import as_lines
from controller.adapters.folder.names import DIGITS, decision_files, leadership_files, number_of
from controller.adapters.process.failpoints import failpoint
from controller.model.errors import (
    AnotherClusterError,
    DamagedJournalError,
    JournalError,
    LeadershipLostError,
    WireError,
)
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.ports.leadership import newer_epoch
from controller.wire.base import read_object
from controller.wire.commands import command_event, epoch_event
from controller.wire.journal import encode_epoch
from controller.wire.journal_records import WHOLE_EVERY_MS, Decided, EntryReader, EntryWriter, unreadable
from controller.wire.readable import utc

log = logging.getLogger(__name__)

#: So far ahead of the clock a decision is told of.
_WORTH_TELLING_MS: Final = 600_000


class FolderJournal:
    """Journal on a folder: the first process to create an entry decides; its commands are derived from the entry."""

    def __init__(self, folder: Path, *, cluster: str, whole_every_ms: int = WHOLE_EVERY_MS) -> None:
        self._cluster, self._whole_every_ms = cluster, whole_every_ms
        self._folder = folder
        self._journal, self._commands = folder / "journal", folder / "commands"

    def open(self) -> JournalHead:
        """See Journal.  Writes the commands of the last entry where its writer died before it wrote them."""
        refuse_another_journal(self._folder, self._cluster)
        self._journal.mkdir(parents=True, exist_ok=True)
        self._commands.mkdir(parents=True, exist_ok=True)
        epoch = newest_epoch(self._folder)
        newest = newest_decision(self._folder)
        base = None if newest is None else newest.remembered
        self._writer = EntryWriter(whole_every_ms=self._whole_every_ms, base=base)
        if newest is None:
            return JournalHead(last=None, epoch=epoch)
        last, path = newest.entry, _entry_path(self._journal, newest.interval)
        _tell_of_the_future(path, newest.interval)
        if not self._commands_of(last.interval).exists():
            self._issue(last, epoch=epoch, issued_at_ms=path.stat().st_mtime_ns // 1_000_000)
        return JournalHead(last=last, epoch=epoch)

    def fence(self) -> int:
        """See Journal.  Files are told by their names alone; the next epoch's file fences."""
        refuse_another_journal(self._folder, self._cluster)
        self._journal.mkdir(parents=True, exist_ok=True)
        return newest_epoch(self._folder)

    def begin_epoch(self, epoch: int) -> None:
        """See Journal.  Every file of commands begins with its epoch, so no more is to be written."""
        path = self._journal / f"epoch-{epoch:09d}.json"
        try:
            files.create(path, encode_epoch(self._cluster, epoch))
        except FileExistsError as error:
            raise LeadershipLostError(f"epoch {epoch} was already begun by another controller: {path}") from error
        except OSError as error:
            raise JournalError(f"{path}: {error.strerror}") from error

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """See Journal."""
        failpoint("after-decide")

        def before() -> None:
            before_commit()
            failpoint("inside-transaction")

        path, encoded = _entry_path(self._journal, entry.interval), self._writer.encode(entry)
        try:
            files.create(path, encoded.value, before=before)
        except FileExistsError as error:
            raise LeadershipLostError(
                f"interval {utc(entry.interval)} was already decided by another controller: {path}"
            ) from error
        except OSError as error:
            raise JournalError(f"{path}: {error.strerror}") from error
        self._writer.wrote(encoded)
        failpoint("after-commit")
        self._issue(entry, epoch=epoch, issued_at_ms=issued_at_ms)

    def prune(self, *, committed: int, before: int) -> None:
        """See Journal.  Commands go with their entries, and so do all epochs but the newest."""
        old = [path for path in decision_files(self._folder) if (t := number_of(path)) < before and t <= committed]
        kept = next((number for number in reversed(range(len(old))) if _is_whole(old[number])), 0)
        try:
            # The oldest first: if this is interrupted, the remaining entries have no gap.
            for path in old[:kept]:
                self._commands_of(number_of(path)).unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            for path in leadership_files(self._folder)[:-1]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise JournalError(f"{self._journal}: {error.strerror}") from error

    def _issue(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int) -> None:
        commands = entry.decision.commands
        if commands:
            events = [epoch_event(self._cluster, epoch, issued_at_ms)]
            events += [command_event(command, epoch, issued_at_ms) for command in commands]
            files.replace(self._commands_of(entry.interval), as_lines(events))

    def _commands_of(self, interval: int) -> Path:
        return self._commands / f"{interval:0{DIGITS}d}.jsonl"


def refuse_another_journal(folder: Path, cluster: str) -> None:
    """AnotherClusterError where the log at *folder* has a decision or a leadership of another one than *cluster*.

    A log in a folder is one cluster's, so its newest file tells.  One that cannot be read is found by who reads it.
    """
    for path in (*decision_files(folder)[-1:], *leadership_files(folder)[-1:]):
        try:
            of = read_object(content_of(path)).get("cluster")
        except (OSError, WireError):
            continue
        if of not in (None, cluster):
            raise AnotherClusterError(f"{path} is of cluster {of!r}: give cluster {cluster!r} a folder of its own")


def newest_epoch(folder: Path) -> int:
    """The number of the newest leadership in the log at *folder*; 0 before the first."""
    return newer_epoch(0, *sorted(map(number_of, leadership_files(folder))))


def read_journal(folder: Path) -> Iterator[JournalEntry]:
    """Every decision in the log at *folder*, oldest first, from the first one with its whole memory on."""
    reader, begun = EntryReader(None), False
    for path in decision_files(folder):
        decided = _read_entry(path, reader)
        begun = begun or decided.missing is None
        if begun:
            yield decided.entry


def newest_decision(folder: Path) -> Decided | None:
    """The last decision in the log at *folder*, with its memory; None before the first."""
    paths, reader, newest = decision_files(folder), EntryReader(None), None
    whole = next((number for number in reversed(range(len(paths))) if _is_whole(paths[number])), 0)
    for path in paths[whole:]:
        newest = _read_entry(path, reader)
    return newest


def _tell_of_the_future(path: Path, interval: int) -> None:
    """Tell where the last decision, in *path*, is of a time that has not come: none is made before then."""
    if interval > time.time_ns() // 1_000_000 + _WORTH_TELLING_MS:
        log.error(
            "%s: the last decision is of %s, ahead of this host's clock, so nothing is decided until then. If the clock"
            " is right now, it was wrong when a collector wrote that tick: stop trimtab, move this file and"
            " commands/%s out of the log, delete executor/position.json, set another checkpoint.path, and start again",
            path,
            utc(interval),
            path.with_suffix(".jsonl").name,
        )


def _entry_path(journal: Path, interval: int) -> Path:
    return journal / f"{interval:0{DIGITS}d}.json"


def _is_whole(path: Path) -> bool:
    try:
        return read_object(content_of(path)).get("type") == "decision"
    except (OSError, WireError) as error:
        raise unreadable(str(path), error) from error


def _read_entry(path: Path, reader: EntryReader) -> Decided:
    try:
        decided = reader.read(content_of(path))
    except (OSError, WireError) as error:
        raise unreadable(str(path), error) from error
    if not isinstance(decided, Decided):
        raise DamagedJournalError(f"{path}: holds no decision")
    return decided
