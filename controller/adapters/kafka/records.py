"""The topics in Kafka, record by record: what is committed, byte for byte."""

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, PATIENCE_SECONDS, connection_options
from controller.adapters.kafka.offsets import ends_of, offset_since
from controller.adapters.kafka.reader import KafkaRecord, read_all
from controller.adapters.kafka.topics import topics_there
from controller.adapters.kafka.words import failure
from controller.ports.records import Extent, Extents, RecordedTopic, StoredRecord, offsets_in
from controller.settings.log import KafkaLogSettings

_GROUP: Final = "trimtab-reader"
#: Of what is fetched ahead, for all partitions together: kilobytes.
_AHEAD_KBYTES: Final = 256 << 10
_LEAST_AHEAD_KBYTES: Final = 1 << 10


class KafkaRecords:
    """RecordLog on the topics that *log* names."""

    def __init__(self, log: KafkaLogSettings) -> None:
        self._log = log

    @property
    def where(self) -> str:
        """See RecordLog."""
        return f"Kafka at {self._log.bootstrap}"

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        return self._asked(
            topic, lambda consumer, name, partition: Extent(*ends_of(consumer, name, partition, PATIENCE_SECONDS))
        )

    def counted_from(self, topic: RecordedTopic) -> str:  # noqa: ARG002  # alike in all topics
        """See RecordLog."""
        return ""

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog."""

        def first(consumer: Any, name: str, partition: int) -> int:
            found = offset_since(consumer, name, partition, time_ms, PATIENCE_SECONDS)
            return ends_of(consumer, name, partition, PATIENCE_SECONDS)[1] if found is None else found

        return self._asked(topic, first)

    def size(self, topic: RecordedTopic, extents: Extents) -> int:  # noqa: ARG002  # alike in all topics
        """See RecordLog."""
        return offsets_in(extents)

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog.  A consumer for each partition: they stay abreast by their records' times."""
        share = max(_LEAST_AHEAD_KBYTES, _AHEAD_KBYTES // max(1, len(extents)))
        partitions = [self._partition(topic, each, extents[each], share) for each in sorted(extents)]
        yield from heapq.merge(*partitions, key=lambda record: record.timestamp_ms)

    def _partition(self, topic: RecordedTopic, partition: int, extent: Extent, ahead: int) -> Iterator[StoredRecord]:
        log = self._log
        client = {"queued.max.messages.kbytes": ahead, **log.client}
        for record in read_all(log.bootstrap, _name(log, topic), partition, extent.first, client):
            if record.offset >= extent.end:
                return
            yield _stored(record)
            if record.offset == extent.end - 1:
                return

    def _asked(self, topic: RecordedTopic, ask: Any) -> dict[int, Any]:
        """Partition -> what *ask* finds out about it; nothing where there is no such topic."""
        log, name = self._log, _name(self._log, topic)
        options = connection_options(log.bootstrap, log.client, **{"group.id": _GROUP, "log_level": 0})
        consumer = ck.Consumer(options, logger=LIBRDKAFKA_LOG)
        try:
            there = topics_there(consumer, log.bootstrap, log.client, name).get(name)
            partitions = range(0 if there is None else there.partitions)
            return {each: ask(consumer, name, each) for each in partitions}
        except ck.KafkaException as error:
            where = f"{self.where}, topic {name!r}"
            raise failure(where, error, log.client, operation="Read", topics=[name], group=_GROUP) from error
        finally:
            consumer.close()


def _name(log: KafkaLogSettings, topic: RecordedTopic) -> str:
    names: Mapping[RecordedTopic, str] = {
        "metrics": log.metrics_topic,
        "results": log.results_topic,
        "commands": log.commands_topic,
        "journal": log.journal_topic,
    }
    return names[topic]


def _stored(record: KafkaRecord) -> StoredRecord:
    return StoredRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers.items()),
    )
