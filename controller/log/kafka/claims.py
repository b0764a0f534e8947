"""Claims in Kafka: the executors are one consumer group, which shares out the partitions of the command topic.

The offset of a partition is committed with its results in one transaction, which the brokers refuse from a member that
the group has removed.  The state is the metadata of that offset; ``store`` commits it alone, which the brokers refuse
as well.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import BOUNDED, LIBRDKAFKA_LOG, PATIENCE_SECONDS, connection_options
from controller.adapters.kafka.errors import DENIED, failure, text
from controller.adapters.kafka.names import executor_group, result_writer
from controller.adapters.kafka.offsets import ends_of
from controller.adapters.kafka.skipping import BatchSkipper, is_unreadable
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.network.deadline import Deadline
from controller.log.kafka.reader import record_of
from controller.log.kafka.scope import send_all
from controller.log.kafka.topics import KafkaTopics
from controller.log.port import LogRecord, Out, PartitionTakenOverError, Position, TakenOverError
from controller.model.errors import (
    AccessDeniedError,
    JournalError,
    LeadershipLostError,
    StateError,
    TrimtabError,
)
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings

log = logging.getLogger(__name__)

#: How often to look for new partitions: of the command topic, and of the result topic where it has too few.
_REFRESH_MS: Final = 10_000
#: How often to look again for a record at the place of a partition whose leader has none there.
_LOOK_SECONDS: Final = 0.5
#: How long to wait for the ends of such a partition.
_ANSWER_SECONDS: Final = 1.0
#: The partitions of a batch that takes longer go to other executors, which see the commands that this one began.
_MOST_BETWEEN_POLLS_MS: Final = 900_000
#: Of an offset's metadata, bytes: Kafka's default of offset.metadata.max.bytes.
_LARGEST_METADATA: Final = 4096
#: Metadata is text: a character for each byte, of two bytes where it is not ASCII.  librdkafka ends it at a NUL.
_NUL: Final = "\u0100"


class KafkaClaims:
    """Claims on Kafka."""

    #: Of a state in ASCII.
    largest_state = _LARGEST_METADATA

    def __init__(
        self, topics: KafkaTopics, settings: KafkaLogSettings, executor: ExecutorSettings, group: str, cluster: str
    ) -> None:
        self.topics, self._settings = topics, settings
        self._commands, self._results = topics.name("commands"), topics.name("results")
        self._where = f"Kafka at {settings.bootstrap}, topic {self._commands!r}"
        self.producer = TransactionalProducer(settings.bootstrap, result_writer(cluster), settings.client)
        self.producer.init()
        #: This executor's membership in the group.
        self.member: Any = None
        self._is_lost = self._is_assigned = False
        #: Assigned partitions that wait, because the result topic has no partition of their number.
        self._without_results: list[int] = []
        self._next_look = Deadline(0.0)
        self._claims: dict[int, KafkaClaim] = {}
        #: Of each claimed partition the offset to read next.
        self._read = dict[int, int]()
        #: Partition whose leader has no record at the place -> until when that may last.
        self._without_place = dict[int, Deadline]()
        #: Those of them that are not read until the next look.
        self._unread = set[int]()
        self._next_find = Deadline(0.0)
        self.group = executor_group(group, cluster)
        self._skipper = BatchSkipper(settings.bootstrap, self._commands, settings.client)
        options = connection_options(settings.bootstrap, settings.client, **_options(executor, self.group))
        self.consumer = ck.Consumer(options, logger=LIBRDKAFKA_LOG)
        self.consumer.subscribe([self._commands], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    @property
    def remedy(self) -> str:
        """See Claims."""
        return (
            f"who else commits offsets of group {self.group!r}?  Once no executor runs,"
            " `kafka-consumer-groups --reset-offsets --to-current` of the group forgets what was begun"
        )

    @property
    def assigned(self) -> int | None:
        """See Claims."""
        return len(self._claims) if self._is_assigned else None

    def poll(self, limit: int, timeout_seconds: float) -> list[LogRecord]:
        """See Claims."""
        try:
            messages = self.consumer.consume(limit, timeout_seconds)
        except ck.KafkaException as error:
            raise self.translate(error) from error
        if self._is_lost:
            # Producers do not always recover after a pause of the process or an outage.
            raise TakenOverError(
                f"{self._commands}: the consumer group has removed this executor; another one may have its partitions"
            )
        self._look_for_results()
        records = []
        for message in messages:
            problem: ck.KafkaError | None = message.error()
            if problem is not None:
                self._cope_with(message, problem)
            elif (partition := message.partition()) is not None and partition in self._claims:
                self._read[partition] = (message.offset() or 0) + 1
                if record := record_of(message, self._where):
                    records.append(record)
        self._find_places()
        if records:
            # Stored now: later this consumer may have no member id, and brokers accept offsets without one.
            self.member = self.consumer.consumer_group_metadata()
        return records

    def claim(self, partition: int) -> "KafkaClaim":
        """See Claims.  The group fences who had it."""
        if partition not in self._claims:
            raise PartitionTakenOverError(f"{self._commands}: partition {partition} was revoked")
        return self._claims[partition]

    def close(self) -> None:
        """See Claims."""
        self._skipper.close()
        self.consumer.close()
        self.producer.close()

    def check(self, claim: "KafkaClaim") -> None:
        """PartitionTakenOverError where *claim* has ended."""
        if self._claims.get(claim.partition) is not claim:
            raise PartitionTakenOverError(f"{self._commands}: partition {claim.partition} was revoked")

    def offset(self, partition: int, offset: int, state: bytes) -> ck.TopicPartition:
        """*offset* of the command topic with *state* as its metadata, to be committed."""
        return ck.TopicPartition(self._commands, partition, offset, state.decode("latin-1").replace("\0", _NUL))

    def translate(self, error: BaseException | ck.KafkaError) -> TrimtabError:
        """The exception to raise for *error*."""
        translated = failure(
            self._where, error, self._settings.client, operation="Read", topics=[self._commands], group=self.group
        )
        return translated if isinstance(translated, AccessDeniedError) else TakenOverError(str(translated))

    def _cope_with(self, message: Any, problem: ck.KafkaError) -> None:
        if problem.code() in DENIED:
            raise self.translate(problem)
        if message.partition() in self._claims and problem.code() == ck.KafkaError._AUTO_OFFSET_RESET:
            self._unread.add(message.partition())
        elif not is_unreadable(problem):
            log.warning("%s: %s", self._commands, text(problem))
        elif message.partition() in self._claims:
            try:
                behind = self._skipper.skip(message)
                self.consumer.seek(behind)
                self._read[behind.partition] = behind.offset
            except ck.KafkaException as error:  # the partition has just been taken away
                log.warning("%s: %s", self._commands, error)

    def _find_places(self) -> None:
        """Go on where leaders have no record at the place, as KafkaReader does.

        Where a partition stays shorter than what was read, all that it has is read.
        """
        if not (self._without_place or self._unread) or not self._next_find.passed:
            return
        self._next_find = Deadline.after(_LOOK_SECONDS)
        for each in sorted(self._unread - self._without_place.keys()):
            log.warning("%s, partition %d: its leader has no record at offset %d", self._where, each, self._read[each])
        # The others have a record at their place again.
        self._without_place = {
            each: self._without_place.get(each, Deadline.after(PATIENCE_SECONDS)) for each in self._unread
        }
        if not self._unread:
            return
        try:
            for partition, patience in self._without_place.items():
                first, end = ends_of(self.consumer, self._commands, partition, _ANSWER_SECONDS)
                if first > self._read[partition]:
                    self._read[partition] = first
                elif end < self._read[partition] and patience.passed:
                    log.error("%s, partition %d: shorter than what was read: reading all", self._where, partition)
                    self._read[partition] = first
            # A partition without a place cannot be sought.
            self.consumer.assign([ck.TopicPartition(self._commands, *each) for each in self._read.items()])
            self._unread.clear()
        except ck.KafkaException as error:
            log.warning("%s: %s", self._commands, error)

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        self._is_assigned = True
        # Asked of the producer, which knows new partitions from then on.
        results = self.producer.existing(self._results).partitions
        self._without_results = sorted(each.partition for each in partitions if each.partition >= results)
        if self._without_results:
            log.error(
                "%s has %d partitions: commands of partitions %s of %s are not carried out until it has "
                "these partitions, too",
                self._results,
                results,
                self._without_results,
                self._commands,
            )
            partitions = [each for each in partitions if each.partition < results]
        starts = []
        for start in consumer.committed(partitions, timeout=PATIENCE_SECONDS):
            partition, offset = start.partition, start.offset
            if offset < 0:
                offset = ends_of(consumer, self._commands, partition, PATIENCE_SECONDS)[0]
            self._claims[partition] = KafkaClaim(self, partition, offset, start.metadata or "")
            self._read[partition] = offset
            starts.append(ck.TopicPartition(self._commands, partition, offset))
            log.info("reading the commands of partition %d from offset %d", partition, offset)
        consumer.assign(starts)

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        self._is_lost = True
        self._revoked(consumer, partitions)

    def _revoked(self, _: Any, partitions: list[Any]) -> None:
        for each in partitions:
            self._claims.pop(each.partition, None)
            self._read.pop(each.partition, None)
            self._unread.discard(each.partition)

    def _look_for_results(self) -> None:
        """Raise TakenOverError when the result topic has the partitions that were missing."""
        if not self._without_results or not self._next_look.passed:
            return
        self._next_look = Deadline.after(_REFRESH_MS / 1000)
        try:
            results = self.producer.existing(self._results).partitions
        except TrimtabError:  # Kafka is unreachable: other calls report it
            return
        if results > max(self._without_results):
            raise TakenOverError(f"{self._results} has {results} partitions now, enough for all commands")


class KafkaClaim:
    """Claim on Kafka."""

    def __init__(self, claims: KafkaClaims, partition: int, offset: int, metadata: str) -> None:
        self._claims, self.partition = claims, partition
        #: What is done ends here.
        self._offset, self._metadata = offset, metadata

    @property
    def state(self) -> bytes:
        """See Claim.  StateError where somebody else wrote it."""
        try:
            return self._metadata.replace(_NUL, "\0").encode("latin-1")
        except UnicodeEncodeError as error:
            raise StateError(
                f"the metadata of the offset of group {self._claims.group!r}, partition {self.partition}, is not an"
                f" executor's state: {self._metadata[:60]!r}: {self._claims.remedy}"
            ) from error

    def store(self, state: bytes) -> None:
        """See Claim."""
        claims = self._claims
        claims.check(self)
        offset = claims.offset(self.partition, self._offset, state)
        try:
            for done in claims.consumer.commit(offsets=[offset], asynchronous=False) or ():
                if done.error is not None:
                    raise ck.KafkaException(done.error)
        except ck.KafkaException as error:
            raise claims.translate(error) from error
        self._metadata = offset.metadata or ""

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """See Claim.  Nothing is left to complete: the brokers abort what was not committed."""
        claims = self._claims
        claims.check(self)
        offset = claims.offset(self.partition, upto + 1, state)
        try:
            with claims.producer.transaction() as transaction:
                send_all(transaction, claims.topics, results)
                transaction.send_offsets([offset], claims.member)
        except (JournalError, LeadershipLostError) as error:
            raise TakenOverError(str(error)) from error
        self._offset, self._metadata = upto + 1, offset.metadata or ""


def _options(executor: ExecutorSettings, group: str) -> dict[str, Any]:
    return {
        **BOUNDED,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",  # see KafkaReader
        "session.timeout.ms": executor.session_timeout_seconds * 1000,
        "heartbeat.interval.ms": executor.session_timeout_seconds * 1000 // 5,
        "max.poll.interval.ms": _MOST_BETWEEN_POLLS_MS,
        "fetch.wait.max.ms": 100,
        # New partitions of the command topic are found within this time and assigned.
        "topic.metadata.refresh.interval.ms": _REFRESH_MS,
    }
