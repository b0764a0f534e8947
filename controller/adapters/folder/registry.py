"""The registry of processes of one machine: a file each in ``processes`` beside the election's lock."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.disk.cluster_file import claim
from controller.adapters.election.registry import LASTS_SECONDS, MOST_ENTRIES, RegistryEntries, RegistryEntry
from controller.adapters.folder.controls import ELECTION_PATH
from controller.model.errors import TrimtabError
from controller.settings.small_file import open_to_read

_SUFFIX: Final = ".json"


class FileRegistry:
    """Registry in *folder*, an election's.

    A process that was killed leaves its file; it counts for LASTS_SECONDS, and whoever writes then deletes it.
    """

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._election, self._folder, self._cluster = folder, folder / "processes", cluster
        self._own: Path | None = None

    def write(self, name: str, value: bytes) -> bool:
        """See Registry."""
        path = self._folder / f"{name}{_SUFFIX}"
        with _errors(path):
            claim(self._election, self._cluster, key=ELECTION_PATH)
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._own is None:
                self._delete_ended()
            self._own = path
            files.replace(path, value)
        return True

    def read(self, longest: int) -> RegistryEntries:
        """See Registry."""
        with _errors(self._folder):
            paths = sorted(path for path in self._paths() if path.suffix == _SUFFIX)
            running = [path for path in paths if not _has_ended(path)]
            entries = [_entry(path, longest) for path in running[:MOST_ENTRIES]]
        return RegistryEntries(tuple(filter(None, entries)), max(0, len(running) - MOST_ENTRIES))

    def close(self) -> None:
        """See Registry."""
        if self._own is not None:
            with suppress(OSError):
                self._own.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        try:
            return list(self._folder.iterdir())
        except FileNotFoundError:
            return []

    def _delete_ended(self) -> None:
        for path in self._paths():
            if (path.suffix == _SUFFIX or files.is_left(path)) and _has_ended(path):
                path.unlink(missing_ok=True)


def _has_ended(path: Path) -> bool:
    """Whether it is no longer renewed; a time in the future does not count as a renewal."""
    try:
        return abs(time.time() - path.lstat().st_mtime) > LASTS_SECONDS
    except FileNotFoundError:
        return True


def _entry(path: Path, longest: int) -> RegistryEntry | None:
    """None if it was deleted in the meantime. An unreadable one has no value, and its reader reports that."""
    try:
        renewed_ms = path.lstat().st_mtime_ns // 1_000_000
        try:
            with open_to_read(path) as file:
                value = file.read(longest + 1)
        except FileNotFoundError:
            raise
        except OSError:
            return RegistryEntry(path.name, None, renewed_ms)
    except FileNotFoundError:
        return None
    return RegistryEntry(path.name, value if len(value) <= longest else None, renewed_ms)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TrimtabError(f"{error.filename or path}: {error.strerror}") from error
