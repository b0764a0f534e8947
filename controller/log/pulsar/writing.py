"""Appends to the log: all records are stored within the deadline, or an error is raised and nothing more is sent.

Producers number their messages, and the namespace drops repeats, so a message that is sent again after a broken
connection is stored once.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import pulsar

from controller.adapters.network.calls import FinishedCall, side_by_side
from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.errors import error_of, failure, offline
from controller.log.port import Out
from controller.model.errors import TrimtabError

#: Topic (short name) and partition.
WriteTarget: TypeAlias = tuple[str, int]

#: Messages in one entry at most, and those under way to a partition: the client's own queue is longer.
_IN_BATCH: Final = 256
_UNDER_WAY: Final = 500
_BYTES_UNDER_WAY: Final = 32 << 20
_BATCHED: Final[Mapping[str, Any]] = {
    "batching_enabled": True,
    "batching_max_messages": _IN_BATCH,
    "batching_max_publish_delay_ms": 5,
    "compression_type": pulsar.CompressionType.LZ4,
    "max_pending_messages": 2 * _UNDER_WAY,
    "block_if_queue_full": False,
}


@lru_cache(100_000)
def partition_of(key: str, partitions: int) -> int:
    """The partition that *key* belongs to, as producers in Java choose it.

    Pulsar: JavaStringHash, SinglePartitionMessageRouterImpl
    """
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % partitions


class Content(NamedTuple):
    """A message for the client library."""

    value: bytes
    #: ``partition_key`` and ``properties``.
    options: Mapping[str, Any]


def content(out: Out, own: Mapping[str, str] | None = None) -> Content:
    """*out* as a message, with *own* properties besides its headers."""
    properties = {name: value.decode("latin-1") for name, value in out.headers.items()} | dict(own or {})
    options: dict[str, Any] = {"properties": properties} if properties else {}
    return Content(out.value, options | ({"partition_key": out.key.decode()} if out.key else {}))


class Producers:
    """Producers of batches, one a partition, made when they are needed."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._producers: dict[WriteTarget, pulsar.Producer] = {}

    def get(self, target: WriteTarget) -> pulsar.Producer:
        """The producer of *target*.  TrimtabError where it cannot be written to."""
        if target not in self._producers:
            full = partition_name(topic_name(self._connection.log, target[0]), target[1])
            self._producers[target] = self._connection.patiently(
                lambda: self._connection.client.create_producer(
                    full, send_timeout_millis=round(PATIENCE_SECONDS * 1000), **_BATCHED
                ),
                target[0],
                "produce",
            )
        return self._producers[target]

    def connect(self, targets: Sequence[WriteTarget], seconds: float) -> None:
        """LogOfflineError where one of *targets* cannot be written to now."""
        for target in targets:
            if target in self._producers and not self._producers[target].is_connected():
                close_quietly(self._producers.pop(target))
        missing = [target for target in targets if target not in self._producers]
        calls = side_by_side({target: partial(self.get, target) for target in missing}, seconds)
        raise_first(self._connection, calls, before=True)

    def close(self) -> None:
        """Drop what is under way and end the connections to the partitions."""
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            close_quietly(producer)


class Sending:
    """Messages under way: how many, and the first failure.  The library reports from its own threads how each ended."""

    def __init__(self, connection: LogConnection, deadline: Deadline) -> None:
        self._log, self._deadline = connection.log, deadline
        self._changed = threading.Condition()
        self._open = self._bytes = 0
        self._place = ""
        self._failure: tuple[str, Any] | None = None

    def send(self, producer: pulsar.Producer, name: str, message: Content) -> None:
        """Send *message* to the topic *name* once few enough are under way; raises an earlier one's failure."""
        size = len(message.value)
        self._until(lambda: self._open < _UNDER_WAY and (self._bytes + size <= _BYTES_UNDER_WAY or not self._open))
        with self._changed:
            self._open, self._bytes, self._place = self._open + 1, self._bytes + size, where(self._log, name)
        try:
            producer.send_async(message.value, partial(self._ended, self._place, size), **message.options)
        except pulsar.PulsarException as error:
            raise failure(self._place, error, operation="produce") from error

    def _ended(self, place: str, size: int, result: Any, _: Any) -> None:
        """One was stored, or was not."""
        with self._changed:
            self._open, self._bytes = self._open - 1, self._bytes - size
            if result != pulsar.Result.Ok:
                self._failure = self._failure or (place, result)
            self._changed.notify_all()

    def wait(self) -> None:
        """Return when all are stored; raises the first failure, or Timeout where that takes too long."""
        self._until(lambda: self._open == 0)

    def _until(self, holds: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or holds(), self._deadline.remaining)
            if self._failure is not None:
                place, result = self._failure
                raise failure(place, error := error_of(result), operation="produce") from error
            if not holds():
                late = pulsar.Timeout(f"{self._open} records not written")
                raise failure(self._place, late, operation="produce") from late


def raise_first(connection: LogConnection, calls: Mapping[WriteTarget, FinishedCall], *, before: bool) -> None:
    """Raise the first error of *calls*, made *before* anything was written (LogOfflineError), or after."""
    failed = [(target, call.error) for target, call in calls.items() if call.error is not None]
    if not failed:
        return
    (name, partition), error = failed[0]
    place = f"{where(connection.log, name)}, partition {partition}"
    if not isinstance(error, pulsar.PulsarException | TrimtabError | TimeoutError):
        raise error
    raise (offline(place, error) if before else failure(place, error, operation="produce")) from error


def close_quietly(producer: pulsar.Producer) -> None:
    """End *producer*; what it has not sent is dropped."""
    try:
        producer.close()
    except pulsar.PulsarException:
        return  # it is closed, fenced, or the broker is unavailable
