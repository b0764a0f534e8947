"""Kafka, as little of it as trimtab needs: topics, writing safely, writing all or nothing, reading to the end.

With kafka_inbox the only importer of confluent_kafka.  *client* is what the settings add to every connection
(security.protocol ...), under librdkafka's names.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from controller.adapters.kafka.words import DENIED, failure, silence, text
from controller.adapters.kafka.words import Client as Client
from controller.model.errors import (
    AccessDeniedError,
    JournalError,
    LeadershipLostError,
    LogOfflineError,
    TrimtabError,
)

log = logging.getLogger(__name__)

Headers: TypeAlias = Mapping[str, bytes]

#: How long Kafka may be out of reach before a call gives up.
PATIENCE_SECONDS: Final = 60.0

#: Brokers that are well answer by then.
_SOON_SECONDS: Final = 3.0
#: How long to wait for a group's coordinator, which is asked when the brokers have answered already; then some grace.
_OFFSETS_SECONDS: Final = 15.0
_GRACE_SECONDS: Final = 2.0
#: How long is waited for the leaders of partitions, which for new ones are there within a second.
_LEADERS_SECONDS: Final = 10.0
#: How often a reader of a whole topic looks whether it has new partitions, and how long it waits for the answer.
_LOOK_SECONDS: Final = 2.0
_LOOK_ANSWER_SECONDS: Final = 1.0
#: For an answer about partitions before something is written to all of them.
_ANSWER_SECONDS: Final = 5.0
#: How long an abort waits for records under way; none of them matters any more.
_SETTLE_SECONDS: Final = 5.0
#: librdkafka refuses above 1 MB by itself; what is too large is for the brokers to say.
_LARGEST_RECORD: Final = 16 << 20
_NO_CLIENT: Final[Client] = {}
_NO_HEADERS: Final[Headers] = {}

_FENCED: Final = frozenset(
    {
        ck.KafkaError._FENCED,
        ck.KafkaError.PRODUCER_FENCED,
        ck.KafkaError.INVALID_PRODUCER_EPOCH,
        ck.KafkaError.FENCED_INSTANCE_ID,
    }
)


class Record(NamedTuple):
    """One record as it lies in a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes
    #: Epoch ms; the broker's append time in the topics that trimtab creates.
    timestamp_ms: int
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic as trimtab creates it; records get the broker's append time."""

    name: str
    partitions: int
    replication_factor: int = 1
    #: Further options under Kafka's names (retention.ms ...).
    config: Mapping[str, str] = field(default_factory=dict)


def ensure_topics(bootstrap: str, topics: Iterable[TopicSpec], client: Client = _NO_CLIENT) -> dict[str, int]:
    """Create those of *topics* that do not exist; returns every one's number of partitions.

    A topic that exists stays as it is.  A partition without a leader is waited for, and logged where it stays so:
    whoever needs it learns it there.  Raises TrimtabError where Kafka cannot be reached or refuses.
    """
    specs = tuple(topics)
    admin = AdminClient(_config(bootstrap, client), logger=log)
    existing = _topics(admin, bootstrap, client)
    for topic, created in _create(admin, [spec for spec in specs if spec.name not in existing]).items():
        try:
            created.result(PATIENCE_SECONDS)
        except ck.KafkaException as error:
            if error.args[0].code() != ck.KafkaError.TOPIC_ALREADY_EXISTS:  # another process came first
                where = f"Kafka at {bootstrap}, topic {topic!r} does not exist, or may not be seen, and is not created"
                raise failure(where, error, client, operation="Describe, or else Create,", topics=[topic]) from error
    return _wait_for_leaders(admin, bootstrap, [spec.name for spec in specs], client)


def delete_before(bootstrap: str, topic: str, partition: int, offset: int, client: Client = _NO_CLIENT) -> None:
    """Delete the records of a partition before *offset*; TrimtabError where Kafka refuses or does not answer."""
    admin = AdminClient(_config(bootstrap, client), logger=log)
    try:
        [answer] = admin.delete_records([ck.TopicPartition(topic, partition, offset)]).values()
        answer.result(PATIENCE_SECONDS)
    except (ck.KafkaException, TimeoutError) as error:
        where = f"Kafka at {bootstrap} does not delete records of topic {topic!r}"
        raise failure(where, error, client, operation="Delete", topics=[topic]) from error


