"""Errors of the disk under a log in a folder, for those who work on it for long."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from controller.model.errors import TrimtabError
from controller.settings.small_file import open_to_read

log = logging.getLogger(__name__)


@contextmanager
def disk_errors() -> Iterator[None]:
    """An error of the disk in the block as a TrimtabError, which names the file."""
    try:
        yield
    except OSError as error:
        raise TrimtabError(f"{error.filename}: {error.strerror}; make room, or allow writing there") from error


def content_of(path: Path) -> bytes:
    """The content of the file *path*.  OSError, also where it is a named pipe: it would be waited for without end."""
    with open_to_read(path) as file:
        return file.read()


def lines_in(path: Path) -> list[bytes]:
    """The lines of the file *path*; none where it was deleted since it was listed, as old files are, or is no file."""
    if path.is_fifo() or path.is_char_device():  # who reads them may never come to an end
        _tell(path)
        return []
    try:
        return content_of(path).splitlines()
    except FileNotFoundError:
        return []


@cache
def _tell(path: Path) -> None:
    """Tell once in a process that *path* is passed over."""
    log.warning("%s: is a named pipe or a device, and no file: it is passed over; move it out of the log", path)
