"""The collectors' log in Kafka.

Ticks are written under one transactional id of the cluster: a new writer fences the previous one, and only then
reads how far that one came.  So no interval is ticked twice, even when an old writer that hung continues.
The ticks of an interval are one transaction: they are in every partition, or in none.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controller.adapters.kafka.log import create_topics, ticks
from controller.adapters.kafka.names import tick_writer
from controller.adapters.kafka.reader import Reader
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.adapters.network.deadline import Deadline
from controller.model.errors import LeadershipLostError, TrimtabError
from controller.settings.log import KafkaLogSettings
from controller.wire.chunks import Arrived, KeyValue, glance

#: An old writer's open transaction keeps readers waiting for no longer than this.
_TRANSACTION_MS: Final = 10_000
#: How long catching up with the log may take when the ticks are taken over.
_CATCH_UP_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
#: Seconds that one call reads at most: a collector has other work, too.
_AT_ONCE_SECONDS: Final = 0.5


class KafkaCollectorLog:
    """CollectorLog on Kafka."""

    def __init__(self, settings: KafkaLogSettings, *, cluster: str) -> None:
        self._settings, self._cluster = settings, cluster
        self._topics = (settings.metrics_topic, settings.results_topic)
        create_topics(settings, *self._topics)
        self._producer: Producer | None = None
        self._ticks: TransactionalProducer | None = None
        self._reader: Reader | None = None
        self._caught_up = False

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        """See CollectorLog."""
        if self._producer is None:
            self._producer = Producer(self._settings.bootstrap, self._settings.client)
        try:
            for key, value in records:
                self._producer.send(self._settings.metrics_topic, value, key=key.encode())
            self._producer.flush(within_seconds)
        except TrimtabError:
            self._producer = None  # drops the records that are still unwritten
            raise

    def lead(self, since_ms: int) -> None:
        """See CollectorLog."""
        self.follow()
        settings = self._settings
        writer = TransactionalProducer(
            settings.bootstrap,
            tick_writer(self._cluster),
            {"transaction.timeout.ms": _TRANSACTION_MS, **settings.client},
        )
        writer.init()
        writer.partitions(*self._topics)  # fails at once; below, an offline partition would be waited for
        # Only after fencing does the end of the log show the last tick of the previous writer.
        self._reader = Reader(settings.bootstrap, settings.metrics_topic, since_ms=since_ms, client=settings.client)
        self._ticks = writer

    def arrived(self) -> Iterator[Arrived]:
        """See CollectorLog."""
        deadline = Deadline.after(_CATCH_UP_SECONDS)
        while self._reader is not None and not self._caught_up:
            yield from self._poll(_POLL_SECONDS) or ()
            self._caught_up = self._reader.at_end()
            if not self._caught_up and deadline.passed:
                self.follow()
                raise TrimtabError(f"{self._settings.metrics_topic}: not read to its end in {_CATCH_UP_SECONDS:g} s")
        enough = Deadline.after(_AT_ONCE_SECONDS)
        while not enough.passed and (found := self._poll(0.0)) is not None:
            yield from found

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See CollectorLog."""
        if self._ticks is None:
            raise LeadershipLostError("this collector does not write the ticks")
        # Asked each time: partitions can be added, and all of them have to be there.
        partitions = self._ticks.partitions(*self._topics)
        records = [*ticks(self._settings, self._cluster, interval, roster, partitions)]
        with self._ticks.transaction() as transaction:
            for topic, partition, value in records:
                transaction.send(topic, value, partition=partition)

    def follow(self) -> None:
        """See CollectorLog."""
        self._ticks, self._caught_up = None, False
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def close(self) -> None:
        """See CollectorLog."""
        self.follow()
        self._producer = None

    def _poll(self, timeout_seconds: float) -> list[Arrived] | None:
        """What the next record is, if it is anything that counts here; None where none came."""
        record = self._reader.poll(timeout_seconds) if self._reader is not None else None
        if record is None:
            return None
        head = glance(record.value)
        return [] if head is None else [Arrived(head, record.timestamp_ms)]
