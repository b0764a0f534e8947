"""A small disk for the journal, to be filled."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What can be wrong with a file system of tests.faults.fuse.
FULL, SLOW, SYNC_FAILS = "full", "slow", "sync-fails"
_SIZE = "1m"
_BLOCK = 4096


class Disk:
    """A tmpfs of its own at *folder*; where mounting is not allowed, a limit on the files of the one who writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(folder)]
        self.mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0

    @contextmanager
    def full(self, pid: int) -> Iterator[None]:
        """No room for another file, as long as the block lasts; *pid* is who writes."""
        if not self.mounted:
            # EFBIG instead of ENOSPC, until the process has ended.
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            yield
            return
        filler = self.folder / ".filler"
        try:
            with filler.open("wb", buffering=0) as file:
                while True:
                    try:
                        file.write(b"x" * _BLOCK)
                    except OSError:
                        break
            yield
        finally:
            filler.unlink()

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    disk = Disk(folder)
    try:
        yield disk
    finally:
        disk.close()
