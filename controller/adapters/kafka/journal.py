"""The journal in Kafka: a topic of one partition, written in one transaction with the command topic.

Each cluster has one transactional id: the last process to init it writes, and Kafka fences all others.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from controller.adapters.kafka.log import create_topics
from controller.adapters.kafka.names import journal_writer
from controller.adapters.kafka.reader import KafkaRecord, read_all
from controller.adapters.kafka.records import KafkaRecords
from controller.adapters.kafka.topics import delete_before
from controller.adapters.kafka.transactions import Transaction, TransactionalProducer
from controller.adapters.process.failpoints import failpoint
from controller.model.errors import DamagedJournalError, JournalError, TrimtabError, WireError
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.ports.leadership import newer_epoch
from controller.ports.records import Extent
from controller.settings.log import KafkaLogSettings
from controller.wire.base import is_foreign, read_object
from controller.wire.commands import EVENT_HEADERS, command_event, command_key, epoch_event
from controller.wire.journal import EpochEntry, encode_epoch
from controller.wire.journal_records import WHOLE_EVERY_MS, Decided, EntryReader, EntryWriter, unreadable

log = logging.getLogger(__name__)

#: A record's headers: the leadership that wrote it, which its value, the entry, knows nothing of, and what pruning
#: needs to know.
_EPOCH: Final = "epoch"
_CLUSTER: Final = "cluster"
_INTERVAL: Final = "interval"
#: On the first record of an entry that holds the memory whole.
_WHOLE: Final = "whole"
_DIGITS: Final = 18
#: So many offsets are read from the end, then more: usually the last entry with the whole memory is among them.
_TAILS: Final = (200, 10_000)
#: Of a hundred clusters that share the topic it is 12,000 back, and farther if one has decided nothing for long.
_FAR_TAILS: Final = (100_000, 1_000_000)
#: librdkafka's way to say "so many before the end": this minus their number.
_FROM_END: Final = -2000
#: So many offsets are searched for one pruning, or more where nothing in them can be pruned.
_PRUNED_BYTES: Final = 64 << 20


class KafkaJournal:
    """Journal on Kafka."""

    def __init__(self, settings: KafkaLogSettings, *, cluster: str, whole_every_ms: int = WHOLE_EVERY_MS) -> None:
        self._settings, self._cluster, self._whole_every_ms = settings, cluster, whole_every_ms
        self._producer = TransactionalProducer(settings.bootstrap, journal_writer(cluster), settings.client)

    def open(self) -> JournalHead:
        """See Journal.  What an earlier writer had not committed is aborted."""
        self._fence()
        end = _read_end(self._settings, self._cluster)
        base = None if end.last is None else end.last.remembered
        self._writer = EntryWriter(whole_every_ms=self._whole_every_ms, base=base)
        return end.head

    def _fence(self) -> None:
        log = self._settings
        used = (log.metrics_topic, log.results_topic, log.commands_topic, log.journal_topic)
        #: How many partitions of the command topic have the newest epoch.
        self._told = create_topics(log, *used)[log.commands_topic]
        self._producer.init()

    def fence(self) -> int:
        """See Journal."""
        self._fence()
        for offset in _starts(self._settings):
            records = read_all(*_journal(self._settings), offset, self._settings.client)
            told = (epoch_of(record) for record in records if not is_anothers(record, self._cluster))
            if epochs := sorted(filter(None, told)):
                return newer_epoch(*epochs)
        return 0

    def begin_epoch(self, epoch: int) -> None:
        """See Journal."""
        self._told, partitions = 0, self._command_partitions()
        headers = {_EPOCH: str(epoch).encode(), _CLUSTER: self._cluster.encode()}
        with self._producer.transaction() as transaction:
            entry = encode_epoch(self._cluster, epoch)
            transaction.send(self._settings.journal_topic, entry, partition=0, headers=headers)
            self._tell(transaction, epoch, partitions)
        self._told = partitions

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """See Journal."""
        failpoint("after-decide")
        partitions = self._command_partitions()
        encoded = self._writer.encode(entry)
        headers = {
            _EPOCH: str(epoch).encode(),
            _CLUSTER: self._cluster.encode(),
            _INTERVAL: str(entry.interval).encode(),
        }
        with self._producer.transaction() as transaction:
            for number, record in enumerate(encoded.records):
                more = {_WHOLE: b"1"} if encoded.whole and number == 0 else {}
                transaction.send(self._settings.journal_topic, record, partition=0, headers=headers | more)
            self._tell(transaction, epoch, partitions)
            for command in entry.decision.commands:
                transaction.send(
                    self._settings.commands_topic,
                    command_event(command, epoch, issued_at_ms),
                    key=command_key(command).encode(),
                    headers=EVENT_HEADERS,
                )
            transaction.flush()  # after this, a process that dies leaves an open transaction with records
            before_commit()
            failpoint("inside-transaction")
        self._writer.wrote(encoded)
        self._told = partitions
        failpoint("after-commit")

    def _command_partitions(self) -> int:
        """The partitions now, asked each time: some may have been added, and the producer learns them by this."""
        topic = self._settings.commands_topic
        try:
            return self._producer.partitions(topic, online=False)[topic]
        except TrimtabError as error:
            raise JournalError(str(error)) from error

    def _tell(self, transaction: Transaction, epoch: int, partitions: int) -> None:
        """*epoch* to those *partitions* of the command topic that do not know it, so that no lower one counts there."""
        event = epoch_event(self._cluster, epoch, time.time_ns() // 1_000_000)
        for partition in range(self._told, partitions):
            transaction.send(self._settings.commands_topic, event, partition=partition, headers=EVENT_HEADERS)

    def prune(self, *, committed: int, before: int) -> None:
        """See Journal.  Entries of other clusters in the topic are kept, and all behind the oldest that they need."""
        needed: dict[str, int] = {}
        looked = 0
        try:
            for record in read_all(*_journal(self._settings), client=self._settings.client):
                place = self._place(record)
                if place is None:
                    continue
                if place.interval is not None and not (place.interval < before and place.interval <= committed):
                    break
                needed.setdefault(place.cluster, record.offset)
                looked += len(record.value)
                if place.whole:
                    needed[place.cluster] = record.offset
                    if looked > _PRUNED_BYTES and place.cluster == self._cluster:
                        break
            if needed:
                delete_before(*_journal(self._settings), min(needed.values()), self._settings.client)
        except TrimtabError as error:
            raise JournalError(f"the journal could not be pruned: {error}") from error

    def _place(self, record: KafkaRecord) -> "_Place | None":
        """What pruning has to know of *record*; None where it is damaged, and nobody's, or another cluster's."""
        try:
            return _place(record)
        except DamagedJournalError:
            if record.headers.get(_CLUSTER) == self._cluster.encode():
                raise
            return None


def read_journal(settings: KafkaLogSettings, *, cluster: str) -> Iterator[JournalEntry]:
    """Every decision about *cluster* in the journal, oldest first, from the first one with its whole memory on."""
    reader, begun = EntryReader(cluster), False
    for record in read_all(*_journal(settings), client=settings.client):
        decided = None if is_anothers(record, cluster) else _read(reader, record)
        if isinstance(decided, Decided):
            begun = begun or decided.missing is None
            if begun:
                yield decided.entry


def journal_head(settings: KafkaLogSettings, *, cluster: str) -> JournalHead:
    """The head of the journal of *cluster*; no effect on its writer."""
    return _read_end(settings, cluster).head


def near_head(settings: KafkaLogSettings, *, cluster: str) -> JournalHead:
    """As ``journal_head``; no decision where its memory lies farther back than _FAR_TAILS, which is logged."""
    end = _read_end(settings, cluster, far=False)
    if end.is_whole or not _is_long(_extent(settings)):
        return end.head
    log.warning(
        "Kafka topic %r: the last decision about cluster %r, or the memory behind it, is not among its newest %s"
        " offsets, and what is older was not read; others write there, too: with a journal_topic of its own the cluster"
        " is found sooner",
        settings.journal_topic, cluster, f"{_FAR_TAILS[-1]:,}",
    )  # fmt: skip
    return JournalHead(last=None, epoch=end.epoch)


class _End(NamedTuple):
    """The last decision and the newest epoch in a journal."""

    last: Decided | None
    epoch: int

    @property
    def is_whole(self) -> bool:
        """Whether the memory behind the last decision is known."""
        return self.last is not None and self.last.missing is None

    @property
    def head(self) -> JournalHead:
        return JournalHead(last=None if self.last is None else self.last.entry, epoch=self.epoch)


def _starts(settings: KafkaLogSettings, *, far: bool = True) -> Iterator[int]:
    """From where the end of the journal is read: from ever farther back, at last from the beginning.

    Not *far*: from the beginning only where that is no farther than the farthest of the others.
    """
    for offsets in _TAILS:
        yield _FROM_END - offsets
    there = _extent(settings)
    for offsets in _FAR_TAILS:
        if offsets < there.end - there.first:
            yield _FROM_END - offsets
    if far or not _is_long(there):
        yield 0


def _extent(settings: KafkaLogSettings) -> Extent:
    return KafkaRecords(settings).extents("journal").get(0, Extent(0, 0))


def _is_long(there: Extent) -> bool:
    return there.end - there.first > _FAR_TAILS[-1]


def _read_end(settings: KafkaLogSettings, cluster: str, *, far: bool = True) -> _End:
    """Read the journal from its last entry with the whole memory on; where that was not found, from farther back."""
    for offset in _starts(settings, far=far):
        records = read_all(*_journal(settings), offset, settings.client)
        end = _end(EntryReader(cluster), (record for record in records if not is_anothers(record, cluster)))
        if end.is_whole:
            break
    return end


def _end(reader: EntryReader, records: Iterator[KafkaRecord]) -> _End:
    last, epoch = None, 0
    for record in records:
        entry = _read(reader, record)
        if entry is not None:
            epoch = newer_epoch(epoch, _number(record, _EPOCH) or 0)
            last = entry if isinstance(entry, Decided) else last
    return _End(last, epoch)


def _read(reader: EntryReader, record: KafkaRecord) -> Decided | EpochEntry | None:
    try:
        return reader.read(record.value)
    except WireError as error:
        raise unreadable(f"journal, offset {record.offset}", error) from error


def is_anothers(record: KafkaRecord, cluster: str) -> bool:
    """Whether *record* says that it is another cluster's than *cluster*.

    Clusters may share the topic, so what another one's release or a damage made of its records is no matter here.
    """
    told = record.headers.get(_CLUSTER)
    if told:
        return bool(told != cluster.encode())
    try:
        return is_foreign(read_object(record.value), cluster)
    except WireError:
        return False


def tells_interval(record: KafkaRecord) -> bool:
    """Whether the headers of *record* say that it is a decision, or a part of one."""
    return _INTERVAL in record.headers


def epoch_of(record: KafkaRecord) -> int:
    """The epoch in the headers of *record*; 0 where it has none that can be read."""
    try:
        return _number(record, _EPOCH) or 0
    except DamagedJournalError:
        return 0


def _number(record: KafkaRecord, header: str) -> int | None:
    text = record.headers.get(header)
    if text is None:
        return None
    if not text.isdigit() or len(text) > _DIGITS:
        raise DamagedJournalError(
            f"journal, offset {record.offset}: header {header} is {text[:60]!r}, expected a number"
        )
    return int(text)


class _Place(NamedTuple):
    """The fields of a record that pruning uses."""

    cluster: str
    #: None of an epoch.
    interval: int | None
    whole: bool


def _place(record: KafkaRecord) -> _Place:
    headers = record.headers
    if headers.get(_CLUSTER):
        return _Place(headers[_CLUSTER].decode(errors="replace"), _number(record, _INTERVAL), _WHOLE in headers)
    # Written before records told it in headers; then every decision held the memory whole.
    entry = _read(EntryReader(None), record)
    if isinstance(entry, Decided):
        return _Place(str(entry.fields["cluster"]), entry.interval, entry.whole)
    return _Place("" if entry is None else entry.cluster, None, False)


def _journal(settings: KafkaLogSettings) -> tuple[str, str, int]:
    return settings.bootstrap, settings.journal_topic, 0
