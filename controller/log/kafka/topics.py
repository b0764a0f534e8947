"""The topics of one cluster in Kafka, as they are read."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final

from controller.adapters.kafka.client import PATIENCE_SECONDS
from controller.adapters.kafka.specs import create_topics
from controller.adapters.kafka.topics import delete_before
from controller.log.kafka.offsets import PartitionOffsets
from controller.log.kafka.reader import KafkaReader
from controller.log.port import OLDEST, Ends, LogRecord, LogTopic, Position, Start
from controller.model.errors import TrimtabError
from controller.settings.log import KafkaLogSettings

#: ``back`` returns so many bytes at most, or one record.
_MOST_BYTES: Final = 64 << 20
#: How soon Kafka reports the end of a partition: who follows a topic does not wait for that, and each answer costs.
_CATCHING_UP_MS: Final = 100
_FOLLOWING_MS: Final = 500
#: Topics that are read to their end again and again.
_READ_OFTEN: Final = ("election",)


class KafkaTopics:
    """The reading half of ``Log``."""

    def __init__(self, settings: KafkaLogSettings, *, seconds: float = PATIENCE_SECONDS) -> None:
        """*seconds*: how long Kafka may be unavailable before a call that reads gives up."""
        self._settings, self._seconds = settings, seconds
        self._names: Mapping[LogTopic, str] = {
            "metrics": settings.metrics_topic,
            "results": settings.results_topic,
            "commands": settings.commands_topic,
            "journal": settings.journal_topic,
            "dead_letters": settings.dead_letters_topic,
            "summaries": settings.summaries_topic,
            "election": settings.election_topic,
        }
        #: Topics that exist: each is created once, so that one which is deleted later is missed.
        self._existing = set[LogTopic]()
        self._offsets = PartitionOffsets(settings.bootstrap, settings.client, seconds=seconds)

    def name(self, topic: LogTopic) -> str:
        """See Log."""
        return self._names[topic]

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:
        """See Log."""
        return f"Kafka topic {self._names[topic]!r}, partition {partition}, offset {position}"

    def create(self, topics: Iterable[LogTopic]) -> None:
        """Create those of *topics* that do not exist."""
        missing = set(topics) & self._names.keys() - self._existing
        if missing:
            create_topics(self._settings, *(self._names[each] for each in missing))
            self._existing |= missing

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> KafkaReader:
        """See Log."""
        name, log = self._names[topic], self._settings
        count = self._offsets.partitions(name)
        if not count:
            raise TrimtabError(
                f"Kafka at {log.bootstrap}: topic {name!r} does not exist or is not visible to this user"
            )
        partitions = range(count) if partition is None else (partition,)
        starts = {each: self._first(topic, each, start) for each in partitions}
        return KafkaReader(
            log.bootstrap,
            log.client,
            name,
            starts,
            is_whole=partition is None,
            offsets=self._offsets,
            end_known_ms=_FOLLOWING_MS if start.end or topic in _READ_OFTEN else _CATCHING_UP_MS,
            pauses=topic not in _READ_OFTEN,
            seconds=self._seconds,
        )

    def read_backwards(
        self, topic: LogTopic, partition: int, before: Position | None, about: int
    ) -> Sequence[LogRecord]:
        """See Log."""
        name = self._names[topic]
        if not self._offsets.partitions(name):
            return ()
        first, _ = self._offsets.ends(name, partition)
        # Records before a known position exist, even if a new leader of the partition does not know them yet.
        end = self._offsets.stable_end(name, partition) if before is None else before
        # A transaction takes one offset more than it has records.
        size = 2 * about
        while end > first:
            start = max(first, end - size)
            if records := self._window(topic, partition, start, end):
                return records
            end, size = start, 4 * size
        return ()

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """See Log.  As many records as offsets, at most: the ends of transactions have some, too."""
        name = self._names[topic]
        offsets = {each: self._offsets.ends(name, each, since_ms) for each in range(self._offsets.partitions(name))}
        return {each: Ends(first, end, end - first) for each, (first, end) in offsets.items()}

    def delete_before(self, topic: LogTopic, partition: int, first: Position) -> None:
        """Delete the records of *partition* before *first*."""
        delete_before(self._settings.bootstrap, self._names[topic], partition, first, self._settings.client)

    def _first(self, topic: LogTopic, partition: int, start: Start) -> int:
        """The offset at which to begin to read."""
        if start.position is not None:
            return start.position
        if start.since_ms is not None:
            return self._offsets.ends(self._names[topic], partition, start.since_ms)[0]
        if start.last:
            return max((each.position for each in self.read_backwards(topic, partition, None, 1)), default=0)
        # Resolved now: librdkafka would resolve "end" later and skip the records appended until then.
        return self._offsets.ends(self._names[topic], partition)[1] if start.end else 0

    def _window(self, topic: LogTopic, partition: int, start: int, end: int) -> Sequence[LogRecord]:
        """The records from *start* up to *end*; where they are too long together, the newest of them."""
        records, size = deque[LogRecord](), 0
        with closing(self.read(topic, Start(position=start), partition=partition)) as reader:
            for record in reader.until({partition: end}):
                if record.position >= end:
                    break
                records.append(record)
                size += len(record.value)
                while size > _MOST_BYTES and len(records) > 1:
                    size -= len(records.popleft().value)
        return tuple(records)
