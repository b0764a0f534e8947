"""The journal in Kafka: a topic of one partition, written in one transaction with the command topic.

The transactional id is the cluster's: whoever comes last writes, and all others are fenced by the brokers.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

from controller.adapters.failpoints import failpoint
from controller.adapters.journal import JournalHead
from controller.adapters.kafka import Headers, Record, TransactionalProducer, read_all
from controller.adapters.kafka_log import create_topics
from controller.adapters.kafka_names import journal_writer
from controller.model.errors import JournalError, WireError
from controller.settings.trimtab_toml import KafkaLogSettings
from controller.wire.commands import command_event, command_key, epoch_event
from controller.wire.journal import EpochEntry, JournalEntry, encode_entry, encode_epoch, parse_entry

#: A record's header: the leadership that wrote it.  Its value, the entry, knows nothing of it.
_EPOCH: Final = "epoch"
#: So many offsets are read from the end, then more: the head is among the last few unless much was aborted.
_TAILS: Final = (100, 10_000)
#: librdkafka's way to say "so many before the end": this minus their number.
_FROM_END: Final = -2000


class KafkaJournal:
    """Journal on Kafka."""

    def __init__(self, settings: KafkaLogSettings, *, cluster: str) -> None:
        self._settings, self._cluster = settings, cluster
        self._producer = TransactionalProducer(settings.bootstrap, journal_writer(cluster), settings.client)

    def open(self) -> JournalHead:
        """See Journal.  What an earlier writer had not committed is aborted."""
        self._command_partitions = create_topics(self._settings)[self._settings.commands_topic]
        self._producer.init()
        for offset in (*(_FROM_END - n for n in _TAILS), 0):
            head = _head(self._cluster, read_all(*_journal(self._settings), offset, self._settings.client))
            if head.last is not None:
                break
        return head

    def begin_epoch(self, epoch: int) -> None:
        """See Journal."""
        event = epoch_event(self._cluster, epoch, time.time_ns() // 1_000_000)
        with self._producer.transaction() as transaction:
            entry = encode_epoch(self._cluster, epoch)
            transaction.send(self._settings.journal_topic, entry, partition=0, headers=_headers(epoch))
            for partition in range(self._command_partitions):
                transaction.send(self._settings.commands_topic, event, partition=partition)

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """See Journal."""
        with self._producer.transaction() as transaction:
            transaction.send(self._settings.journal_topic, encode_entry(entry), partition=0, headers=_headers(epoch))
            for command in entry.decision.commands:
                transaction.send(
                    self._settings.commands_topic,
                    command_event(command, epoch, issued_at_ms),
                    key=command_key(command).encode(),
                )
            transaction.flush()  # whoever dies from here on leaves an open transaction behind, not an empty one
            before_commit()
            failpoint("inside-transaction")
        failpoint("after-commit")


def read_journal(settings: KafkaLogSettings, *, cluster: str) -> Iterator[JournalEntry]:
    """Every decision about *cluster* in the journal, oldest first."""
    for record in read_all(*_journal(settings), client=settings.client):
        entry = _entry(record)
        if isinstance(entry, JournalEntry) and entry.cluster == cluster:
            yield entry


def _head(cluster: str, records: Iterator[Record]) -> JournalHead:
    last, epoch = None, 0
    for record in records:
        entry = _entry(record)
        if entry.cluster == cluster:
            epoch = max(epoch, int(record.headers.get(_EPOCH, b"0")))
            last = entry if isinstance(entry, JournalEntry) else last
    return JournalHead(last=last, epoch=epoch)


def _entry(record: Record) -> JournalEntry | EpochEntry:
    try:
        return parse_entry(record.value)
    except WireError as error:
        raise JournalError(f"journal, offset {record.offset}: {error}") from error


def _journal(settings: KafkaLogSettings) -> tuple[str, str, int]:
    return settings.bootstrap, settings.journal_topic, 0


def _headers(epoch: int) -> Headers:
    return {_EPOCH: str(epoch).encode()}
