"""A file system that passes on to a folder, and is full, slow, or fails to sync, as a file beside it says.

A program of its own: ``python -m tests.faults.fuse FOLDER MOUNTPOINT FAULT``, where FAULT is a file with the name of a
fault, or empty.  It ends when it is unmounted.
"""

import errno
import os
import sys
import time
from typing import Any, Final

import mfusepy

from tests.faults.disk import FULL, SLOW, SYNC_FAILS

#: Each write, sync and rename, seconds.
_SLOW_SECONDS: Final = 0.05
_TOLD: Final = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid", "st_ino")


class FaultyDisk(mfusepy.Operations):  # type: ignore[misc]
    """Passes all calls on to *folder*; *fault*: the file that says what goes wrong."""

    use_ns = True

    def __init__(self, folder: str, fault: str) -> None:
        self._folder, self._fault = folder, fault

    def _at(self, path: str) -> str:
        return self._folder + path

    def _change(self) -> None:
        """Before something is written."""
        with open(self._fault, encoding="ascii") as file:
            fault = file.read()
        if fault == FULL:
            raise mfusepy.FuseOSError(errno.ENOSPC)
        if fault == SLOW:
            time.sleep(_SLOW_SECONDS)

    def _sync(self) -> None:
        self._change()
        with open(self._fault, encoding="ascii") as file:
            if file.read() == SYNC_FAILS:
                raise mfusepy.FuseOSError(errno.EIO)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._at(path))
        times = {name: getattr(found, f"{name}_ns") for name in ("st_atime", "st_mtime", "st_ctime")}
        return {name: getattr(found, name) for name in _TOLD} | times

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(self._at(path))]

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._change()
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

    def open(self, path: str, flags: int) -> int:
        # The kernel says where to write, also of a file that is only appended to.
        return os.open(self._at(path), flags & ~(os.O_APPEND | os.O_EXCL | os.O_CREAT))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._change()
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self._at(path), length)
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._sync()
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        self._sync()
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        self._change()
        os.mkdir(self._at(path), mode)
        return 0

    def rename(self, old: str, new: str) -> int:
        self._change()
        os.rename(self._at(old), self._at(new))
        return 0

    def link(self, target: str, source: str) -> int:
        self._change()
        os.link(self._at(source), self._at(target))
        return 0

    def unlink(self, path: str) -> int:
        os.unlink(self._at(path))
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self._at(path))
        return 0

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self._at(path), mode)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        os.utime(self._at(path), ns=times or (time.time_ns(),) * 2)
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._at(path))
        return {name: getattr(found, name) for name in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_frsize")}


if __name__ == "__main__":
    folder, mountpoint, fault = sys.argv[1:]
    # Attributes and names are not remembered: two processes write to it, and Spark looks at once.
    mfusepy.FUSE(FaultyDisk(folder, fault), mountpoint, foreground=True, attr_timeout=0, entry_timeout=0)
