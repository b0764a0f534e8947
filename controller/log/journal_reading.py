"""Reads the journal, its end or all of it, without disturbing its writer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from controller.log.port import OLDEST, Log, LogRecord, Start
from controller.model.errors import AnotherClusterError, DamagedJournalError, WireError
from controller.model.journal import JournalEntry, JournalHead
from controller.model.leadership import newer_epoch
from controller.wire.base import read_object
from controller.wire.command_signatures import separated
from controller.wire.journal import EpochEntry
from controller.wire.journal_records import Decided, EntryReader, unreadable

#: Headers of a record, beside the interval: the leadership that wrote it, of which its value, the entry, says nothing;
#: when its commands were issued, epoch ms; and the cluster.
EPOCH: Final = "epoch"
ISSUED_AT: Final = "issuedAt"
CLUSTER: Final = "cluster"
#: On the records of an entry whose commands are signed: the signatures, in the order of the commands.
SIGNATURES: Final = "signatures"
#: On the first record of an entry that holds the memory whole.
WHOLE: Final = "whole"
_DIGITS: Final = 18
#: Records that are read at once from the end backwards.
_WINDOW: Final = 100


class JournalEnd(NamedTuple):
    """The last decision, with the record that ends it, and the newest epoch."""

    last: Decided | None
    record: LogRecord | None
    epoch: int
    #: Of the last decision's commands, and maybe of parts before that no decision follows.
    signature_text: bytes = b""

    @property
    def signatures(self) -> Sequence[str]:
        """One for each command of the last decision; none where they are not signed."""
        return [] if self.last is None else separated(self.signature_text, len(self.last.entry.decision.commands))

    @property
    def head(self) -> JournalHead:
        """See Journal."""
        return JournalHead(last=None if self.last is None else self.last.entry, epoch=self.epoch)

    @property
    def is_whole(self) -> bool:
        """Whether the memory behind the last decision is known."""
        return self.last is not None and self.last.missing is None


class JournalReader:
    """Reads the journal in *log*.

    AnotherClusterError: it belongs to another cluster than *cluster*, if that is given.  JournalError: a record cannot
    be read.
    """

    def __init__(self, log: Log, cluster: str | None) -> None:
        self._log, self._cluster = log, cluster

    def refuse_another(self) -> None:
        """AnotherClusterError where the newest record is another cluster's, or no release of this form wrote it."""
        for newest in self._log.read_backwards("journal", 0, None, 1)[-1:]:
            if CLUSTER in newest.headers or _is_json(newest.value):  # reading reports what is damaged
                self._refuse(newest.headers.get(CLUSTER, b"").decode(errors="replace"))

    def entries(self) -> Iterator[JournalEntry]:
        """Every decision, oldest first, from the first one with its whole memory on."""
        reader, has_whole_memory = EntryReader(None), False
        for record in self._from(OLDEST):
            decided = self.read(reader, record)
            if isinstance(decided, Decided):
                has_whole_memory = has_whole_memory or decided.missing is None
                if has_whole_memory:
                    yield decided.entry

    def end(self) -> JournalEnd:
        """The end as it is now, read from the last entry with the whole memory on."""
        for record in self.backwards():
            if WHOLE in record.headers:
                end = self.end_of(self._from(Start(position=record.position)))
                # The last of its parts may be missing.
                if end.is_whole:
                    return end
        return self.end_of(self._from(OLDEST))

    def end_of(self, records: Iterable[LogRecord]) -> JournalEnd:
        """The end of a journal with these *records*, oldest first."""
        reader, end, signatures = EntryReader(None), JournalEnd(None, None, 0), b""
        for record in records:
            signatures += record.headers.get(SIGNATURES, b"")
            entry = self.read(reader, record)
            if entry is None:
                continue
            end = end._replace(epoch=newer_epoch(end.epoch, number_in(record, EPOCH, self.place(record)) or 0))
            if isinstance(entry, Decided):
                end = end._replace(last=entry, record=record, signature_text=signatures)
            signatures = b""
        return end

    def backwards(self) -> Iterator[LogRecord]:
        """The records, newest first."""
        before = None
        while window := self._log.read_backwards("journal", 0, before, _WINDOW):
            yield from reversed(window)
            before = window[0].position

    def read(self, reader: EntryReader, record: LogRecord) -> Decided | EpochEntry | None:
        """The entry that *record* completes, if it does."""
        try:
            entry = reader.read(record.value)
        except WireError as error:
            raise unreadable(self.place(record), error) from error
        if isinstance(entry, EpochEntry):
            self._refuse(entry.cluster)
        elif entry is not None:
            self._refuse(str(entry.fields.get("cluster")))
        return entry

    def place(self, record: LogRecord) -> str:
        """Where *record* lies, for messages."""
        return self._log.place("journal", record.partition, record.position)

    def _from(self, start: Start) -> Iterator[LogRecord]:
        with closing(self._log.read("journal", start, partition=0)) as reader:
            yield from reader.read_to_end()

    def _refuse(self, of: str) -> None:
        if self._cluster is not None and of != self._cluster:
            raise AnotherClusterError(
                f"{self._log.name('journal')} is about cluster {of!r}: give cluster {self._cluster!r} a log of its own"
            )


def _is_json(value: bytes) -> bool:
    try:
        read_object(value)
    except WireError:
        return False
    return True


def number_in(record: LogRecord, header: str, place: str) -> int | None:
    """The number in a *header* of *record*, which lies at *place*; None where it has none.  JournalError."""
    text = record.headers.get(header)
    if text is None:
        return None
    if not text.isdigit() or len(text) > _DIGITS:
        raise DamagedJournalError(f"{place}: header {header} is {text[:60]!r}, expected a number")
    return int(text)


def newest_epoch(records: Sequence[LogRecord]) -> int:
    """The newest epoch in the headers of *records*, whatever else they hold; 0 where none has one that can be read."""
    epochs = [epoch_in(record.headers) for record in records]
    return newer_epoch(*(sorted(filter(None, epochs)) or (0,)))


def epoch_in(headers: Mapping[str, bytes]) -> int:
    """The epoch in *headers*; 0 where there is none that can be read."""
    text = headers.get(EPOCH, b"")
    return int(text) if text.isdigit() and len(text) <= _DIGITS else 0
