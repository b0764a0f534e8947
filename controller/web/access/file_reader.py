"""A file that people change while a process runs: read anew when it has changed, and refused as a whole when broken."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from controller.model.errors import SettingsError
from controller.settings.small_file import why_not_read_again

log = logging.getLogger(__name__)

T = TypeVar("T")


class FileReader(Generic[T]):
    """What *parse* makes of the file *path*.  For several threads.

    *parse* raises SettingsError, without the content, where the file cannot be used.  At the start that is raised;
    later it is logged and ``value`` is *empty*: whoever was removed from a file must not get in because of a typing
    error beside it.
    """

    def __init__(self, path: str, parse: Callable[[Path], T], empty: T) -> None:
        self._path, self._parse, self._empty = Path(path), parse, empty
        self._turn = threading.Lock()
        self._state = self._state_of()
        self._value = self._read()

    @property
    def value(self) -> T:
        """What the file says now."""
        with self._turn:
            state = self._state_of()
            if state != self._state:
                self._state = state
                self._value = self._read_or_nothing()
            return self._value

    def _read_or_nothing(self) -> T:
        try:
            value = self._read()
        except SettingsError as error:
            log.error("%s; until that is mended, nothing in the file counts", error)
            return self._empty
        log.info("%s has changed and was read anew", self._path)
        return value

    def _read(self) -> T:
        problem = why_not_read_again(self._path)
        if problem:
            raise SettingsError(f"{self._path}: {problem}")
        return self._parse(self._path)

    def _state_of(self) -> object:
        try:
            stat = self._path.stat()
        except OSError as error:
            return error.errno
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
