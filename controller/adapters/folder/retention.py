"""Deletes old files of a log in a folder: files that trimtab wrote and whose records were read."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from controller.adapters.disk import files
from controller.adapters.folder.names import dead_letter_files, interval_and_number, number_in
from controller.model.errors import TrimtabError

#: So many files are deleted at once, some milliseconds' work; the next batches delete the rest.
AT_ONCE: Final = 500
#: The folders are listed when so much more has been read, by the intervals.
_EVERY_MS: Final = 3_600_000
_PARTS: Final = ("metrics", "results", "commands", "journal", "ticks", "dead_letters", "summaries")


class _Records(NamedTuple):
    """A file of metrics or results."""

    path: Path
    interval: int
    modified_ms: int
    is_newest: bool


class FolderRetention:
    """Retention of the log in *folder*: records older than *kept_ms* go; the journal prunes itself.

    Age counts back from the last interval that was read, not from a clock. So records that nobody has read are retained
    whatever their age, and so is a log that was copied here. A file is deleted if both its modification time and the
    interval in its name, if any, are that old. Deletions are independent, so after a crash the rest is deleted later.
    """

    def __init__(self, folder: Path, *, kept_ms: int, summaries_ms: int | None = None) -> None:
        """*summaries_ms*: how long summaries are retained; None: as long as records."""
        self._folder, self._kept_ms = folder, kept_ms
        self._summaries_ms = kept_ms if summaries_ms is None else summaries_ms
        self._listed: int | None = None
        self._old: Iterator[Path] = iter(())

    def prune(self, *, read: int) -> None:
        """See Retention."""
        old = list(islice(self._old, AT_ONCE))
        if not old and (self._listed is None or read >= self._listed + _EVERY_MS):
            self._listed = read
            self._old = iter([*self._older_than(read - self._kept_ms), *self._summaries(read - self._summaries_ms)])
            old = list(islice(self._old, AT_ONCE))
        failures: list[TrimtabError] = []
        for path in old:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                failures.append(TrimtabError(f"{path} cannot be deleted: {error.strerror}"))
        if failures:
            raise failures[0]

    def _older_than(self, before: int) -> list[Path]:
        try:
            records = [*self._records("metrics"), *self._records("results")]
            # File names of commands have no interval: those written before all retained records are deleted.
            written = min((each.modified_ms for each in records if each.interval >= before), default=0)
            return [
                *(
                    each.path
                    for each in records
                    if each.interval < before and not each.is_newest and each.modified_ms < before
                ),
                *(path for path in self._numbered() if _modified_ms(path) < min(before, written)),
                *(path for path in self._others() if _modified_ms(path) < before),
            ]
        except OSError as error:
            raise TrimtabError(f"{self._folder} cannot be listed: {error.strerror}") from error

    def _summaries(self, before: int) -> list[Path]:
        try:
            paths = [each.path for each in self._records("summaries") if not each.is_newest]
            return [path for path in paths if _modified_ms(path) < before]
        except OSError as error:
            raise TrimtabError(f"{self._folder} cannot be listed: {error.strerror}") from error

    def _records(self, topic: str) -> Iterator[_Records]:
        """The files of records, oldest first, without the newest: writers continue after it."""
        paths = sorted(filter(interval_and_number, (self._folder / topic).glob("*.jsonl")))
        for path in paths:
            name = interval_and_number(path)
            assert name is not None
            yield _Records(path, name[0], _modified_ms(path), path == paths[-1])

    def _numbered(self) -> Iterator[Path]:
        """Files of commands, and of what was about to be ticked, oldest first; not the newest, so that numbers grow."""
        for topic in ("commands", "ticks"):
            yield from sorted(path for path in (self._folder / topic).glob("*.jsonl") if number_in(path.name))[:-1]

    def _others(self) -> Iterator[Path]:
        """Dead letters, and what writers that were killed left."""
        yield from dead_letter_files(self._folder)
        for part in _PARTS:
            yield from filter(files.is_left, (self._folder / part).glob(".*"))


def _modified_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:  # whoever wrote it has renamed it
        return 0
