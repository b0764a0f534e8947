"""Reads a topic in a folder."""

import time
from collections.abc import Iterator
from typing import Final

from controller.adapters.network.deadline import Deadline
from controller.log.files.listing import Listing
from controller.log.port import LogRecord, Position, Start

_LOOK_SECONDS: Final = 0.2
#: Between two looks, as a multiple of the processor time of the last one, which grows with the files in the folder.
_REST: Final = 20


class FolderReader:
    """Reader of the files of *listing*."""

    def __init__(self, listing: Listing, start: Start) -> None:
        self._listing = listing
        listing.refresh()
        #: From where on records were not returned yet.
        self._at = begin_of(listing, start)
        self._pending: Iterator[LogRecord] = iter(())

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        deadline = Deadline.after(timeout_seconds)
        while (record := next(self._pending, None)) is None:
            began = time.thread_time()
            self._listing.look()
            took = time.thread_time() - began
            self._pending = self._records(self._listing.end)
            if (record := next(self._pending, None)) is not None:
                break
            if deadline.passed:
                return None
            time.sleep(min(deadline.remaining, max(_LOOK_SECONDS, _REST * took)))
        self._at = record.position + 1
        return record

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader."""
        self._listing.refresh()
        for record in self._records(self._listing.end):
            self._at = record.position + 1
            yield record

    def close(self) -> None:
        """See Reader."""

    def _records(self, end: Position) -> Iterator[LogRecord]:
        for file in self._listing.files(self._at, end):
            yield from self._listing.records(file, self._at)
            self._at = max(self._at, file.behind)


def begin_of(listing: Listing, start: Start) -> Position:
    """The position from which on *start* means the records of *listing*."""
    if start.position is not None:
        return start.position
    if start.since_ms is not None:
        return listing.since(start.since_ms)
    if start.last:
        last = listing.read_backwards(None, 1)
        return last[0].position if last else listing.end
    return listing.end if start.end else 0
