"""Claims on the commands in a folder.  One executor at a time holds the lock ``executor/lock``."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.disk_errors import content_of, disk_errors
from controller.log.files.listing import Listing
from controller.log.files.reader import FolderReader
from controller.log.followed import FollowedClaim, Primitives
from controller.log.port import LogRecord, Start, TakenOverError
from controller.model.errors import StateError, TrimtabError

_LOCK: Final = "lock"


class FolderClaims:
    """Claims on *log*, whose commands are one partition; *folder* has their state.

    TakenOverError where another executor uses the folder.
    """

    largest_state = 1 << 20

    def __init__(self, log: Primitives, commands: Listing, folder: Path, *, name: str) -> None:
        self._log, self._commands, self._name = log, commands, name
        self._cell = _PositionFile(folder)
        self._claim: FollowedClaim | None = None
        self._reader: FolderReader | None = None

    @property
    def assigned(self) -> int:
        """See Claims."""
        return 1

    @property
    def remedy(self) -> str:
        """See Claims."""
        return self._cell.remedy

    def poll(self, limit: int, timeout_seconds: float) -> Sequence[LogRecord]:
        """See Claims."""
        if self._reader is None:
            done = self.claim(0).done
            self._reader = FolderReader(self._commands, Start(position=done + 1))
            if done >= self._commands.end:
                raise StateError(f"{self._cell.where}: commands before its position are missing. {self.remedy}")
        records = list[LogRecord]()
        while len(records) < limit and (record := self._reader.next(0 if records else timeout_seconds)) is not None:
            records.append(record)
        return records

    def claim(self, partition: int) -> FollowedClaim:
        """See Claims."""
        if self._claim is None:
            self._claim = FollowedClaim(self._log, self._cell, partition, name=self._name)
        return self._claim

    def close(self) -> None:
        """See Claims."""
        self._cell.close()


class _PositionFile:
    """Cell: the file ``position.json`` in *folder*, while its lock is ours."""

    def __init__(self, folder: Path) -> None:
        self._lock_file, self._position = folder / _LOCK, folder / "position.json"
        self.where = str(self._position)
        self.remedy = (
            "Delete it, and the executor reads all commands again; commands that expired or have a "
            "result are not carried out"
        )
        with disk_errors():
            folder.mkdir(parents=True, exist_ok=True)
            self._lock: int | None = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            if isinstance(error, BlockingIOError):
                raise TakenOverError(f"{folder}: another executor uses this folder") from error
            raise TrimtabError(f"{self._lock_file} cannot be locked: {error.strerror}") from error

    def read(self) -> bytes:
        """See Cell."""
        with disk_errors():
            return content_of(self._position) if self._position.exists() else b""

    def write(self, value: bytes) -> None:
        """See Cell.  No other executor can take over while this process has the lock that they find."""
        if self._lock is None or not files.is_at(self._lock, self._lock_file):
            raise TakenOverError(f"{self._lock_file} was deleted: another executor may use this folder by now")
        with disk_errors():
            files.replace(self._position, value)

    def close(self) -> None:
        """See Cell."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
