"""Reads the issued commands."""

from collections.abc import Iterator
from typing import NamedTuple

from controller.log.port import Log


class IssuedEvent(NamedTuple):
    """An event of the command topic as bytes, with its place in the topic."""

    #: Its name in messages.
    place: str
    partition: int
    value: bytes


class CommandLog:
    """A reader of the commands in *log*, from the oldest one on."""

    def __init__(self, log: Log) -> None:
        self._log = log
        log.partitions("commands")
        self._reader = log.read("commands")

    def read(self) -> Iterator[IssuedEvent]:
        """The events issued since the last one read, up to the current end, in order within a namespace."""
        for record in self._reader.read_to_end():
            place = self._log.place("commands", record.partition, record.position)
            yield IssuedEvent(place, record.partition, record.value)

    def poll(self) -> list[bytes]:
        """The values of the events that ``read`` would return, all at once; empty if there are none.

        An event that was issued a moment ago may only come with the next call.
        """
        return [event.value for event in self.read()]

    def close(self) -> None:
        """End all connections."""
        self._reader.close()
        self._log.close()
