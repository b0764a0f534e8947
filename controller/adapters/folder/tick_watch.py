"""The newest tick in a log in a folder, a moment after it was written."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.adapters.folder.disk_errors import lines_in
from controller.adapters.folder.names import holds_records, interval_and_number
from controller.adapters.ticked import TickWatch

_LOOK_SECONDS: Final = 0.2
#: A file system may give two changes of a folder that follow each other quickly the same time: so many looks list it.
_SETTLED_AFTER: Final = 10
#: Bytes of a file that somebody else has written, at most: one of ticks is small.
_LARGEST: Final = 1 << 20


class FolderTickWatch(TickWatch):
    """See TickWatch.  It looks at the metrics: there a tick is written last."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._folder = folder / "metrics"
        # At once: what comes from now on is seen, and the query's first batch reads the rest.
        self._known = self._names()
        super().__init__(cluster, OSError)

    def _follow(self, closed: threading.Event) -> None:
        modified, unchanged = 0, 0
        while not closed.wait(_LOOK_SECONDS):
            before, modified = modified, self._modified()
            unchanged = unchanged + 1 if modified == before else 0
            if unchanged <= _SETTLED_AFTER:
                self._look_at_new_files()

    def _modified(self) -> int:
        return self._folder.stat().st_mtime_ns if self._folder.exists() else 0

    def _look_at_new_files(self) -> None:
        names = self._names()
        for name in sorted(filter(holds_records, names - self._known)):
            path = self._folder / name
            for line in _lines_that_may_tick(path):
                self._look(line, path.stat().st_mtime_ns // 1_000_000)
        self._known = names

    def _names(self) -> set[str]:
        # A set of names: thousands of paths would take ten times as long.
        return {*os.listdir(self._folder)} if self._folder.exists() else set()


def _lines_that_may_tick(path: Path) -> Iterator[bytes]:
    """Of trimtab's own files only the first that is named after an interval holds its tick."""
    named = interval_and_number(path)
    if (named is None or named[1] == 0) and path.stat().st_size <= _LARGEST:
        yield from lines_in(path)
