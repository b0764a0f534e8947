"""Atomic files: each has its whole content or does not exist, even where the process dies."""

import errno
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import uuid4

from controller.model.errors import SettingsError, TrimtabError

#: The name of a file while it is being written.
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{32}", re.ASCII | re.DOTALL)
#: Write errors that may pass without a change of settings: a full disk, an unreachable file server.
_PASSES: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH}
)


def create(
    path: Path, content: bytes, *, modified_ms: int | None = None, before: Callable[[], None] | None = None
) -> None:
    """Create *path* with *content*; the first process wins, all others get FileExistsError. *modified_ms*: its
    modification time, if other than now.

    *before* is called when the content is written and only the name is missing; if it raises, no file is left.
    """
    temporary = _write_beside(path, content)
    try:
        if modified_ms is not None:
            os.utime(temporary, ns=(modified_ms * 1_000_000,) * 2)
        if before is not None:
            before()
        os.link(temporary, path)  # unlike a rename, never replaces
    finally:
        temporary.unlink()
    _sync(path.parent)


def replace(path: Path, content: bytes) -> None:
    """Write *content* to *path* in one step, in place of the file that may be there."""
    temporary = _write_beside(path, content)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file of *descriptor* is the one at *path*: a lock on a deleted file excludes nobody."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def why_not_writable(folder: Path) -> str:
    """Why no file can be written to *folder*, which need not exist; "" where it can.  Tries it, and leaves nothing."""
    try:
        _try_to_write(folder)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def refuse_not_writable(key: str, folder: str) -> None:
    """Raise SettingsError where no file can be written to *folder*, which the setting *key* names and need not exist.

    TrimtabError if the problem may pass, like a full disk, so that the service manager restarts this process.
    """
    try:
        _try_to_write(Path(folder))
    except OSError as error:
        problem = f"{key} = {folder!r}: {error.strerror}"
        if error.errno in _PASSES:
            raise TrimtabError(problem) from error
        raise SettingsError(f"{problem}; choose a folder that trimtab can write to") from error


def _try_to_write(folder: Path) -> None:
    """Write a file below *folder* and delete it; OSError whose ``strerror`` is a sentence where that fails."""
    place = folder
    try:
        while not place.exists() and place != place.parent:
            place = place.parent
        if place.is_dir():
            with TemporaryDirectory(prefix=".trimtab-", dir=place) as made:
                Path(made, "probe").write_bytes(b"x")
            return
    except OSError as error:
        # For an existing parent such as /proc, the error would say that it does not exist.
        why = "no file can be created there" if isinstance(error, FileNotFoundError) else error.strerror
        raise OSError(error.errno, f"{place} cannot be written to: {why}") from error
    raise OSError(errno.ENOTDIR, f"{place} is not a folder")


def why_not_lockable(folder: Path) -> str:
    """Why no file in *folder* can be locked, as in NFS without a lock service; "" where one can.  Leaves nothing."""
    try:
        with TemporaryDirectory(prefix=".trimtab-", dir=folder) as made, Path(made, "probe").open("xb") as probe:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return ""  # it is made at the first start
    except OSError as error:
        return f"no file in {folder} can be locked: {error.strerror}"
    return ""


def is_left(path: Path) -> bool:
    """Whether *path* is an unfinished file of a process that was killed."""
    return _TEMPORARY.fullmatch(path.name) is not None


def _write_beside(path: Path, content: bytes) -> Path:
    # A leading dot keeps it from Spark's file source and from listings by "*".
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        temporary.unlink(missing_ok=True)  # especially on a full disk, leave no unfinished file
        if isinstance(error, OSError):
            error.filename = str(path)  # the error of a failed write has no file name
        raise
    return temporary


def _sync(folder: Path) -> None:
    """Sync *folder*, so that a new name in it survives a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
