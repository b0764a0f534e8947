"""Tar archives that are the same bytes whoever makes them, where and when: sorted, of root, with one time."""

import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, cast

_EXECUTABLE: Final = 0o100


def tree(folder: Path, prefix: str = "") -> dict[str, Path]:
    """All below *folder*, by its name in an archive: *prefix* and the path."""
    return {prefix + path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}


def pack(target: Path, files: Mapping[str, Path], when: int) -> None:
    """Write *files*, name in the archive -> file, to the compressed tar *target*, each with the time *when*."""
    with target.open("wb") as out, compressed(out) as zipped:
        write(zipped, files, when)


def compressed(out: IO[bytes]) -> IO[bytes]:
    """What compresses into *out*; neither a name nor the time of the day stands in its header."""
    return cast(IO[bytes], gzip.GzipFile("", "wb", 6, out, mtime=0))


def write(out: IO[bytes], files: Mapping[str, Path], when: int) -> None:
    """As ``pack``, to *out* and not compressed."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(files.items()):
            member = _member(name, path, when)
            with path.open("rb") if member.isreg() else io.BytesIO() as content:
                archive.addfile(member, content)


def _member(name: str, path: Path, when: int) -> tarfile.TarInfo:
    """The file *path* without what depends on who made it, and when; of its mode, only whether it is a program."""
    member = tarfile.TarInfo(name)
    member.mtime = when
    status = path.lstat()
    if path.is_symlink():
        member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, os.readlink(path)
    elif path.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, 0o755
    else:
        member.size, member.mode = status.st_size, 0o755 if status.st_mode & _EXECUTABLE else 0o644
    return member
