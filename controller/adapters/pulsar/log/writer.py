"""Writers of the log: all records there within the deadline, or a failure after which nothing more is written.

Producers number their messages, and the namespace drops repeats, so a message that is sent again after a broken
connection is stored once.
"""

import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.words import error_of, failure

#: Messages in one entry at most, and those under way to a partition: the client's own queue is longer.
_IN_BATCH: Final = 256
_UNDER_WAY: Final = 500
_BYTES_UNDER_WAY: Final = 32 << 20
_BATCHED: Final[dict[str, Any]] = {
    "batching_enabled": True,
    "batching_max_messages": _IN_BATCH,
    "batching_max_publish_delay_ms": 5,
    "compression_type": pulsar.CompressionType.LZ4,
    "max_pending_messages": 2 * _UNDER_WAY,
    "block_if_queue_full": False,
}


class Outgoing(NamedTuple):
    """A record to be written; *partition* None lets the key decide."""

    key: str
    value: bytes
    partition: int | None = None


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


class TopicWriter:
    """Appends to the partitions of the topic *name* (short name); a producer for each, made when it is needed."""

    def __init__(self, connection: LogConnection, name: str) -> None:
        self._connection, self._name = connection, name
        self._producers: dict[int, pulsar.Producer] = {}

    def append(self, records: Iterable[Outgoing], *, partitions: int, within_seconds: float = PATIENCE_SECONDS) -> None:
        """Return when all *records* are there; *partitions* is how many the topic has now.

        TrimtabError where one could not be written in time; its producers are closed then, so nothing follows later.
        """
        sending = Sending(Deadline.after(within_seconds))
        try:
            for record in records:
                number = record.partition
                producer = self._producer(partition_of(record.key, partitions) if number is None else number)
                producer.send_async(record.value, sending.begin(len(record.value)), partition_key=record.key or None)
            sending.wait()
        except pulsar.PulsarException as error:
            self.close()
            raise failure(where(self._connection.log, self._name), error, operation="produce") from error
        except BaseException:
            self.close()
            raise

    def prepare(self, partitions: Iterable[int]) -> None:
        """Make the producers of *partitions*.  TrimtabError where one cannot be written to."""
        for partition in partitions:
            self._producer(partition)

    def close(self) -> None:
        """Drop what is under way and end the connections to the partitions."""
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            close_quietly(producer)

    def _producer(self, partition: int) -> pulsar.Producer:
        if partition not in self._producers:
            full = partition_name(topic_name(self._connection.log, self._name), partition)
            self._producers[partition] = self._connection.patiently(
                lambda: self._connection.client.create_producer(
                    full, send_timeout_millis=round(PATIENCE_SECONDS * 1000), **_BATCHED
                ),
                self._name,
                "produce",
            )
        return self._producers[partition]


class Sending:
    """Messages under way: how many, and the first failure.  The library tells from its own threads how each ended."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._changed = threading.Condition()
        self._open = self._bytes = 0
        self._failure: Any = None

    def begin(self, size: int) -> Callable[[Any, Any], None]:
        """Wait until one more, of *size* bytes, may be sent; raises an earlier one's failure.  Call what it returns."""
        self._until(lambda: self._open < _UNDER_WAY and (self._bytes + size <= _BYTES_UNDER_WAY or not self._open))
        with self._changed:
            self._open, self._bytes = self._open + 1, self._bytes + size
        return partial(self._ended, size)

    def _ended(self, size: int, result: Any, _: Any) -> None:
        """One was stored, or was not."""
        with self._changed:
            self._open, self._bytes = self._open - 1, self._bytes - size
            if result != pulsar.Result.Ok:
                self._failure = self._failure or result
            self._changed.notify_all()

    def wait(self) -> None:
        """Return when all are stored; raises the first failure, or Timeout where that takes too long."""
        self._until(lambda: self._open == 0)

    def _until(self, holds: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or holds(), self._deadline.left)
            if self._failure is not None:
                raise error_of(self._failure)
            if not holds():
                raise pulsar.Timeout(f"{self._open} records are not written")


def close_quietly(producer: pulsar.Producer) -> None:
    """End *producer*; what it has not sent is dropped."""
    try:
        producer.close()
    except pulsar.PulsarException:
        return  # it is closed, fenced, or the broker is away


def now_ms() -> int:
    """Epoch ms, now."""
    return time.time_ns() // 1_000_000