def ping(bootstrap: str, timeout_seconds: float, client: Client = _NO_CLIENT) -> bool:
    """True when a broker at *bootstrap* answers within *timeout_seconds*."""
    try:
        admin = AdminClient(_config(bootstrap, client, log_level=0))
        return bool(admin.list_topics(timeout=timeout_seconds))
    except ck.KafkaException:
        return False


class _Writer:
    """What both producers know of the topics that they write to."""

    _bootstrap: str
    _client: Client
    _producer: ck.Producer

    def partitions(self, *topics: str, online: bool = True) -> dict[str, int]:
        """The number of partitions of each of *topics* now; from here on this producer knows the new ones, too.

        TrimtabError where a topic is gone; LogOfflineError where all have to be *online* and one cannot be written to.
        """
        found = {}
        for topic in topics:
            there = _topics(self._producer, self._bootstrap, self._client, topic, _ANSWER_SECONDS).get(topic)
            if there is None:
                raise TrimtabError(f"Kafka at {self._bootstrap}: topic {topic!r} does not exist, or may not be seen")
            if online and there.offline:
                raise LogOfflineError(f"Kafka at {self._bootstrap}: {_offline(topic, there)}")
            found[topic] = there.partitions
        return found


class Producer(_Writer):
    """Appends records: acknowledged by all replicas, in order, none twice."""

    def __init__(self, bootstrap: str, client: Client = _NO_CLIENT) -> None:
        self._bootstrap, self._client = bootstrap, client
        self._producer = ck.Producer(_config(bootstrap, client, **_WRITING), logger=log)
        self._sent = self._delivered = 0
        self._failure: TrimtabError | None = None

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = _NO_HEADERS,
    ) -> None:
        """Hand over one record; *partition* None lets the key decide.  Safe only after ``flush``.

        Raises TrimtabError for this record or an earlier one that could not be written.
        """
        self._raise_failure()
        try:
            _produce(self._producer, topic, value, key, partition, headers, self._on_delivery)
        except (ck.KafkaException, BufferError) as error:
            raise self._meaning(topic, error) from error
        self._sent += 1
        self._producer.poll(0)

    def flush(self, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Return when every record is safely in its topic; TrimtabError when one is not."""
        self._producer.flush(timeout_seconds)
        self._raise_failure()
        if self._delivered != self._sent:
            undelivered = self._sent - self._delivered
            why = f"{undelivered} records unwritten after {timeout_seconds:g} s"
            raise silence(self._bootstrap, self._client, why)

    def _on_delivery(self, error: ck.KafkaError | None, record: ck.Message) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._failure = self._failure or self._meaning(record.topic() or "", error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _meaning(self, topic: str, error: BaseException | ck.KafkaError) -> TrimtabError:
        where = f"Kafka at {self._bootstrap}, topic {topic!r}"
        return failure(where, error, self._client, operation="Write", topics=[topic])


class Transaction:
    """Records that appear together or not at all."""

    def __init__(self, producer: ck.Producer) -> None:
        self._producer = producer
        #: What is written to.
        self.topics: set[str] = set()
        #: A call has not ended, and never may: this producer is not to be called any more.
        self.stuck = False

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = _NO_HEADERS,
    ) -> None:
        """Add one record; whether it could be written is known at ``flush``, and at the commit."""
        self.topics.add(topic)
        _produce(self._producer, topic, value, key, partition, headers, None)

    def send_offsets(self, offsets: list[ck.TopicPartition], group: Any) -> None:
        """Add how far *group*, a consumer's group metadata, has read; refused where the group has moved on."""
        # Behind an outage of Kafka this call was seen never to return, whatever time it was given.
        call = partial(self._producer.send_offsets_to_transaction, offsets, group, _OFFSETS_SECONDS)
        self.stuck = not _ends(call, _OFFSETS_SECONDS + _GRACE_SECONDS)
        if self.stuck:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT, "no answer about the group's offsets"))

    def flush(self) -> None:
        """Return when every record lies in its topic, or was refused: only the commit is missing then.

        Who is fenced by now learns it here; a record refused makes the commit fail.
        """
        # No delivery callbacks: a fatal error is an exception by itself, and would break into them.
        unwritten = self._producer.flush(PATIENCE_SECONDS)
        if unwritten:
            why = f"{unwritten} records unwritten after {PATIENCE_SECONDS:g} s"
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT, why))


