"""The newest tick in a log in a folder, a moment after it was written."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.adapters.folder.disk_errors import lines_in
from controller.adapters.folder.names import holds_records, interval_and_number
from controller.log.port import LogRecord
from controller.log.ticked import TickWatch

_LOOK_SECONDS: Final = 0.2
#: Between two looks, as a multiple of the processor time of the last one, which grows with the files in the folder.
_REST: Final = 20
#: A file system may give the same time to two quick changes of a folder, so this many looks after a change list it.
_SETTLED_AFTER: Final = 10
#: Bytes of a file that somebody else has written, at most: one of ticks is small.
_LARGEST: Final = 1 << 20


class FolderTickWatch(TickWatch):
    """See TickWatch.  It looks at the metrics: there a tick is written last."""

    def __init__(self, folder: Path, *, cluster: str, period_ms: int) -> None:
        self._folder, self._period_ms = folder / "metrics", period_ms
        self._known = set[str]()
        with suppress(OSError):  # the query meets it, too, and reports it
            # At once: what comes from now on is seen, and the query's first batch reads the rest.
            self._known = self._names()
        super().__init__(cluster)

    def _follow(self) -> None:
        modified, unchanged, took = 0, 0, 0.0
        while not self._closed.wait(max(_LOOK_SECONDS, _REST * took)):
            began = time.thread_time()
            before, modified = modified, self._modified()
            unchanged = unchanged + 1 if modified == before else 0
            if unchanged <= _SETTLED_AFTER:
                self._look_at_new_files()
            took = time.thread_time() - began

    def _modified(self) -> int:
        return self._folder.stat().st_mtime_ns if self._folder.exists() else 0

    def _look_at_new_files(self) -> None:
        names = self._names()
        for name in sorted(filter(holds_records, names - self._known)):
            with suppress(OSError):  # it was deleted again, or cannot be read: that must not hide other files
                self._look_at(self._folder / name)
        self._known = names

    def _names(self) -> set[str]:
        # A set of names: thousands of paths would take ten times as long.
        return {*os.listdir(self._folder)} if self._folder.exists() else set()

    def _look_at(self, path: Path) -> None:
        """Look at the lines of the file at *path*, where one may be a tick."""
        named, status = interval_and_number(path), path.stat()
        # Of trimtab's own files only the first that is named after an interval holds its tick.
        if (named is None or named[1] == 0) and stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
            # As in the query: a time in the future does not count, and a clock may be slow by an interval.
            written_ms = min(status.st_mtime_ns, time.time_ns()) // 1_000_000
            for line in lines_in(path):
                self._look(LogRecord(0, 0, b"", line, written_ms + self._period_ms))
