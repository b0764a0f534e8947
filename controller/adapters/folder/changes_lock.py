"""The lock of a file election's folder, held while ``controls.json`` or ``epoch`` is read and replaced."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.network.deadline import Deadline
from controller.model.errors import ControlsUnreachableError

#: How long a change waits for another one.
_PATIENCE_SECONDS: Final = 5.0


def lock_in(folder: Path) -> Path:
    """The file that is locked."""
    return folder / "controls.lock"


@contextmanager
def changes_locked(folder: Path) -> Iterator[None]:
    """Within the block, no other process changes anything in *folder*.

    ControlsUnreachableError where another process does not release the lock in time, or nothing can be locked there.
    """
    path, deadline = lock_in(folder), Deadline.after(_PATIENCE_SECONDS)
    descriptor = _locked(path, deadline)
    while not files.is_at(descriptor, path):  # somebody deleted it meanwhile, so others lock another file
        os.close(descriptor)
        descriptor = _locked(path, deadline)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, deadline: Deadline) -> int:
    """The descriptor of the locked file. A change takes milliseconds, but a process that hangs holds the lock for
    ever."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ControlsUnreachableError(f"{path}: {error.strerror}") from error
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            if deadline.passed:
                raise ControlsUnreachableError(
                    f"{path}: another process has held this lock for {_PATIENCE_SECONDS:g} s: end it (`fuser -v {path}`"
                    " names it)"
                )
            time.sleep(_PATIENCE_SECONDS / 500)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            raise ControlsUnreachableError(f"{path}: {error.strerror}") from error
        raise
