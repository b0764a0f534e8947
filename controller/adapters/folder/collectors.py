"""Collectors on one machine: the group and the log are folders, and a lock lets one collector work at a time."""

import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from controller.adapters.folder.disk_errors import disk_errors, lines_in
from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.folder.log import FolderMetricsLog
from controller.adapters.folder.names import written_files
from controller.model.errors import TrimtabError
from controller.ports.collectors import GroupView
from controller.wire.chunks import Arrived, KeyValue, glance
from controller.wire.metrics import TickRecord
from controller.wire.readable import utc

log = logging.getLogger(__name__)


class FileGroup:
    """CollectorGroup on one machine: the process with the lock in *folder* does all the work; others wait."""

    def __init__(self, folder: Path) -> None:
        self._lock = FileLeadership(folder)
        self._me = f"{socket.gethostname()}-{os.getpid()}"
        self._shares: Mapping[str, Sequence[str]] = {}
        #: Why the lock could not be seen, or taken, at the last look.
        self._problem = ""

    def look(self) -> GroupView:
        """See CollectorGroup.

        Where the file of the lock was deleted, this one leads with the next look at the earliest, and takes over anew:
        another one may have led meanwhile.
        """
        problem, self._problem = self._problem, ""
        try:
            if self._lock.lost():
                self._lock.try_to_acquire()
            else:
                self._lock.check()
        except (OSError, TrimtabError) as error:
            self._problem = str(error)
            if self._problem != problem:
                log.warning("the collector that leads is not known: %s", error)
        members = () if self._lock.lost() else (self._me,)
        return GroupView(me=self._me, members=members, shares=self._shares if members else {})

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        self._shares = shares

    def step_back(self) -> None:
        """See CollectorGroup."""
        self._lock.release()

    def leave(self) -> None:
        """See CollectorGroup."""
        self._lock.release()


class FolderCollectorLog:
    """CollectorLog on a folder: only the collector with the lock writes, so only its own records arrive."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster
        self._log = FolderMetricsLog(folder, cluster=cluster)
        self._metrics = folder / "metrics"
        self._arrived: list[Arrived] = []

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:  # noqa: ARG002
        """See CollectorLog."""
        records = list(records)
        with disk_errors():
            self._log.publish(records)
        self._arrived += [Arrived(head, None) for _, value in records if (head := glance(value)) is not None]

    def lead(self, since_ms: int) -> None:  # noqa: ARG002
        """See CollectorLog.  The newest files are enough: they begin with the last tick."""
        with disk_errors():
            self._log = FolderMetricsLog(self._folder, cluster=self._cluster)  # others may have written since
            written = written_files(self._metrics)
            files = [path for (interval, _), path in written if interval == written[-1][0][0]]
            self._arrived = [arrived for path in files for arrived in _arrived_in(path)]

    def arrived(self) -> Iterator[Arrived]:
        """See CollectorLog."""
        arrived, self._arrived = self._arrived, []
        yield from arrived

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See CollectorLog.  An interval that has its tick gets no second one, whatever this host's clock says."""
        with disk_errors():
            if self._log.has_tick(interval):
                log.warning("interval %s has its tick already: this host's clock is behind or was ahead", utc(interval))
            else:
                self._log.tick(interval, roster)

    def follow(self) -> None:
        """See CollectorLog."""

    def close(self) -> None:
        """See CollectorLog."""


def _arrived_in(path: Path) -> Iterator[Arrived]:
    """What lies in the file *path*.  A tick has an append time, so that one of the future does not count."""
    append_ms = min(path.stat().st_mtime_ns, time.time_ns()) // 1_000_000
    for line in lines_in(path):
        head = glance(line)
        if head is not None:
            yield Arrived(head, append_ms if isinstance(head, TickRecord) else None)
