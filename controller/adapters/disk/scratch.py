"""Folders for what a command needs while it works; they are deleted when it ends, also by a signal."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from controller.adapters.process import signals

#: A process holds the lock on it for as long as it lives, however it ends.
_IN_USE: Final = "in-use"


@contextmanager
def scratch_folder(prefix: str, inside: Path | None = None) -> Iterator[Path]:
    """A new folder for the length of the block, which only this user may read; *inside* the system's, or another one.

    Unlike TemporaryDirectory's, it is also deleted when Ctrl-C ends the process: recordings hold the names of clusters.
    """
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
    try:
        with signals.cleaned_up_at_end(lambda: shutil.rmtree(made, ignore_errors=True)):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def held_folder(prefix: str) -> Path:
    """A new folder, which only this user may read; it is this process's until it ends.

    Folders of that prefix whose processes were killed are deleted first.
    """
    _delete_left(prefix)
    # Under another name until it is locked, so that no other process finds it unlocked.
    made = Path(tempfile.mkdtemp(prefix=f".{prefix}"))
    lock = os.open(made / _IN_USE, os.O_CREAT | os.O_RDWR, 0o600)  # never closed: that gives the lock back
    fcntl.flock(lock, fcntl.LOCK_EX)
    return made.rename(made.with_name(made.name.removeprefix(".")))


def _delete_left(prefix: str) -> None:
    """Delete the folders that killed processes of this user have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid() or folder.is_symlink():
                continue
            with (folder / _IN_USE).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its process lives
                shutil.rmtree(folder, ignore_errors=True)
