"""Leadership on one machine: a locked file.  The kernel frees the lock when its process dies, however it dies."""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.changes_lock import changes_locked
from controller.adapters.folder.epoch_file import epoch_in
from controller.adapters.process.own_process import own_process
from controller.model.errors import LeadershipLostError, StateError, TrimtabError
from controller.model.leadership import Leader, newer_epoch, no_preparation
from controller.settings.small_file import open_to_read
from controller.wire.process import process_in

_POLL_SECONDS: Final = 0.1


def leader_in(folder: Path) -> Leader | None:
    """The process that leads by the lock in *folder*, None where none does.  Creates nothing; TrimtabError."""
    try:
        with open_to_read(_lock_in(folder)) as lock:
            try:
                # A shared lock, held for a moment: a process that wants the lock meanwhile tries again.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                host, process = process_in(lock.read())
                return Leader(host=host, process=process, since_ms=os.fstat(lock.fileno()).st_mtime_ns // 1_000_000)
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrimtabError(f"{_lock_in(folder)}: {error.strerror}") from error


def _lock_in(folder: Path) -> Path:
    return folder / "lock"


class FileLeadership:
    """Leadership by a lock on ``<folder>/lock``, its number in ``<folder>/epoch``.

    The locked file names the process that leads, for people who ask.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock, self._epoch_file = _lock_in(folder), folder / "epoch"
        self._descriptor: int | None = None
        self._epoch: int | None = None
        self._lost = True

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:
        """See Leadership."""
        while not stop():
            if self.try_to_acquire():
                return True
            stand_by()
            stand_by = no_preparation
            time.sleep(_POLL_SECONDS)
        return False

    def try_to_acquire(self) -> bool:
        """Whether this process leads now: takes the lock if no other process holds it.  TrimtabError: it cannot."""
        self.release()
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)  # somebody may have deleted it
            self._lost = not self._try_lock()
        except OSError as error:
            raise TrimtabError(f"{self._lock} cannot be locked: {error.strerror}") from error
        return not self._lost

    def claim(self, journal_epoch: int) -> int:
        """See Leadership."""
        # `trimtab stop-all` raises the same number.
        with changes_locked(self._epoch_file.parent):
            self.check()
            epoch = newer_epoch(self._stored(), journal_epoch) + 1
            try:
                files.replace(self._epoch_file, b"%d\n" % epoch)
            except OSError as error:
                raise TrimtabError(f"{self._epoch_file} cannot be written: {error.strerror}") from error
        self._epoch = epoch
        return epoch

    def check(self) -> None:
        """See Leadership."""
        if self._lost or not self._holds_the_file():
            self._lose(f"the lock {self._lock} is no longer held")
        if self._epoch is not None and self._stored() != self._epoch:
            self._lose(f"{self._epoch_file} holds {self._stored()}, not epoch {self._epoch}")

    def agreement(self, name: str) -> None:
        """See Leadership."""

    def lost(self) -> bool:
        """See Leadership."""
        return self._lost

    def session_lost(self) -> bool:
        """See Leadership.  Never true: a lock can be taken again."""
        return False

    def release(self) -> None:
        """See Leadership."""
        self._lost, self._epoch = True, None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _try_lock(self) -> bool:
        self._descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_locked = False
        else:
            is_locked = self._holds_the_file()
        if is_locked:
            with suppress(OSError):  # a full disk does not prevent leading
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, own_process(), 0)
        else:
            self.release()
        return is_locked

    def _holds_the_file(self) -> bool:
        """True while the locked file is the one that other processes would open."""
        return self._descriptor is not None and files.is_at(self._descriptor, self._lock)

    def _stored(self) -> int:
        try:
            epoch = epoch_in(self._epoch_file)
        except OSError as error:
            raise TrimtabError(f"{self._epoch_file} cannot be read: {error.strerror}") from error
        if epoch is None:
            raise StateError(f"{self._epoch_file} does not contain an epoch: `trimtab stop-all` starts a new one")
        return epoch

    def _lose(self, why: str) -> None:
        self._lost = True
        raise LeadershipLostError(why)
