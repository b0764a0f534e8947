"""Errors of the disk under a log in a folder, for those who work on it for long."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.model.errors import TrimtabError


@contextmanager
def disk_errors() -> Iterator[None]:
    """An error of the disk in the block as a TrimtabError, which names the file."""
    try:
        yield
    except OSError as error:
        raise TrimtabError(f"{error.filename}: {error.strerror}; make room, or allow writing there") from error


def lines_in(path: Path) -> list[bytes]:
    """The lines of the file *path*; none where it was deleted since it was listed, as old files are."""
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
