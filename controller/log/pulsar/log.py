"""Log in Pulsar: a partitioned topic for each purpose (docs/adr/0008-a-log-in-pulsar.md)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import uuid4

from controller.adapters.network.calls import side_by_side
from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import log_extents
from controller.adapters.pulsar.log.positions import Entry, entry_of, number_of
from controller.adapters.pulsar.log.topics import create_topics, executors_control, ticks_control
from controller.log.followed import FollowedScope
from controller.log.port import OLDEST, Ends, Fenced, LogRecord, LogTopic, Out, Position, Reader, Scope, Start
from controller.log.pulsar.claims import PulsarClaims
from controller.log.pulsar.exclusive import ExclusivePartition, PrunedPartition, retain_after
from controller.log.pulsar.once import NamedProducers
from controller.log.pulsar.reading import PartitionReader, ReadWindows, TopicReader, first_in, newest_properties
from controller.log.pulsar.writing import Producers, Sending, content, partition_of
from controller.model.errors import SettingsError
from controller.settings.pulsar_log import PulsarLogSettings

#: For the answers about all partitions.
_ANSWER_SECONDS: Final = 30.0


class PulsarLog:
    """Log, and Primitives, in the Pulsar that *settings* name."""

    def __init__(
        self,
        settings: PulsarLogSettings,
        *,
        cluster: str,
        seconds: float = PATIENCE_SECONDS,
        executor: str = "",
        claim_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """*seconds*: how long Pulsar may be unavailable before a call gives up.

        *executor*: this process's name among the executors, "" for one of its own.  *claim_seconds*: how long an
        executor waits for the results of one that has just started commands.
        """
        self._settings, self._cluster = settings, cluster
        self._executor, self._claim_seconds = executor or str(uuid4()), claim_seconds
        self.connection = LogConnection(settings, seconds=seconds)
        self._http = log_extents(settings)
        self.windows = ReadWindows(self.connection, self._http)
        self._producers = Producers(self.connection)
        self._created: set[LogTopic] = set()
        self._names: dict[LogTopic, str] = {
            "metrics": settings.metrics_topic,
            "results": settings.results_topic,
            "commands": settings.commands_topic,
            "journal": settings.journal_topic,
            "dead_letters": settings.dead_letters_topic,
            "summaries": settings.summaries_topic,
            "ticks": ticks_control(settings),
            "election": settings.election_topic,
        }

    def name(self, topic: LogTopic) -> str:
        """See Log."""
        return self._names[topic]

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:
        """See Log.  The entry as Pulsar's own tools write it, and which message it is where the entry is a batch."""
        entry = entry_of(position)
        nth = position - number_of(*entry, -1)
        return f"{self.name(topic)}, partition {partition}, {entry}" + (f":{nth}" if nth else "")

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:
        """See Log."""
        missing = [topic for topic in topics if topic not in self._created]
        if missing:
            create_topics(self.connection, *map(self.name, missing))
            if "election" in missing:  # else what no subscription needs would be deleted
                retain_after(self.connection, self.name("election"), 0)
            self._created.update(missing)
        numbers = {topic: self.connection.existing(self.name(topic), is_created=topic in missing) for topic in topics}
        if writable:
            targets = [(self.name(topic), each) for topic, number in numbers.items() for each in range(number)]
            self._producers.connect(targets, self.connection.seconds)
        return numbers

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:  # noqa: ARG002
        """See Log.  A repeat is stored again."""
        sending = Sending(self.connection, Deadline.after(within_seconds))
        numbers: dict[LogTopic, int] = {}
        try:
            for out in outs:
                if out.topic not in numbers:
                    numbers |= self.partitions(out.topic)
                partition = out.partition
                if partition is None:
                    partition = self.partition_of(out.topic, out.key, numbers[out.topic])
                target = (self.name(out.topic), partition)
                sending.send(self._producers.get(target), target[0], content(out))
            sending.wait()
        except BaseException:
            self._producers.close()
            raise

    def partition_of(self, topic: LogTopic, key: bytes, partitions: int) -> int:  # noqa: ARG002  # alike in all topics
        """See Primitives."""
        return partition_of(key.decode(), partitions)

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> Reader:
        """See Log."""
        count = partial(self.connection.existing, self.name(topic))
        if partition is None:
            return TopicReader(count, partial(self._reader, topic), start)
        count()  # its error says what creates a missing topic
        return self._reader(topic, partition, start)

    def _reader(self, topic: LogTopic, partition: int, start: Start) -> PartitionReader:
        if start.last and start.position is None and start.since_ms is None:  # the newest message may be a mark
            window = self.read_backwards(topic, partition, None, 1)
            start = Start(position=window[-1].position) if window else OLDEST
        oldest = self._oldest(topic, partition)
        start = oldest if start == OLDEST else start
        return PartitionReader(self.connection, self.name(topic), partition, start, first=oldest.position or 0)

    def _oldest(self, topic: LogTopic, partition: int) -> Start:
        if topic != "journal":
            return OLDEST
        return first_in(newest_properties(self.connection, self.name(topic), partition))

    def read_backwards(
        self, topic: LogTopic, partition: int, before: Position | None, about: int
    ) -> Sequence[LogRecord]:
        """See Log."""
        name = self.name(topic)
        if not self.connection.partitions(name):
            return ()
        return self.windows.read_backwards(name, partition, before, about, self._oldest(topic, partition)).records

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """See Log.  Positions do not tell numbers: ledgers and batches leave most of them out."""
        numbers = range(self.connection.partitions(self.name(topic)))
        calls = side_by_side({each: partial(self._ends, topic, each, since_ms) for each in numbers}, _ANSWER_SECONDS)
        return {partition: calls[partition].result() for partition in numbers}

    def _ends(self, topic: LogTopic, partition: int, since_ms: int | None) -> Ends:
        extent = self.windows.extent(self.name(topic), partition)
        if not extent.ledgers:
            return Ends(0, 0)
        first = next((Entry(ledger, 0) for ledger, entries in extent.ledgers if entries), extent.end.next)
        if since_ms is not None and extent.entries:
            first = max(first, self._http.since(topic_name(self._settings, self.name(topic)), partition, since_ms).next)
        oldest, end = self._oldest(topic, partition).position or 0, number_of(*extent.end.next, -1)
        return Ends(min(max(number_of(*first, -1), oldest), end), end)

    def delete_before(self, topic: LogTopic, partition: int, first: Position) -> None:
        """See Log.  Pulsar deletes whole ledgers, once the namespace's retention has passed, too."""
        done = self.windows.last_before(self.name(topic), partition, first)
        retain_after(self.connection, self.name(topic), partition, done)

    def counted_from(self, topic: LogTopic) -> str:  # noqa: ARG002
        """See Log."""
        return ""

    def fence(self, scope: Scope) -> Fenced:
        """See Log."""
        self.partitions(scope.decides[0], *scope.owns, *scope.shares)
        return FollowedScope(self, scope)

    def take_over(self, name: str, topic: LogTopic, partition: int, *, mark: bytes | None) -> ExclusivePartition:
        """See Primitives."""
        kind = PrunedPartition if topic == "journal" else ExclusivePartition
        made = kind(self.connection, self.windows, self.name(topic), partition, writer=f"trimtab-{name}")
        made.take_over(mark)
        return made

    def once(self, name: str, targets: Sequence[tuple[LogTopic, int]]) -> NamedProducers:
        """See Primitives."""
        return NamedProducers(self.connection, self._names, targets, writer=f"trimtab-{name}")

    def claims(self, group: str) -> PulsarClaims:
        """See Log."""
        settings, control = self._settings, executors_control(self._settings)
        commands = self.partitions("commands", "results")["commands"]
        number = create_topics(self.connection, control)[control]
        if commands > number:
            raise SettingsError(
                f"{settings.commands_topic} has {commands} partitions, and {control} {number}: it needs at least as"
                " many, since it records the started commands of the partition with the same number"
            )
        return PulsarClaims(
            self, group, cluster=self._cluster, name=self._executor, patience_seconds=self._claim_seconds
        )

    def close(self) -> None:
        """See Log."""
        self._http.close()
        self.connection.close()
