"""Appends records that follow from a record in a fenced partition, each of them once.

Their partitions have other writers, too, so they cannot be fenced.  Instead the writer has a fixed name and numbers its
messages.  The brokers let one process at a time connect under a name, and drop numbers that are not higher than the
last one under that name.  So a successor may write all of them again: repeats are dropped, and so are late messages of
a writer that hung.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import pulsar

from controller.adapters.network.calls import side_by_side
from controller.adapters.network.waiting import retry
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, partition_name, topic_name
from controller.adapters.pulsar.log.connection import LogConnection, is_passing
from controller.log.followed import Numbered
from controller.log.port import LogTopic
from controller.log.pulsar.writing import WriteTarget, close_quietly, content, raise_first

#: The brokers need five seconds to see that a process which has the name does not answer.
_NAME_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 0.2


class NamedProducers:
    """Once: producers under the name *writer*, connected until ``close``."""

    def __init__(
        self,
        connection: LogConnection,
        names: Mapping[LogTopic, str],
        targets: Sequence[tuple[LogTopic, int]],
        *,
        writer: str,
    ) -> None:
        """*names*: of topics."""
        self._connection, self._names, self._writer = connection, names, writer
        self._producers: dict[WriteTarget, pulsar.Producer] = {}
        #: Where the brokers do not know the name, or do not know it any more.
        self._forgotten: set[WriteTarget] = set()
        #: A connection that comes later than that is closed, or it would keep the name.
        self._closed = False
        self._lock = threading.Lock()
        try:
            places = [(names[topic], partition) for topic, partition in targets]
            calls = side_by_side({each: partial(self._connect, each) for each in places}, 2 * _NAME_SECONDS)
            raise_first(connection, calls, before=True)
        except BaseException:
            self.close()
            raise

    def append(self, numbered: Sequence[Numbered]) -> None:
        """See Once.  The partitions are written side by side."""
        by_target = defaultdict[WriteTarget, list[Numbered]](list)
        for each in numbered:
            by_target[self._names[each.out.topic], each.out.partition or 0].append(each)
        calls = {target: partial(self._append, target, records) for target, records in by_target.items()}
        raise_first(self._connection, side_by_side(calls, PATIENCE_SECONDS), before=False)

    def forgot(self, topic: LogTopic, partition: int) -> bool:
        """See Once.  Pulsar: brokerDeduplicationProducerInactivityTimeoutMinutes"""
        return (self._names[topic], partition) in self._forgotten

    def close(self) -> None:
        """See Once."""
        with self._lock:
            producers, self._producers = self._producers, {}
            self._closed = True
        for producer in producers.values():
            close_quietly(producer)

    def _connect(self, target: WriteTarget) -> None:
        full = partition_name(topic_name(self._connection.log, target[0]), target[1])
        producer = retry(
            lambda: self._connection.client.create_producer(
                full, producer_name=self._writer, send_timeout_millis=round(PATIENCE_SECONDS * 1000)
            ),
            _NAME_SECONDS,
            # Busy: the previous holder has not released the name yet.
            again_after=lambda error: is_passing(error) or isinstance(error, pulsar.ProducerBusy),
            every=_RETRY_SECONDS,
        )
        with self._lock:
            if not self._closed:
                self._producers[target] = producer
                if producer.last_sequence_id() < 0:
                    self._forgotten.add(target)
        if self._closed:
            close_quietly(producer)

    def _append(self, target: WriteTarget, records: Sequence[Numbered]) -> None:
        for number, out in records:
            message = content(out)
            self._producers[target].send(message.value, sequence_id=number, **message.options)
