"""Kafka's transactions: records that appear together or not at all, written by one process at a time."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import (
    LIBRDKAFKA_LOG,
    NO_CLIENT,
    NO_HEADERS,
    PATIENCE_SECONDS,
    Client,
    Headers,
    connection_options,
)
from controller.adapters.kafka.errors import failure, text
from controller.adapters.kafka.topics import not_writable
from controller.adapters.kafka.writer import WRITING, Writer, produce
from controller.adapters.network.calls import side_by_side
from controller.adapters.network.waiting import retry
from controller.model.errors import AccessDeniedError, JournalError, LeadershipLostError, TrimtabError

log = logging.getLogger(__name__)

#: A dead process's open transaction hides later records of its partitions for no longer than this.
_TRANSACTION_MS: Final = 10_000
#: How long to wait for a group's coordinator, which is asked when the brokers have answered already; then some grace.
_OFFSETS_SECONDS: Final = 15.0
_GRACE_SECONDS: Final = 2.0
#: How long an abort waits for records under way; none of them matters any more.
_SETTLE_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.1
_FENCED: Final = frozenset(
    {
        ck.KafkaError._FENCED,
        ck.KafkaError.PRODUCER_FENCED,
        ck.KafkaError.INVALID_PRODUCER_EPOCH,
        ck.KafkaError.FENCED_INSTANCE_ID,
    }
)
#: After one record was refused, librdkafka refuses the next ones because of the transaction's state.
_MAY_BE_DENIED: Final = frozenset({ck.KafkaError._STATE, ck.KafkaError.TOPIC_AUTHORIZATION_FAILED})


class Transaction:
    """Records that appear together or not at all."""

    def __init__(self, producer: ck.Producer) -> None:
        self._producer = producer
        #: The topics written to.
        self.topics: set[str] = set()
        #: A call has not ended, and may never end: do not call this producer again.
        self.stuck = False

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = NO_HEADERS,
        on_delivery: Callable[[ck.KafkaError | None, ck.Message], None] | None = None,
    ) -> None:
        """Add one record; whether it could be written is known at ``flush``, and at the commit."""
        self.topics.add(topic)
        produce(self._producer, topic, value, key, partition, headers, on_delivery)

    def send_offsets(self, offsets: list[ck.TopicPartition], group: Any) -> None:
        """Add how far *group*, a consumer's group metadata, has read; refused where the group has moved on."""
        # After an outage of Kafka this call sometimes never returns, whatever its timeout.
        call = partial(self._producer.send_offsets_to_transaction, offsets, group, _OFFSETS_SECONDS)
        ended = side_by_side({"offsets": call}, _OFFSETS_SECONDS + _GRACE_SECONDS)["offsets"]
        self.stuck = ended.late
        if self.stuck:
            raise ck.KafkaException(
                ck.KafkaError(ck.KafkaError._TIMED_OUT, "no response to the request for the group's offsets")
            )
        ended.result()

    def flush(self) -> None:
        """Return when every record is in its topic or was refused; only the commit is missing then.

        A fenced producer gets its error here; a refused record makes the commit fail.
        """
        # No delivery callbacks: a fatal error is an exception by itself, and would break into them.
        unwritten = self._producer.flush(PATIENCE_SECONDS)
        if unwritten:
            why = f"{unwritten} records not written after {PATIENCE_SECONDS:g} s"
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT, why))


class TransactionalProducer(Writer):
    """Writes transactions under a fixed *transactional_id*: the last to ``init`` writes, earlier ones are fenced.

    Where the id was taken over, LeadershipLostError is raised; every other failure is a JournalError.  After either
    only ``init`` is allowed, and only reading the topics behind it tells whether a failed commit took place.
    """

    def __init__(self, bootstrap: str, transactional_id: str, client: Client = NO_CLIENT) -> None:
        self._bootstrap, self._client = bootstrap, client
        options = connection_options(bootstrap, client, **WRITING, **{"transactional.id": transactional_id})
        # An answer may not take longer than a transaction.
        longest_ms = max(_TRANSACTION_MS, int(options["socket.timeout.ms"]))
        self._config = {**options, "transaction.timeout.ms": longest_ms}
        self._id = transactional_id
        self._current: Transaction | None = None
        self._failure: TrimtabError | None = JournalError(f"{transactional_id}: init() was not called")

    def init(self) -> None:
        """Fence earlier producers of this id and finish what they left: open transactions are aborted."""
        # A new one each time: some failures leave librdkafka's in a state that it does not come out of.
        self._producer = ck.Producer(self._config, logger=LIBRDKAFKA_LOG)
        self._failure = None
        with self._failures("init_transactions"):
            _retry(lambda: self._producer.init_transactions(PATIENCE_SECONDS))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction, committed at the end of the block. An exception in the block aborts it and is re-raised."""
        if self._failure is not None:
            raise self._failure
        with self._failures("transaction"):
            self._producer.begin_transaction()
            transaction = self._current = Transaction(self._producer)
            try:
                yield transaction
            except BaseException:
                # Where a call is stuck the brokers abort the transaction when it times out.
                if not transaction.stuck:
                    self._abort()
                raise
            self._commit()

    def close(self) -> None:
        """Stop writing. The next ``init`` of this id, by any process, does not have to wait for this producer."""
        self._failure = JournalError(f"{self._id}: close() was called")
        vars(self).pop("_producer", None)

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
        cause: BaseException | ck.KafkaError = error
        topics = sorted(self._current.topics) if self._current is not None else []
        may_be_denied = isinstance(error, ck.KafkaException) and error.args[0].code() in _MAY_BE_DENIED and topics
        if may_be_denied and (denied_topics := not_writable(self._bootstrap, topics, self._client)):
            cause, topics = ck.KafkaError(ck.KafkaError.TOPIC_AUTHORIZATION_FAILED), denied_topics
        denied = failure(where, cause, self._client, operation="Write", topics=topics, transactional_id=self._id)
        return denied if isinstance(denied, AccessDeniedError) else JournalError(str(denied))


def _retry(call: Callable[[], None]) -> None:
    """*call* until it succeeds or fails for good, for PATIENCE_SECONDS; such calls go on where they had stopped."""
    retry(call, PATIENCE_SECONDS, again_after=_is_retriable, every=_RETRY_SECONDS)


def _is_retriable(error: BaseException) -> bool:
    return isinstance(error, ck.KafkaException) and bool(error.args[0].retriable())
