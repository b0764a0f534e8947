"""Scopes in Kafka: each has a transactional id, and a decision and all that follows are one transaction.

The last process to ``init`` the id is the writer; Kafka aborts open transactions of its predecessors and fences them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import confluent_kafka as ck

from controller.adapters.kafka.names import scope_writer
from controller.adapters.kafka.transactions import Transaction, TransactionalProducer
from controller.log.kafka.reader import MARK
from controller.log.kafka.topics import KafkaTopics
from controller.log.port import LogRecord, Out, Position, Scope
from controller.model.errors import AccessDeniedError, JournalError, TrimtabError
from controller.settings.log import KafkaLogSettings


class KafkaScope:
    """Fenced on Kafka."""

    def __init__(self, log: KafkaTopics, settings: KafkaLogSettings, scope: Scope) -> None:
        self._log = log
        #: None: this scope decides in "ticks", which Kafka does not need.
        self._decides = None if scope.decides[0] == "ticks" else scope.decides
        self._producer = TransactionalProducer(settings.bootstrap, scope_writer(scope.name), settings.client)
        self._producer.init()
        #: All that earlier holders wrote lies before it.
        self._mark = None if self._decides is None else self._write_mark(log.name(scope.decides[0]), scope.decides[1])

    def history(self, about: int | None = None) -> Iterator[LogRecord]:
        """See Fenced."""
        if self._decides is None or self._mark is None:
            return
        topic, partition = self._decides
        try:
            if about is not None:
                yield from self._log.read_backwards(topic, partition, self._mark, about)
                return
            with closing(self._log.read(topic, partition=partition)) as reader:
                for record in reader.until({partition: self._mark}):
                    if record.position > self._mark:
                        return
                    yield record
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            raise JournalError(str(error)) from error

    def complete(self, follow: Sequence[Out], mark: bytes = b"", identity: Callable[[bytes], object] = bytes) -> None:
        """See Fenced.  Whatever was decided appeared together with what follows from it."""

    def append(
        self, decide: Sequence[Out], follow: Sequence[Out] = (), before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """See Fenced."""
        self._look(follow)
        outs = [out for out in (*decide, *follow) if out.topic != "ticks"]
        with self._producer.transaction() as transaction:
            send_all(transaction, self._log, outs)
            # After this every record lies in its topic: a process that dies leaves an open transaction.
            transaction.flush()
            before_commit()

    def prune_before(self, first: Position) -> None:
        """See Fenced."""
        if self._decides is not None:
            self._log.delete_before(*self._decides, first)

    def close(self) -> None:
        """See Fenced."""
        self._producer.close()

    def _look(self, outs: Sequence[Out]) -> None:
        """Let the producer find all partitions.  LogOfflineError: the partition of one of *outs* is offline."""
        used = defaultdict[str, set[int | None]](set)
        for out in outs:
            used[self._log.name(out.topic)].add(out.partition)
        for topic, partitions in used.items():
            self._producer.online(topic, partitions)

    def _write_mark(self, topic: str, partition: int) -> Position:
        """Write a mark; returns its offset."""
        places: list[Position] = []

        def delivered(error: ck.KafkaError | None, record: ck.Message) -> None:
            if error is None and (offset := record.offset()) is not None:
                places.append(offset)

        with self._producer.transaction() as transaction:
            transaction.send(topic, b"", partition=partition, headers={MARK: b""}, on_delivery=delivered)
        if not places or places[0] < 0:
            raise JournalError(f"Kafka does not say at which offset of topic {topic!r} a record lies")
        return places[0]


def send_all(transaction: Transaction, log: KafkaTopics, outs: Sequence[Out]) -> None:
    """Add *outs* to *transaction*."""
    for out in outs:
        transaction.send(
            log.name(out.topic), out.value, key=out.key or None, partition=out.partition, headers=out.headers
        )