class TransactionalProducer(_Writer):
    """Writes transactions under a fixed *transactional_id*: the last to ``init`` writes, earlier ones are fenced.

    Where the id was taken over, LeadershipLostError is raised; every other failure is a JournalError.  After either
    only ``init`` is allowed, and only reading the topics behind it tells whether a failed commit took place.
    """

    def __init__(self, bootstrap: str, transactional_id: str, client: Client = _NO_CLIENT) -> None:
        self._bootstrap, self._client = bootstrap, client
        self._config = _config(bootstrap, client, **_WRITING, **{"transactional.id": transactional_id})
        self._id = transactional_id
        self._current: Transaction | None = None
        self._failure: TrimtabError | None = JournalError(f"{transactional_id}: init comes first")

    def init(self) -> None:
        """Fence earlier producers of this id and finish what they left: open transactions are aborted."""
        # A new one each time: some failures leave librdkafka's in a state that it does not come out of.
        self._producer = ck.Producer(self._config, logger=log)
        self._failure = None
        with self._failures("init_transactions"):
            _retry(lambda: self._producer.init_transactions(PATIENCE_SECONDS))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction, committed at the end of the block.  What the block raises aborts it and is raised on."""
        if self._failure is not None:
            raise self._failure
        with self._failures("transaction"):
            self._producer.begin_transaction()
            transaction = self._current = Transaction(self._producer)
            try:
                yield transaction
            except BaseException:
                # Where a call is stuck the brokers abort it by themselves, when its time is over.
                if not transaction.stuck:
                    self._abort()
                raise
            self._commit()

    def _commit(self) -> None:
        try:
            _retry(lambda: self._producer.commit_transaction(PATIENCE_SECONDS))
        except ck.KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._abort()
            raise

    def _abort(self) -> None:
        try:
            # To abort while the brokers still add partitions breaks the producer for good: librdkafka, issue 4849.
            self._producer.flush(_SETTLE_SECONDS)
            _retry(lambda: self._producer.abort_transaction(PATIENCE_SECONDS))
        except ck.KafkaException as error:
            # Nothing is committed either way: the brokers abort it at the next init, or after a minute.
            log.warning("%s: abort_transaction: %s", self._id, text(error))
            self._failure = self._meaning(error, "abort_transaction")

    @contextmanager
    def _failures(self, during: str) -> Iterator[None]:
        try:
            yield
        except (ck.KafkaException, BufferError) as error:
            # Behind a fatal error most calls only say that there was one; the abort says which.
            if not isinstance(self._failure, LeadershipLostError):
                self._failure = self._meaning(error, during)
            raise self._failure from error

    def _meaning(self, error: ck.KafkaException | BufferError, during: str) -> TrimtabError:
        if isinstance(error, ck.KafkaException) and error.args[0].code() in _FENCED:
            return LeadershipLostError(f"{self._id}: another process writes under this id now")
        where = f"Kafka at {self._bootstrap}, {self._id}: {during}"
        topics = sorted(self._current.topics) if self._current is not None else ()
        denied = failure(where, error, self._client, operation="Write", topics=topics, transactional_id=self._id)
        return denied if isinstance(denied, AccessDeniedError) else JournalError(str(denied))


class Reader:
    """Reads what is committed, in order within a partition: all partitions of a topic, or *partition* alone.

    *offset* is where to start, None for the present end; with *since_ms* it is what was appended then or later.
    Partitions that a topic gets later are read, too, from their beginning.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = ck.OFFSET_BEGINNING,
        since_ms: int | None = None,
        client: Client = _NO_CLIENT,
    ) -> None:
        self._name, self._topic, self._client = f"Kafka at {bootstrap}, topic {topic!r}", topic, client
        self._bootstrap = bootstrap
        self._consumer = ck.Consumer(_config(bootstrap, client, **_READING), logger=log)
        try:
            there = _topics(self._consumer, bootstrap, client, topic).get(topic)
            if there is None:
                raise TrimtabError(f"{self._name} does not exist")
        except BaseException:
            self._consumer.close()
            raise
        wanted = range(there.partitions) if partition is None else (partition,)
        #: How many are read; None: one alone.
        self._partitions = there.partitions if partition is None else None
        self._look_at = time.monotonic() + _LOOK_SECONDS
        self._consumer.assign([self._start(topic, each, offset, since_ms) for each in wanted])
        self._unfinished = set(wanted)
        self._heard = time.monotonic()

    def _start(self, topic: str, partition: int, offset: int | None, since_ms: int | None) -> ck.TopicPartition:
        start = ck.TopicPartition(topic, partition)
        if since_ms is not None:
            offset = self._offset_of(ck.TopicPartition(topic, partition, since_ms))
        if offset is None:
            # Asked for now: an offset of "end" would be looked up some time later, past what came meanwhile.
            try:
                _, offset = self._consumer.get_watermark_offsets(start, timeout=PATIENCE_SECONDS)
            except ck.KafkaException as error:
                raise self._meaning(error) from error
        start.offset = offset
        return start

    def _offset_of(self, time: ck.TopicPartition) -> int | None:
        """Where the records begin that were appended at the *time* in its offset or later; None: at the end."""
        try:
            [found] = self._consumer.offsets_for_times([time], timeout=PATIENCE_SECONDS)
        except ck.KafkaException as error:
            raise self._meaning(error) from error
        return found.offset if found.offset >= 0 else None

    def poll(self, timeout_seconds: float) -> Record | None:
        """The next record, or None when none came within *timeout_seconds* or a partition's end was reached."""
        self._look()
        message: Any = self._consumer.poll(timeout_seconds)
        if message is None:
            if self._unfinished and time.monotonic() - self._heard > PATIENCE_SECONDS:
                raise silence(self._bootstrap, self._client, f"{self._name}: silent for {PATIENCE_SECONDS:g} s")
            return None
        error = message.error()
        if error is None:
            self._heard = time.monotonic()
            self._unfinished.add(message.partition())
            return _record(message)
        if error.code() == ck.KafkaError._PARTITION_EOF:
            self._heard = time.monotonic()
            # Offsets tell nothing about the end: the markers of transactions have some, too.
            self._unfinished.discard(message.partition())
        elif error.fatal() or error.code() in _GONE:
            raise self._meaning(error)
        else:
            log.warning("%s", self._meaning(error))
        return None

    def _look(self) -> None:
        """Read new partitions, too."""
        if self._partitions is None or time.monotonic() < self._look_at:
            return
        try:
            there = _topics(self._consumer, self._bootstrap, self._client, self._topic, _LOOK_ANSWER_SECONDS).get(
                self._topic
            )
        except TrimtabError:  # reading will say so, if it lasts
            there = None
        self._look_at = time.monotonic() + _LOOK_SECONDS
        if there is None or there.partitions <= self._partitions:
            return
        log.info("%s has %d partitions now, %d before", self._name, there.partitions, self._partitions)
        new = range(self._partitions, there.partitions)
        self._consumer.incremental_assign([ck.TopicPartition(self._topic, each, ck.OFFSET_BEGINNING) for each in new])
        self._unfinished.update(new)
        self._partitions, self._heard = there.partitions, time.monotonic()

    def _meaning(self, error: BaseException | ck.KafkaError) -> TrimtabError:
        group = str(_READING["group.id"])
        return failure(self._name, error, self._client, operation="Read", topics=[self._topic], group=group)

    def at_end(self) -> bool:
        """True when everything has been read that was committed when its partition's end was last reached."""
        return not self._unfinished

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()


