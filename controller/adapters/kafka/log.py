"""The log in Kafka: metrics, results, commands and dead letters, a topic each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from controller.adapters.kafka.reader import Reader
from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.adapters.kafka.transactions import Transaction
from controller.adapters.kafka.writer import Producer
from controller.ports.log import IssuedEvent
from controller.settings.log import KafkaLogSettings
from controller.wire.base import encode
from controller.wire.dead_letter import DeadLetter, Source
from controller.wire.metrics import Partitions, RosterEntry, TickRecord

_HOUR_MS: Final = 3_600_000
#: Of a batch of records, bytes: Kafka's own default, whatever the brokers' is.  trimtab writes none that is longer.
LARGEST_BATCH: Final = (1 << 20) + 12
#: Of every topic.  Brokers convert other codecs to zstd, the only one that librdkafka unpacks within a limit.
_BOUNDED: Final[Mapping[str, str]] = {"compression.type": "zstd", "max.message.bytes": str(LARGEST_BATCH)}


def create_topics(settings: KafkaLogSettings, *names: str) -> dict[str, int]:
    """Create those of the topics *names*, or of all, that do not exist yet; returns their numbers of partitions.

    A process names what it uses: it needs no right to anything else, and does not depend on it.
    """
    wanted = [spec for spec in topic_specs(settings) if not names or spec.name in names]
    return ensure_topics(settings.bootstrap, wanted, settings.client)


def topic_specs(settings: KafkaLogSettings) -> list[TopicSpec]:
    """The topics as trimtab creates them."""
    copies = settings.replication_factor
    # With one broker down all others hold every acknowledged record.
    safe = {**_BOUNDED, "min.insync.replicas": str(max(1, copies - 1))}
    kept = {**safe, "retention.ms": str(settings.retention_hours * _HOUR_MS)}
    # The journal is pruned by the controller, which knows what is still needed.
    journal = {**safe, "retention.ms": "-1", "retention.bytes": "-1"}
    many, one = settings.partitions, 1
    topics = (
        (settings.metrics_topic, many, kept),
        (settings.results_topic, many, kept),
        (settings.commands_topic, many, kept),
        (settings.dead_letters_topic, one, kept),
        (settings.journal_topic, one, journal),
    )
    return [
        TopicSpec(name=name, partitions=partitions, replication_factor=copies, config=config)
        for name, partitions, config in topics
    ]


def ticks(
    settings: KafkaLogSettings,
    cluster: str,
    interval: int,
    roster: Mapping[str, str | None],
    partitions: Mapping[str, int],
) -> Iterator[tuple[str, int, bytes]]:
    """The ticks of *interval*: topic, partition and value of each; last the one with the roster.

    *partitions*: how many each topic has, asked just now, for some may have been added.
    """
    metrics, results = settings.metrics_topic, settings.results_topic
    tick = TickRecord(
        cluster=cluster,
        interval=interval,
        partitions=Partitions(metrics=partitions[metrics], results=partitions[results]),
    )
    entries = tuple(RosterEntry(broker=broker, sweep_id=roster[broker]) for broker in sorted(roster))
    for partition in range(partitions[results]):
        yield results, partition, encode(tick)
    for partition in range(1, partitions[metrics]):
        yield metrics, partition, encode(tick)
    yield metrics, 0, encode(tick.model_copy(update={"roster": entries}))


class KafkaMetricsLog:
    """MetricsLog on Kafka; with a *transaction*, all that is written appears at its commit."""

    def __init__(self, settings: KafkaLogSettings, *, cluster: str, transaction: Transaction | None = None) -> None:
        self._settings, self._cluster = settings, cluster
        self._partitions = create_topics(settings, settings.metrics_topic, settings.results_topic)
        self._producer = transaction or Producer(settings.bootstrap, settings.client)

    def publish(self, records: Iterable[tuple[str, bytes]]) -> None:
        """See MetricsLog."""
        self._send(self._settings.metrics_topic, records)

    def results(self, records: Iterable[tuple[str, bytes]]) -> None:
        """See MetricsLog."""
        self._send(self._settings.results_topic, records)

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See MetricsLog."""
        settings = self._settings
        if isinstance(self._producer, Producer):
            self._partitions = self._producer.partitions(settings.metrics_topic, settings.results_topic)
        *others, last = ticks(settings, self._cluster, interval, roster, self._partitions)
        for topic, partition, value in others:
            self._producer.send(topic, value, partition=partition)
        self._producer.flush()
        topic, partition, value = last
        self._producer.send(topic, value, partition=partition)
        self._producer.flush()

    def _send(self, topic: str, records: Iterable[tuple[str, bytes]]) -> None:
        for key, value in records:
            self._producer.send(topic, value, key=key.encode())
        self._producer.flush()


class KafkaCommandLog:
    """CommandLog on Kafka, from the oldest command there is on."""

    def __init__(self, settings: KafkaLogSettings) -> None:
        create_topics(settings, settings.commands_topic)
        self._topic = settings.commands_topic
        self._reader = Reader(settings.bootstrap, self._topic, client=settings.client)

    def read(self) -> Iterator[IssuedEvent]:
        """See CommandLog.  Waits a moment for the first one."""
        while True:
            record = self._reader.poll(0.2)
            if record is not None:
                source = Source(topic=self._topic, partition=record.partition, offset=record.offset)
                yield IssuedEvent(source, record.value)
            elif self._reader.at_end():
                return

    def poll(self) -> list[bytes]:
        """See CommandLog."""
        return [event.value for event in self.read()]

    def close(self) -> None:
        """End the connection."""
        self._reader.close()


class KafkaDeadLetterLog:
    """DeadLetterLog on Kafka.  A batch that runs again brings its letters again, under the same keys."""

    def __init__(self, settings: KafkaLogSettings) -> None:
        self._topic = settings.dead_letters_topic
        create_topics(settings, settings.dead_letters_topic)
        self._producer = Producer(settings.bootstrap, settings.client)

    def write(self, batch: int, letters: Sequence[DeadLetter], *, part: int = 0) -> None:  # noqa: ARG002
        """See DeadLetterLog."""
        for letter in letters:
            self._producer.send(self._topic, encode(letter), key=_place(letter.source).encode())
        self._producer.flush()


def _place(source: Source) -> str:
    return f"{source.topic or source.file}/{source.partition}/{source.offset}"
