"""Inbox on a log in a folder: one executor at a time, on one machine."""

import fcntl
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.disk_errors import content_of, disk_errors, lines_in
from controller.adapters.folder.journal import newest_epoch
from controller.adapters.folder.log import write_results
from controller.adapters.folder.names import command_files, record_files
from controller.model.errors import AnotherClusterError, StateError, TrimtabError, WireError
from controller.ports.inbox import AnsweredIds, AnswerRecord, Delivery, PartitionMemory, TakenOverError
from controller.wire.base import Count, Items, Record, encode, validate
from controller.wire.results import answered_command

_TRIES: Final = 100
_LOCK: Final = "lock"


class _Position(Record):
    """How far the commands were read."""

    cluster: str = ""
    file: str = ""
    line: Count = 0
    epoch: Count = 0
    begun: Items[str] = ()


class FolderInbox:
    """Inbox on the log in *folder*, whose commands are one partition.

    ``executor/position.json`` holds its position.  Raises TakenOverError where another executor uses the folder, and
    AnotherClusterError where the folder is another cluster's log.  An error of the disk is a TrimtabError: then nothing
    was begun, or answered; the next inbox finds in the folder how far it has come.
    """

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster
        place = folder / "executor"
        self._place, self._position = place, place / "position.json"
        with disk_errors():
            place.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._begin()
            except BaseException:
                os.close(self._lock)
                raise

    def _begin(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TakenOverError(f"{self._place}: another executor uses this folder") from error
        except OSError as error:
            raise TrimtabError(f"{self._place / _LOCK} cannot be locked: {error.strerror}") from error
        known = _known(self._position)
        if known.cluster not in ("", self._cluster):
            raise AnotherClusterError(
                f"{self._folder} is the log of cluster {known.cluster!r}: give cluster {self._cluster!r} a folder of"
                " its own"
            )
        self._file, self._line = known.file, known.line
        self._next = (self._file, self._line)
        self._memory = PartitionMemory(
            epoch=known.epoch, answered=_answered(self._folder / "results"), begun=set(known.begun)
        )

    @property
    def assigned(self) -> int:
        """See Inbox."""
        return 1

    def take(self, most: int, timeout_seconds: float) -> list[Delivery]:  # noqa: ARG002
        """See Inbox.  Returns at once."""
        with disk_errors():
            return self._take(most)

    def _take(self, most: int) -> list[Delivery]:
        taken: list[Delivery] = []
        for path in command_files(self._folder):
            if path.name < self._file:
                continue
            start = self._line if path.name == self._file else 0
            part = [*islice(lines_in(path), start, start + most - len(taken))]
            if part:
                taken += [Delivery(0, line) for line in part]
                self._next = (path.name, start + len(part))
            if len(taken) == most:
                break
        return taken

    def memory(self, partition: int) -> PartitionMemory:  # noqa: ARG002
        """See Inbox."""
        return self._memory

    def newest_epoch(self, partition: int) -> int:  # noqa: ARG002
        """See Inbox.  The journal has a file for each leadership."""
        return newest_epoch(self._folder)

    def begin(self, partition: int, command: str) -> None:  # noqa: ARG002
        """See Inbox.  No other executor can take over while this process has the lock that they find."""
        with disk_errors():
            self._memory.begun.add(command)
            self._write()

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """See Inbox.  If the process dies before the position is stored, the next start finds it in the answers."""
        with disk_errors():
            self._publish([answer.value for answer in answers])
            self._file, self._line = self._next
            self._memory.settle()
            self._write()

    def close(self) -> None:
        """See Inbox."""
        os.close(self._lock)

    def _write(self) -> None:
        if not files.is_at(self._lock, self._place / _LOCK):
            raise TakenOverError(f"{self._place / _LOCK} was deleted: another executor may use this folder by now")
        memory = self._memory
        known = _Position(
            cluster=self._cluster,
            file=self._file,
            line=self._line,
            epoch=memory.epoch,
            begun=tuple(sorted(memory.begun)),
        )
        files.replace(self._position, encode(known))

    def _publish(self, values: list[bytes]) -> None:
        for _ in range(_TRIES):
            try:
                return write_results(self._folder, values)
            except FileExistsError:  # the collector, which writes its ticks there, had hung
                continue
        raise TrimtabError(
            f"{self._folder / 'results'}: no free name for a file of results was found in {_TRIES} tries"
        )


def _known(position: Path) -> _Position:
    try:
        return validate(_Position, content_of(position)) if position.exists() else _Position()
    except WireError as error:
        raise StateError(
            f"{position}: {error}: delete it, and the executor goes through all commands again; those that expired, or"
            " have a result, are not carried out"
        ) from error


def _answered(results: Path) -> AnsweredIds:
    """The ids of the commands that have a result in the folder *results*."""
    lines = (line for path in record_files(results) for line in lines_in(path))
    return AnsweredIds(command for line in lines if (command := answered_command(line)))