def read_all(
    bootstrap: str, topic: str, partition: int, from_offset: int = ck.OFFSET_BEGINNING, client: Client = _NO_CLIENT
) -> Iterator[Record]:
    """Every committed record of a partition from *from_offset* on, up to its present end.

    Starts at the oldest record where that offset is gone.  Raises TrimtabError where Kafka stays silent.
    """
    reader = Reader(bootstrap, topic, partition=partition, offset=from_offset, client=client)
    return _records(reader, stop=reader.at_end)


def tail(
    bootstrap: str,
    topic: str,
    *,
    follow: bool = True,
    from_beginning: bool = False,
    stop: Callable[[], bool] = lambda: False,
    client: Client = _NO_CLIENT,
) -> Iterator[Record]:
    """Every committed record of a whole topic, from now or *from_beginning* on.

    With *follow* until *stop* says so, else up to the present end.  Where it starts is settled when this returns,
    not with the first record.
    """
    reader = Reader(bootstrap, topic, offset=ck.OFFSET_BEGINNING if from_beginning else None, client=client)
    return _records(reader, stop=stop if follow else reader.at_end)


def _records(reader: Reader, stop: Callable[[], bool]) -> Iterator[Record]:
    try:
        while not stop():
            record = reader.poll(0.2)
            if record is not None:
                yield record
    finally:
        reader.close()


_WRITING: Final[Client] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    "compression.type": "lz4",
    "message.max.bytes": _LARGEST_RECORD,
}
_READING: Final[Client] = {
    # A group is demanded, but never joined and nothing committed in it.
    "group.id": "trimtab-reader",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": _LARGEST_RECORD,
}
#: Reading on will not help.
_GONE: Final = frozenset(
    {
        ck.KafkaError._UNKNOWN_TOPIC,
        ck.KafkaError._UNKNOWN_PARTITION,
        ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
        ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ck.KafkaError._AUTHENTICATION,
    }
)


