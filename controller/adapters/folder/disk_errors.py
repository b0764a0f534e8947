"""Disk errors under a log in a folder, for code that works on it for long."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from controller.adapters.folder.names import is_endless
from controller.model.errors import TrimtabError
from controller.settings.small_file import open_to_read


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn a disk error in the block into a TrimtabError that names the file."""
    try:
        yield
    except OSError as error:
        raise TrimtabError(f"{error.filename}: {error.strerror}; make room, or allow writing there") from error


def content_of(path: Path) -> bytes:
    """The content of the file *path*.  OSError, also for a named pipe, which would block for ever."""
    with open_to_read(path) as file:
        return file.read()


def file_in(path: Path) -> bytes:
    """The content of the file *path*; empty if it was deleted since it was listed, as old files are, or is not a file.

    OSError.
    """
    if is_endless(path):
        return b""
    try:
        return content_of(path)
    except FileNotFoundError:
        return b""


def lines_in(path: Path) -> Iterator[bytes]:
    """The lines of ``file_in``, one by one: of 80 MB of tiny ones a list takes more than a GB."""
    content = BytesIO(file_in(path))  # now: an error is told before the first line is taken
    return (line for piece in content for line in piece.splitlines())
