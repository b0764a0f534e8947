"""The log in Pulsar: metrics, results, commands and dead letters, a partitioned topic each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.positions import number_of
from controller.adapters.pulsar.log.reader import MARK, TopicReader
from controller.adapters.pulsar.log.topics import create_topics
from controller.adapters.pulsar.log.writer import Outgoing, TopicWriter
from controller.ports.log import IssuedEvent
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.base import encode
from controller.wire.dead_letter import DeadLetter, Source
from controller.wire.metrics import Partitions, RosterEntry, TickRecord


def tick_records(
    cluster: str, interval: int, roster: Mapping[str, str | None], *, metrics: int, results: int
) -> tuple[bytes, bytes]:
    """The tick of *interval*: as it is in most partitions, and as it is in partition 0 of the metrics topic.

    *metrics*, *results*: how many partitions each topic has, asked just now, for some may have been added.
    """
    tick = TickRecord(cluster=cluster, interval=interval, partitions=Partitions(metrics=metrics, results=results))
    entries = tuple(RosterEntry(broker=broker, sweep_id=roster[broker]) for broker in sorted(roster))
    return encode(tick), encode(tick.model_copy(update={"roster": entries}))


class PulsarMetricsLog:
    """MetricsLog in Pulsar."""

    def __init__(self, settings: PulsarLogSettings, *, cluster: str) -> None:
        self._log, self._cluster = settings, cluster
        self._connection = LogConnection(settings)
        self._partitions = create_topics(self._connection, settings.metrics_topic, settings.results_topic)
        self._writers = {name: TopicWriter(self._connection, name) for name in self._partitions}

    def publish(self, records: Iterable[tuple[str, bytes]]) -> None:
        """See MetricsLog."""
        self._send(self._log.metrics_topic, (Outgoing(key, value) for key, value in records))

    def results(self, records: Iterable[tuple[str, bytes]]) -> None:
        """See MetricsLog."""
        self._send(self._log.results_topic, (Outgoing(key, value) for key, value in records))

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See MetricsLog."""
        metrics, results = self._log.metrics_topic, self._log.results_topic
        self._partitions = {name: self._connection.existing(name) for name in (metrics, results)}
        plain, first = tick_records(
            self._cluster, interval, roster, metrics=self._partitions[metrics], results=self._partitions[results]
        )
        self._send(results, [Outgoing("", plain, each) for each in range(self._partitions[results])])
        self._send(metrics, [Outgoing("", plain, each) for each in range(1, self._partitions[metrics])])
        self._send(metrics, [Outgoing("", first, 0)])

    def close(self) -> None:
        """End all connections."""
        self._connection.close()

    def _send(self, name: str, records: Iterable[Outgoing]) -> None:
        self._writers[name].append(records, partitions=self._partitions[name])


class PulsarCommandLog:
    """CommandLog in Pulsar, from the oldest command there is on."""

    def __init__(self, settings: PulsarLogSettings) -> None:
        self._connection = LogConnection(settings)
        self._name = settings.commands_topic
        create_topics(self._connection, self._name)
        self._reader = TopicReader(self._connection, self._name)

    def read(self) -> Iterator[IssuedEvent]:
        """See CommandLog."""
        for record in self._reader.rest():
            if MARK not in record.properties:
                source = Source(topic=self._name, partition=record.partition, offset=number_of(*record.place))
                yield IssuedEvent(source, record.value)

    def poll(self) -> list[bytes]:
        """See CommandLog."""
        return [event.value for event in self.read()]

    def close(self) -> None:
        """End the connection."""
        self._reader.close()
        self._connection.close()


class PulsarDeadLetterLog:
    """DeadLetterLog in Pulsar.  A batch that runs again brings its letters again, under the same keys."""

    def __init__(self, settings: PulsarLogSettings) -> None:
        self._connection = LogConnection(settings)
        name = settings.dead_letters_topic
        self._partitions = create_topics(self._connection, name)[name]
        self._writer = TopicWriter(self._connection, name)

    def write(self, batch: int, letters: Sequence[DeadLetter], *, part: int = 0) -> None:  # noqa: ARG002
        """See DeadLetterLog."""
        self._writer.append(
            (Outgoing(_place(letter.source), encode(letter)) for letter in letters), partitions=self._partitions
        )


def _place(source: Source) -> str:
    return f"{source.topic or source.file}/{source.partition}/{source.offset}"
