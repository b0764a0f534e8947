"""Reads the journal's topic: its end, or all of it.  Disturbs no writer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.reader import (
    LAST,
    OLDEST,
    LogRecord,
    MessagePlace,
    Start,
    one_record,
    read_rest,
)
from controller.model.errors import AnotherClusterError, DamagedJournalError, WireError
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.ports.leadership import newer_epoch
from controller.wire.journal import EpochEntry
from controller.wire.journal_records import Decided, EntryReader, unreadable

#: Properties of a record: the leadership that wrote it, of which its value, the entry, says nothing, when its commands
#: were issued (epoch ms), and what pruning has to know.
EPOCH: Final = "epoch"
ISSUED_AT: Final = "issuedAt"
CLUSTER: Final = "cluster"
INTERVAL: Final = "interval"
#: On the first record of an entry that holds the memory whole.
WHOLE: Final = "whole"
#: On every record, and on marks: where the journal begins, ledger:entry; what lies before was pruned.
FIRST: Final = "first"
_DIGITS: Final = 18
_DAY_MS: Final = 86_400_000


class JournalEnd(NamedTuple):
    """The last decision, with the properties of its record, and the newest epoch."""

    last: Decided | None
    properties: Mapping[str, str]
    epoch: int
    #: When the last decision was appended, epoch ms.
    appended_ms: int = 0

    @property
    def head(self) -> JournalHead:
        """See Journal."""
        return JournalHead(last=None if self.last is None else self.last.entry, epoch=self.epoch)

    @property
    def is_whole(self) -> bool:
        """Whether the memory behind the last decision is known."""
        return self.last is not None and self.last.missing is None


def end_of(records: Iterable[LogRecord], cluster: str) -> JournalEnd:
    """The end of a journal about *cluster* with these *records*, oldest first.  JournalError."""
    reader = EntryReader(None)
    found = JournalEnd(None, {}, 0)
    for record in records:
        entry = read_entry(reader, record)
        if entry is None:
            continue
        epoch = newer_epoch(found.epoch, number(record, EPOCH) or 0)
        of = entry.cluster if isinstance(entry, EpochEntry) else str(entry.fields.get("cluster"))
        refuse_another_cluster(of, cluster)
        if isinstance(entry, Decided):
            found = JournalEnd(entry, record.properties, epoch, record.timestamp_ms)
        else:
            found = found._replace(epoch=epoch)
    return found


def journal_end(connection: LogConnection, *, cluster: str, now_ms: int) -> JournalEnd:
    """The end of the journal as it is now."""
    name = connection.log.journal_topic
    for start in (Start(since_ms=max(0, now_ms - _DAY_MS)), first_of(connection)):
        found = end_of(read_rest(connection, name, 0, start), cluster)
        if found.is_whole:
            break
    return found


def newest_properties(connection: LogConnection) -> Mapping[str, str]:
    """The properties of the journal's last record, or mark."""
    newest = one_record(connection, connection.log.journal_topic, 0, LAST)
    return {} if newest is None else newest.properties


def first_of(connection: LogConnection) -> Start:
    """Where the journal begins: behind what was pruned."""
    return start_in(newest_properties(connection))


def refuse_another_cluster(of: str, cluster: str) -> None:
    """AnotherClusterError where a journal that is *of* a cluster is to be *cluster*'s."""
    if of != cluster:
        raise AnotherClusterError(
            f"the journal is about cluster {of!r}: give cluster {cluster!r} a namespace of its own in [log.pulsar]"
        )


def start_in(properties: Mapping[str, str]) -> Start:
    """Where the journal begins, as the *properties* of a record say."""
    ledger, _, entry = properties.get(FIRST, "").partition(":")
    if not (ledger.isdigit() and entry.isdigit() and len(ledger) <= _DIGITS and len(entry) <= _DIGITS):
        return OLDEST
    return Start(entry=(int(ledger), int(entry)))


def read_journal(connection: LogConnection, *, cluster: str) -> Iterator[JournalEntry]:
    """Every decision about *cluster*, oldest first, from the first one with its whole memory on.  JournalError."""
    reader, begun = EntryReader(cluster), False
    for record in read_rest(connection, connection.log.journal_topic, 0, first_of(connection)):
        decided = read_entry(reader, record)
        if isinstance(decided, Decided):
            begun = begun or decided.missing is None
            if begun:
                yield decided.entry


def read_entry(reader: EntryReader, record: LogRecord) -> Decided | EpochEntry | None:
    """What *record* completes.  JournalError that names its place."""
    try:
        return reader.read(record.value)
    except WireError as error:
        raise unreadable(f"journal, {shown(record.place)}", error) from error


def number(record: LogRecord, name: str) -> int | None:
    """The property *name* of *record*, None where it has none.  JournalError where it is no number."""
    text = record.properties.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise DamagedJournalError(
            f"journal, {shown(record.place)}: property {name} is {text[:60]!r}, expected a number"
        )
    return int(text)


def shown(place: MessagePlace) -> str:
    """*place* as Pulsar's own tools write it."""
    return f"{place[0]}:{place[1]}"