def _config(bootstrap: str, client: Client, **ours: Any) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, **ours, **client}


def _produce(
    producer: ck.Producer,
    topic: str,
    value: bytes,
    key: bytes | None,
    partition: int | None,
    headers: Headers,
    on_delivery: Callable[[ck.KafkaError | None, ck.Message], None] | None,
) -> None:
    """Queue a record; waits while the queue is full, BufferError when it does not empty."""
    arguments: dict[str, Any] = {"key": key, "headers": dict(headers)}
    if partition is not None:
        arguments["partition"] = partition
    if on_delivery is not None:
        arguments["on_delivery"] = on_delivery
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return producer.produce(topic, value, **arguments)
        except BufferError:
            if time.monotonic() > deadline:
                raise
            producer.poll(0.1)


def _ends(call: Callable[[], None], seconds: float) -> bool:
    """Whether *call* ends within *seconds*; raises what it raises.  Else it is left behind in its thread."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    return not thread.is_alive()


def _retry(call: Callable[[], None]) -> None:
    """*call* until it succeeds or fails for good, for PATIENCE_SECONDS; such calls go on where they had stopped."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except ck.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _record(message: Any) -> Record:
    return Record(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value() or b"",
        timestamp_ms=message.timestamp()[1],
        headers=dict(message.headers() or ()),
    )


def _create(admin: AdminClient, specs: Iterable[TopicSpec]) -> dict[str, Any]:
    new = [
        NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=spec.replication_factor,
            config={"message.timestamp.type": "LogAppendTime", **spec.config},
        )
        for spec in specs
    ]
    return admin.create_topics(new) if new else {}


def _wait_for_leaders(admin: AdminClient, bootstrap: str, names: Sequence[str], client: Client) -> dict[str, int]:
    """Every topic's number of partitions, once all of them can be written to, or have been waited for."""
    begun = time.monotonic()
    while True:
        found = _topics(admin, bootstrap, client)
        waited = time.monotonic() - begun
        missing = [name for name in names if name not in found]
        if missing and waited > PATIENCE_SECONDS:
            raise TrimtabError(f"Kafka at {bootstrap}: no topic {missing[0]!r} after {PATIENCE_SECONDS:g} s")
        offline = {name: found[name] for name in names if name in found and found[name].offline}
        if not missing and (not offline or waited > _LEADERS_SECONDS):
            for name, there in offline.items():
                log.warning("Kafka at %s: %s", bootstrap, _offline(name, there))
            return {name: found[name].partitions for name in names}
        time.sleep(0.05)


class _There(NamedTuple):
    """A topic that exists."""

    partitions: int
    #: Partitions that have no leader now, and so can be neither read nor written.
    offline: tuple[int, ...]


def _topics(
    asked: Any,
    bootstrap: str,
    client: Client,
    topic: str | None = None,
    answer_seconds: float = PATIENCE_SECONDS / 4,
) -> dict[str, _There]:
    """The topics there are, or *topic* alone; AccessDeniedError, soon, where Kafka refuses us."""
    try:
        topics = asked.list_topics(topic, timeout=min(_SOON_SECONDS, answer_seconds)).topics
    except ck.KafkaException as late:
        if answer_seconds < _SOON_SECONDS:
            raise TrimtabError(f"Kafka at {bootstrap} does not answer: {text(late)}") from late
        # Who is refused would only wait; who is not may be slow to be served.
        told = silence(bootstrap, client, late)
        if isinstance(told, AccessDeniedError):
            raise told from late
        try:
            topics = asked.list_topics(topic, timeout=answer_seconds).topics
        except ck.KafkaException as error:
            raise TrimtabError(f"Kafka at {bootstrap} does not answer: {text(error)}") from error
    refused = topics[topic].error if topic is not None and topic in topics else None
    if refused is not None and refused.code() in DENIED:
        where = f"Kafka at {bootstrap}, topic {topic!r}"
        raise failure(where, refused, client, operation="Describe", topics=[str(topic)])
    return {
        name: _There(
            len(data.partitions), tuple(sorted(each for each, part in data.partitions.items() if part.leader < 0))
        )
        for name, data in topics.items()
        if data.error is None and data.partitions
    }


def _offline(topic: str, there: _There) -> str:
    return f"partitions {', '.join(map(str, there.offline))} of topic {topic!r} have no leader: they are offline"
