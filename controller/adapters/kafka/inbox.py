"""Inbox on Kafka: the executors are one consumer group, which shares out the partitions of the command topic.

How far the group has read is committed with the results in one transaction, which the brokers refuse from a member
that the group has gone on without.  The offset's metadata holds what the next executor has to know: the highest epoch
seen, and the commands that are being acted on.  It is committed before every act, too: so the brokers are asked
each time whether these commands are still this member's.
"""

import json
import logging
import math
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import confluent_kafka as ck

from controller.adapters.kafka.client import BOUNDED, LIBRDKAFKA_LOG, PATIENCE_SECONDS
from controller.adapters.kafka.log import create_topics
from controller.adapters.kafka.names import executor_group, result_writer
from controller.adapters.kafka.offsets import ends_of
from controller.adapters.kafka.reader import is_too_long, read_all
from controller.adapters.kafka.skipping import BatchSkipper, is_unreadable
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.words import DENIED, failure, text
from controller.adapters.network.deadline import Deadline
from controller.model.errors import (
    AccessDeniedError,
    JournalError,
    LeadershipLostError,
    SettingsError,
    StateError,
    TrimtabError,
    WireError,
)
from controller.ports.inbox import AnsweredIds, AnswerRecord, Delivery, PartitionMemory, TakenOverError
from controller.ports.leadership import newer_epoch
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.base import Count, Items, Record, validate
from controller.wire.commands import own_event
from controller.wire.results import answered_command

log = logging.getLogger(__name__)

#: A dead executor's open transaction keeps its successor waiting for this long.
_TRANSACTION_MS: Final = 10_000
#: How often to check for new partitions: of the command topic, and of the result topic where it has too few.
_REFRESH_MS: Final = 10_000
#: The partitions of a batch that takes longer go to other executors, which see the commands that this one began.
_MOST_BETWEEN_POLLS_MS: Final = 900_000
#: The end of a partition is looked at so often.
_LOOK_AGAIN_SECONDS: Final = 1.0
#: While the end of a partition cannot be read for longer than this, none of its commands is begun.
_BLIND_SECONDS: Final = 10.0


class StoredState(Record):
    """What the metadata of an offset holds."""

    epoch: Count = 0
    begun: Items[str] = ()


class _Looked(NamedTuple):
    """What was seen of the end of a partition."""

    end: int = -1
    #: Behind the last event that was read.
    read: int = 0
    #: The newest epoch up to there, 0 where there was none.
    epoch: int = 0
    #: When that was.
    at: float = -math.inf


def stored_state(metadata: str, where: str) -> StoredState:
    """What *metadata*, of the offset at *where*, says; nothing is known where it is empty.

    StateError where somebody else wrote it: what was begun is not known then.
    """
    try:
        return validate(StoredState, metadata) if metadata else StoredState()
    except WireError as error:
        raise StateError(
            f"the metadata of the offset of {where}, are no state of an executor ({error}): who else commits there?"
            " Once no executor runs, `kafka-consumer-groups --reset-offsets --to-current` of the group forgets what was"
            " begun"
        ) from error


