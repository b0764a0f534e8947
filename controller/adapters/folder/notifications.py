"""The sender of notifications on one machine: a lock and a file in ``notifications`` beside the election's lock."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.disk.cluster_file import claim
from controller.adapters.election.controls import ABSENT
from controller.adapters.folder.controls import ELECTION_PATH
from controller.adapters.folder.leadership import FileLeadership
from controller.model.errors import LeadershipLostError, TrimtabError
from controller.settings.small_file import open_to_read
from controller.wire.notifications import MAX_STATE_BYTES

_FOLDER: Final = "notifications"


class FileNotifications:
    """NotificationStore in *folder*, an election's: the process that holds the lock sends."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._election, self._folder, self._cluster = folder, folder / _FOLDER, cluster
        self._state = self._folder / "state.json"
        self._lock: FileLeadership | None = None

    def sends(self) -> bool:
        """See NotificationStore."""
        with _errors(self._folder):
            if self._lock is None:
                claim(self._election, self._cluster, key=ELECTION_PATH)
                self._lock = FileLeadership(self._folder)
            if self._lock.lost():
                return self._lock.try_to_acquire()
            try:
                self._lock.check()
            except LeadershipLostError:
                return False
        return True

    def read(self) -> tuple[bytes | None, int]:
        """See NotificationStore."""
        with _errors(self._state):
            try:
                with open_to_read(self._state) as file:
                    value = file.read(MAX_STATE_BYTES + 1)
            except FileNotFoundError:
                return None, ABSENT
        return value, zlib.crc32(value)

    def write(self, value: bytes, version: int) -> int | None:
        """See NotificationStore.  The lock excludes all others."""
        if not self.sends() or self.read()[1] != version:
            return None
        with _errors(self._state):
            files.replace(self._state, value)
        return zlib.crc32(value)

    def close(self) -> None:
        """See NotificationStore."""
        if self._lock is not None:
            self._lock.release()


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TrimtabError(f"{error.filename or path}: {error.strerror}") from error
