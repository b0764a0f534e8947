"""What processes share beside the election, on cells: controls, the registry, and who sends notifications.

controls, epoch         the operator's controls, and the number of the newest leadership
processes/<name>        owned by a session, one a process
notifications           the state that those that could send share
senders/<id>            owned by a session, one a process; the one that was made first sends
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from controller.adapters.election.controls import ABSENT
from controller.adapters.election.registry import MOST_ENTRIES, RegistryEntries, RegistryEntry
from controller.log.election.cells import EXISTS
from controller.log.election.leadership import EPOCH
from controller.log.election.store import ElectionCells, has, put
from controller.model.controls import OperatorControls
from controller.model.errors import ControlsUnreachableError, SettingsError, TrimtabError
from controller.model.leadership import epoch_of
from controller.wire.controls import encode_controls, stored_controls

_CONTROLS: Final = "controls"
_PROCESSES: Final = "processes/"
_STATE: Final = "notifications"
_SENDERS: Final = "senders/"


@contextmanager
def unreachable() -> Iterator[None]:
    """ControlsUnreachableError for what the log does not answer."""
    try:
        yield
    except SettingsError:
        raise
    except TrimtabError as error:
        raise ControlsUnreachableError(str(error)) from error


class LogControls:
    """ControlStore on *cells*."""

    def __init__(self, cells: ElectionCells, *, where: str) -> None:
        """*where*: the topic, for messages."""
        self._cells, self._where = cells, where

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        value, version = self._stored(_CONTROLS)
        if version == ABSENT:
            return OperatorControls(), ABSENT
        return stored_controls(value, f"{_CONTROLS} in {self._where}"), version

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        change = put(_CONTROLS, encode_controls(controls))
        with unreachable():
            return self._cells.commit([has(_CONTROLS, version)], [change]) is not None

    def version(self) -> int:
        """See ControlStore."""
        return self._stored(_CONTROLS)[1]

    def epoch(self) -> int:
        """See ControlStore."""
        return epoch_of(self._stored(EPOCH)[0]) or 0

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        tried: int | None = None
        while True:
            stored, version = self._stored(EPOCH)
            if (epoch_of(stored) or 0) >= epoch:
                return
            if version == tried:
                raise ControlsUnreachableError(f"{self._where}: there is no room for a newer epoch")
            tried = version
            with unreachable():
                if self._cells.commit([has(EPOCH, version)], [put(EPOCH, b"%d" % epoch)]) is not None:
                    return

    def close(self) -> None:
        """See ControlStore."""
        self._cells.close()

    def _stored(self, key: str) -> tuple[bytes, int]:
        with unreachable():
            self._cells.refresh()
        cell = self._cells.get(key)
        return (b"", ABSENT) if cell is None else (cell.value, cell.version)


class LogRegistry:
    """Registry on *cells*."""

    def __init__(self, cells: ElectionCells) -> None:
        self._cells = cells

    def write(self, name: str, value: bytes) -> bool:
        """See Registry."""
        if not self._cells.refresh():
            return False
        session = self._cells.session()
        self._cells.commit([has(session, EXISTS)], [put(f"{_PROCESSES}{name}", value, session)])
        return True

    def read(self, longest: int) -> RegistryEntries:
        """See Registry."""
        self._cells.refresh()
        there = [each for each in self._cells.below(_PROCESSES) if not self._cells.seems_ended(each[1].owner)]
        entries = [
            RegistryEntry(
                key.removeprefix(_PROCESSES), cell.value if len(cell.value) <= longest else None, cell.changed_ms
            )
            for key, cell in sorted(there)[:MOST_ENTRIES]
        ]
        return RegistryEntries(tuple(entries), max(0, len(there) - MOST_ENTRIES))

    def close(self) -> None:
        """See Registry."""
        self._cells.close()


class LogNotifications:
    """NotificationStore on *cells*."""

    def __init__(self, cells: ElectionCells) -> None:
        self._cells = cells
        self._key = f"{_SENDERS}{uuid4().hex}"

    def sends(self) -> bool:
        """See NotificationStore."""
        cells = self._cells
        if not cells.refresh():
            return False
        session = cells.session()
        if cells.get(self._key) is None:
            cells.commit([has(session, EXISTS), has(self._key, ABSENT)], [put(self._key, b"", session)])
        return [key for key, _ in cells.below(_SENDERS)[:1]] == [self._key]

    def read(self) -> tuple[bytes | None, int]:
        """See NotificationStore."""
        self._cells.refresh()
        cell = self._cells.get(_STATE)
        return (None, ABSENT) if cell is None else (cell.value, cell.version)

    def write(self, value: bytes, version: int) -> int | None:
        """See NotificationStore."""
        return self._cells.commit([has(_STATE, version)], [put(_STATE, value)])

    def close(self) -> None:
        """See NotificationStore."""
        self._cells.close()