class KafkaInbox:
    """See the module docstring."""

    def __init__(self, log_settings: KafkaLogSettings, settings: ExecutorSettings, *, cluster: str) -> None:
        self._commands, self._results = log_settings.commands_topic, log_settings.results_topic
        partitions = create_topics(log_settings, self._commands, self._results)
        if partitions[self._commands] > partitions[self._results]:
            raise SettingsError(
                f"{self._commands} has {partitions[self._commands]} partitions and {self._results}"
                f" {partitions[self._results]}: the result topic needs at least"
                " as many, since a result goes to the partition with the number of its command's"
            )
        self._settings, self._cluster = log_settings, cluster
        #: Partition -> when its end was last seen.
        self._seen: dict[int, float] = {}
        self._ends: dict[int, _Looked] = {}
        self._producer = TransactionalProducer(
            log_settings.bootstrap,
            result_writer(cluster),
            {"transaction.timeout.ms": _TRANSACTION_MS, **log_settings.client},
        )
        self._producer.init()
        self._member: Any = None
        self._is_lost = self._is_assigned = False
        #: Assigned partitions that wait, because the result topic has no partition of their number.
        self._without_results: list[int] = []
        self._next_look = Deadline(0.0)
        self._memory: dict[int, PartitionMemory] = {}
        #: Partition -> where the next take, and the one after an answer, begin.
        self._committed: dict[int, int] = {}
        self._read: dict[int, int] = {}
        self._group = executor_group(settings.group, cluster)
        self._skipper = BatchSkipper(log_settings.bootstrap, self._commands, log_settings.client)
        self._consumer = ck.Consumer(_consumer_options(log_settings, settings, self._group), logger=LIBRDKAFKA_LOG)
        self._consumer.subscribe(
            [self._commands], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    @property
    def assigned(self) -> int | None:
        """See Inbox."""
        return len(self._memory) if self._is_assigned else None

    def take(self, most: int, timeout_seconds: float) -> list[Delivery]:
        """See Inbox."""
        try:
            messages = self._consumer.consume(most, timeout_seconds)
        except ck.KafkaException as error:
            raise self._meaning(error) from error
        if self._is_lost:
            # Producers do not always recover after a pause of the process or an outage.
            raise TakenOverError(
                f"{self._commands}: the consumer group has removed this executor; another one may have its partitions"
            )
        self._look_for_results()
        taken = []
        for message in messages:
            problem = message.error()
            if problem is not None:
                self._cope_with(message, problem)
            elif (partition := message.partition()) in self._memory:
                self._read[partition] = (message.offset() or 0) + 1
                if not is_too_long(message, self._commands):
                    taken.append(Delivery(partition, message.value() or b""))
        if taken:
            # Stored now: later this consumer may have no member id, and brokers accept offsets without one.
            self._member = self._consumer.consumer_group_metadata()
        return taken

    def _cope_with(self, message: Any, problem: ck.KafkaError) -> None:
        if problem.code() in DENIED:
            raise self._meaning(problem)
        if is_unreadable(problem) and message.partition() in self._memory:
            try:
                self._consumer.seek(self._skipper.skip(message))
            except ck.KafkaException as error:  # the partition has just been taken away
                log.warning("%s: %s", self._commands, error)
        elif not is_unreadable(problem):
            log.warning("%s: %s", self._commands, text(problem))

    def memory(self, partition: int) -> PartitionMemory:
        """See Inbox."""
        return self._memory[partition]

    def newest_epoch(self, partition: int) -> int:
        """See Inbox.  What has come since the last look is read, once a second at most."""
        now, looked = time.monotonic(), self._ends.get(partition, _Looked())
        if now - looked.at < _LOOK_AGAIN_SECONDS or partition not in self._committed:
            return looked.epoch
        try:
            _, end = ends_of(self._consumer, self._commands, partition, _LOOK_AGAIN_SECONDS)
            if end != looked.end:
                looked = self._looked_on(partition, looked)._replace(end=end)
        except (ck.KafkaException, TrimtabError) as error:
            why = f"{self._commands}, partition {partition}: the newest epoch cannot be read: {error}"
            if now - self._seen.get(partition, -_BLIND_SECONDS) >= _BLIND_SECONDS:
                # Nobody knows whether `trimtab stop-all` was called since.
                raise TakenOverError(why) from error
            log.warning("%s", why)
        else:
            self._seen[partition] = now
        self._ends[partition] = looked._replace(at=time.monotonic())
        return looked.epoch

    def _looked_on(self, partition: int, looked: _Looked) -> _Looked:
        """Read on to the end: other clusters may have written any number of events behind an epoch of ours."""
        read = max(self._read.get(partition, 0), looked.read)
        epoch = looked.epoch or self._memory[partition].epoch
        servers, client = self._settings.bootstrap, self._settings.client
        for each in read_all(servers, self._commands, partition, read, client=client):
            read, epoch = each.offset + 1, newer_epoch(epoch, self._epoch_of(each.value))
        return looked._replace(read=read, epoch=epoch)

    def _epoch_of(self, value: bytes) -> int:
        try:
            event = own_event(value, self._cluster)
        except WireError:
            return 0
        return 0 if event is None else event.epoch

    def begin(self, partition: int, command: str) -> None:
        """See Inbox."""
        self._memory[partition].begun.add(command)
        offset = self._offset(partition, self._committed[partition])
        try:
            for done in self._consumer.commit(offsets=[offset], asynchronous=False) or ():
                if done.error is not None:
                    raise TakenOverError(f"{self._commands}, partition {done.partition}: {text(done.error)}")
        except ck.KafkaException as error:
            raise self._meaning(error) from error

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """See Inbox."""
        gone = {answer.partition for answer in answers} - self._read.keys()
        if gone:
            raise TakenOverError(f"{self._commands}: partitions {sorted(gone)} were taken away")
        for partition in self._read:
            self._memory[partition].settle()
        offsets = [self._offset(each, offset) for each, offset in sorted(self._read.items())]
        try:
            with self._producer.transaction() as transaction:
                for answer in answers:
                    transaction.send(self._results, answer.value, key=answer.key.encode(), partition=answer.partition)
                transaction.send_offsets(offsets, self._member)
        except (JournalError, LeadershipLostError) as error:
            raise TakenOverError(f"{self._results}: {error}") from error
        self._committed.update(self._read)
        self._read.clear()

    def close(self) -> None:
        """See Inbox."""
        self._skipper.close()
        self._consumer.close()

    def _meaning(self, error: BaseException | ck.KafkaError) -> TrimtabError:
        log = self._settings
        where = f"Kafka at {log.bootstrap}, topic {self._commands!r}"
        told = failure(where, error, log.client, operation="Read", topics=[self._commands], group=self._group)
        return told if isinstance(told, AccessDeniedError) else TakenOverError(str(told))

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        self._is_assigned = True
        # Asked of the producer, which knows new partitions from then on.
        results = self._producer.partitions(self._results, online=False)[self._results]
        self._without_results = sorted(each.partition for each in partitions if each.partition >= results)
        if self._without_results:
            log.error(
                "%s has %d partitions: commands of partitions %s of %s are not carried out until it has those, too",
                self._results,
                results,
                self._without_results,
                self._commands,
            )
            partitions = [each for each in partitions if each.partition < results]
        for start in consumer.committed(partitions, timeout=PATIENCE_SECONDS):
            partition = start.partition
            known = stored_state(start.metadata or "", f"group {self._group!r}, partition {partition}")
            start.offset = start.offset if start.offset >= 0 else self._oldest(partition)
            self._committed[partition] = start.offset
            self._memory[partition] = PartitionMemory(
                epoch=known.epoch, answered=self._answered(partition), begun=set(known.begun)
            )
            log.info("reading the commands of partition %d from offset %d", partition, start.offset)
        starts = [(each.partition, self._committed[each.partition]) for each in partitions]
        consumer.assign([ck.TopicPartition(self._commands, *start) for start in starts])

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        self._is_lost = True
        self._revoked(consumer, partitions)

    def _revoked(self, _: Any, partitions: list[Any]) -> None:
        for each in partitions:
            for known in (self._memory, self._committed, self._read):
                known.pop(each.partition, None)

    def _look_for_results(self) -> None:
        """Raise TakenOverError when the result topic has the partitions that were missing."""
        if not self._without_results or not self._next_look.passed:
            return
        self._next_look = Deadline.after(_REFRESH_MS / 1000)
        try:
            results = self._producer.partitions(self._results, online=False)[self._results]
        except TrimtabError:  # Kafka is unreachable: other calls report it
            return
        if results > max(self._without_results):
            raise TakenOverError(f"{self._results} has {results} partitions now, so all commands can be answered")

    def _oldest(self, partition: int) -> int:
        return ends_of(self._consumer, self._commands, partition, PATIENCE_SECONDS)[0]

    def _answered(self, partition: int) -> AnsweredIds:
        settings = self._settings
        records = read_all(settings.bootstrap, self._results, partition, client=settings.client)
        return AnsweredIds(command for record in records if (command := answered_command(record.value)))

    def _offset(self, partition: int, offset: int) -> Any:
        memory = self._memory[partition]
        known = {"epoch": memory.epoch, "begun": sorted(memory.begun)}
        return ck.TopicPartition(self._commands, partition, offset, json.dumps(known, separators=(",", ":")))


def _consumer_options(log_settings: KafkaLogSettings, settings: ExecutorSettings, group: str) -> dict[str, Any]:
    return {
        **BOUNDED,
        "bootstrap.servers": log_settings.bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": settings.session_timeout_seconds * 1000,
        "heartbeat.interval.ms": settings.session_timeout_seconds * 1000 // 5,
        "max.poll.interval.ms": _MOST_BETWEEN_POLLS_MS,
        "fetch.wait.max.ms": 100,
        # New partitions of the command topic are found within this time and assigned.
        "topic.metadata.refresh.interval.ms": _REFRESH_MS,
        **log_settings.client,
    }
