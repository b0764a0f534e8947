"""What leaves a log in a folder: files that trimtab wrote, whose records are old and were read."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.names import command_files, dead_letter_files, interval_and_number, number_of
from controller.model.errors import TrimtabError

#: So many files are deleted at once, some milliseconds' work; the next batches delete the rest.
AT_ONCE: Final = 500
#: The folders are listed when so much more has been read, by the intervals.
_EVERY_MS: Final = 3_600_000
_PARTS: Final = ("metrics", "results", "commands", "journal", "dead_letters")


class FolderRetention:
    """Retention of the log in *folder*: records older than *kept_ms* go; the journal prunes itself.

    Age is counted by the log, not by a clock: back from the last interval that was read.  So what nobody has read
    stays, however old it is, and so does a log that was copied here.  A file goes where both the interval in its name
    and its time of modification are that old.  Each deletion stands by itself, so a crash leaves the rest for later.
    """

    def __init__(self, folder: Path, *, kept_ms: int) -> None:
        self._folder, self._kept_ms = folder, kept_ms
        self._listed: int | None = None
        self._old: Iterator[Path] = iter(())

    def prune(self, *, read: int) -> None:
        """See Retention."""
        old = list(islice(self._old, AT_ONCE))
        if not old and (self._listed is None or read >= self._listed + _EVERY_MS):
            self._listed = read
            self._old = iter(self._older_than(read - self._kept_ms))
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
        named = chain(
            ((path, found[0]) for path in self._lines() if (found := interval_and_number(path))),
            ((path, number_of(path)) for path in command_files(self._folder)),
            # Neither name has an interval.
            ((path, 0) for path in dead_letter_files(self._folder)),
            ((path, 0) for part in _PARTS for path in (self._folder / part).glob(".*") if files.is_left(path)),
        )
        try:
            return [path for path, interval in named if interval < before and _modified_ms(path) < before]
        except OSError as error:
            raise TrimtabError(f"{self._folder} cannot be listed: {error.strerror}") from error

    def _lines(self) -> Iterator[Path]:
        """The files of records, oldest first, but the newest of each folder: who writes there goes on behind it."""
        for part in ("metrics", "results"):
            yield from sorted(filter(interval_and_number, (self._folder / part).glob("*.jsonl")))[:-1]


def _modified_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:  # whoever wrote it has renamed it
        return 0
