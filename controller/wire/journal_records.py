"""From entries to the journal's records and back.

Most records hold what changed in the memory since the entry before; now and then one holds the memory whole.  Which
one does follows from the intervals and the entries alone, never from the process: so the same decisions have the same
bytes, whoever writes them.  An entry above Kafka's largest message is several records, its parts.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic_core import to_json

from controller.model.errors import DamagedJournalError, EntryTooLargeError, JournalError, NewerJournalError, WireError
from controller.model.journal import JournalEntry
from controller.wire.base import Count, Envelope, Millis, encode, is_foreign, model_for, read_object, reader, validate
from controller.wire.changes import Json, apply, change
from controller.wire.journal import (
    MODELS,
    DecisionEntry,
    DeltaEntry,
    EpochEntry,
    encode_entry,
    to_entry,
)
from controller.wire.readable import utc

#: How far two entries with the whole memory lie apart, ms, unless the settings say otherwise.
WHOLE_EVERY_MS: Final = 3_600_000
#: Longest record, bytes; Kafka takes 1 MiB unless it is told otherwise.
_LARGEST_RECORD: Final = 900_000
#: Characters of an entry in one part: with 4 bytes each, the most there are, it is still below Kafka's limit.
_PART_CHARACTERS: Final = 250_000
#: Longest entry with commands, bytes.  Far above what guardrails let through.
LARGEST_ENTRY: Final = 64 << 20
#: Of an entry that is joined: characters, and parts.  Far above an entry with a memory of 100,000 bundles.
_LONGEST_JOINED: Final = 4 * LARGEST_ENTRY
_MOST_PARTS: Final = 4_096


class PartEntry(Envelope):
    """A part of an entry that is too long for one record.  All parts are written together, in their order."""

    type: Literal["part"] = "part"
    interval: Millis
    part: Count
    """From 0."""
    parts: Count
    """How many there are."""
    text: str
    """All parts' texts, one after the other, are the entry."""


JournalRecord: TypeAlias = DecisionEntry | DeltaEntry | PartEntry | EpochEntry
#: All records of the journal.
RECORDS: Final[dict[str, type[Any]]] = {**MODELS, "decision_delta": DeltaEntry, "part": PartEntry}


@reader
def parse_record(value: bytes) -> JournalRecord:
    """The record that *value* holds, or WireError."""
    record: JournalRecord = validate(model_for(read_object(value), RECORDS), value)
    return record


def unreadable(where: str, error: OSError | WireError) -> JournalError:
    """The exception to raise if the record at *where* cannot be read because of *error*."""
    if isinstance(error, WireError) and error.reason == "unknown_version":
        return NewerJournalError(
            f"{where}: {error}: a later release of trimtab wrote it.  Start that release again, or a "
            f"later one; this release would decide without the memory in it"
        )
    if isinstance(error, OSError):
        return JournalError(f"{where}: {error}")
    return DamagedJournalError(
        f"{where}: {error}: it is damaged: restore the journal, or start with an empty one and a new checkpoint,"
        " after `trimtab accept-loss`"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The memory behind an entry, as JSON."""

    interval: int
    memory: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """An entry as it is written, and what the next one builds on once that is done."""

    #: In one piece.
    value: bytes
    #: None of them longer than Kafka's largest message.
    records: tuple[bytes, ...]
    #: It holds the memory whole.
    whole: bool
    remembered: Remembered


class EntryWriter:
    """Encodes entries as records, each based on the one before."""

    def __init__(self, *, whole_every_ms: int, base: Remembered | None) -> None:
        """*base*: the memory of the journal's last entry; None where there is none."""
        self._whole_every_ms, self._base = whole_every_ms, base

    def encode(self, entry: JournalEntry) -> Encoded:
        """The records of *entry*; ``wrote`` them before the next one is encoded.

        EntryTooLargeError where it has commands and is longer than LARGEST_ENTRY.
        """
        whole = value = encode_entry(entry)
        fields = read_object(whole)
        if not self._is_whole(entry.interval):
            value = min(whole, self._delta(fields), key=len)
        if entry.decision.commands and len(value) > LARGEST_ENTRY:
            raise EntryTooLargeError(
                f"interval {utc(entry.interval)}: {len(entry.decision.commands)} commands make a journal entry of"
                f" {len(value)} bytes, allowed: {LARGEST_ENTRY}"
            )
        records = (value,) if len(value) <= _LARGEST_RECORD else tuple(_parts(entry, value))
        remembered = Remembered(interval=entry.interval, memory=fields["memory"])
        return Encoded(value=value, records=records, whole=value is whole, remembered=remembered)

    def wrote(self, encoded: Encoded) -> None:
        """The next entry is a difference to this one."""
        self._base = encoded.remembered

    def _is_whole(self, interval: int) -> bool:
        """The first entry of every stretch of time, and the first one of all."""
        every = self._whole_every_ms
        return self._base is None or interval // every != self._base.interval // every

    def _delta(self, fields: Json) -> bytes:
        assert self._base is not None
        changes = {"base": self._base.interval, "changes": change(self._base.memory, fields["memory"])}
        delta: Json = {}
        for name, value in fields.items():
            delta |= changes if name == "memory" else {name: value}
        return to_json(delta | {"type": "decision_delta"})


def _parts(entry: JournalEntry, value: bytes) -> list[bytes]:
    text = value.decode()
    starts = range(0, len(text), _PART_CHARACTERS)
    return [
        encode(
            PartEntry(
                cluster=entry.cluster,
                interval=entry.interval,
                part=number,
                parts=len(starts),
                text=text[start : start + _PART_CHARACTERS],
            )
        )
        for number, start in enumerate(starts)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision in the journal.  Its memory is known where the entries that it builds on were read before."""

    interval: int
    #: It holds the memory whole: readers can begin here, and what lies before is needed no more.
    whole: bool
    #: The entry's JSON object, with the memory where that is known.
    fields: Json
    #: The interval of the first entry whose memory is wanted and was not read, also where entries in between build on
    #: it; None where the memory is known.
    missing: int | None = None

    @property
    def remembered(self) -> Remembered | None:
        """The memory behind this entry; None where it is not known."""
        return None if self.missing is not None else Remembered(interval=self.interval, memory=self.fields["memory"])

    @property
    def value(self) -> bytes:
        """The entry with its whole memory, as ``encode_entry`` gives it; JournalError where that is not known."""
        if self.missing is not None:
            raise DamagedJournalError(
                f"interval {utc(self.interval)} is stored as a difference to the entry of "
                f"{utc(self.missing)}, which is not in the journal: restore the journal, or start with "
                f"an empty one and a new checkpoint, after `trimtab"
                " accept-loss`"
            )
        return to_json(self.fields)

    @property
    def entry(self) -> JournalEntry:
        """The entry; JournalError where its memory is not known, or makes no sense with what it changes."""
        value = self.value
        try:
            return to_entry(validate(DecisionEntry, value))
        except WireError as error:
            raise unreadable(f"journal, the entry of {utc(self.interval)}", error) from error


class WholeRecord(NamedTuple):
    """A record that is no part, or is joined of parts; the memory of a decision may be changes only."""

    record: DecisionEntry | DeltaEntry | EpochEntry
    #: In one piece.
    value: bytes


class RecordReader:
    """Joins the parts of one cluster's records, oldest first, and looks at no memory."""

    def __init__(self, cluster: str | None) -> None:
        """*cluster*: None where all records are one cluster's."""
        self._cluster = cluster
        self._joiner = PartJoiner()

    def read(self, value: bytes) -> WholeRecord | None:
        """What the record *value* completes; None for a part that others follow, and for another cluster's record.

        WireError where it is no record of the journal.
        """
        fields = read_object(value)
        if self._cluster is not None and is_foreign(fields, self._cluster):
            return None
        record: JournalRecord = validate(model_for(fields, RECORDS), value)
        if isinstance(record, PartEntry):
            joined = self._joiner.joined(record)
            if joined is None:
                return None
            value, record = joined, parse_record(joined)
        return None if isinstance(record, PartEntry) else WholeRecord(record, value)


class EntryReader:
    """Reads one cluster's records, oldest first, from anywhere in the journal on."""

    def __init__(self, cluster: str | None) -> None:
        """*cluster*: None where all records are one cluster's."""
        self._records = RecordReader(cluster)
        #: The memory behind the last entry that was read; None where it is not known.
        self.remembered: Remembered | None = None
        #: See Decided.missing, of the last entry.
        self._missing: int | None = None

    def read(self, value: bytes) -> Decided | EpochEntry | None:
        """What the record *value* completes; None for a part that others follow, and for another cluster's record.

        WireError where it is no record of the journal.
        """
        whole = self._records.read(value)
        if whole is None:
            return None
        record = whole.record
        if isinstance(record, EpochEntry):
            return record
        decided = self._decided(record, read_object(whole.value))
        self.remembered = decided.remembered
        return decided

    def _decided(self, record: DecisionEntry | DeltaEntry, fields: Json) -> Decided:
        if isinstance(record, DecisionEntry):
            self._missing = None
            return Decided(interval=record.interval, whole=True, fields=fields)
        base = self.remembered
        if base is None or base.interval != record.base:
            # All entries up to the next whole one lack it: the first one says what is gone.
            self._missing = record.base if self._missing is None else self._missing
            return Decided(interval=record.interval, whole=False, fields=fields, missing=self._missing)
        whole: Json = {}
        for name, value in fields.items():
            if name != "changes":
                whole |= {"memory": apply(base.memory, record.changes)} if name == "base" else {name: value}
        return Decided(interval=record.interval, whole=False, fields=whole | {"type": "decision"})


def record_at(value: bytes, where: object) -> JournalRecord:
    """The record *value*, which lies at *where* in the journal.  JournalError that names the place."""
    try:
        return parse_record(value)
    except WireError as error:
        raise unreadable(f"journal, {where}", error) from error


class BackwardsReader:
    """Joins the parts of records, newest first, and looks at no memory."""

    def __init__(self, cluster: str | None = None) -> None:
        """*cluster*: None where all records are one cluster's."""
        self._cluster = cluster
        self._joiner = PartJoiner()

    def read(self, value: bytes, where: object) -> WholeRecord | None:
        """What the record *value* at *where* completes; None for a part that others precede, and for another cluster's.

        JournalError that names the place where it cannot be read.
        """
        record = record_at(value, where)
        if self._cluster is not None and record.cluster != self._cluster:
            return None
        if isinstance(record, PartEntry):
            try:
                joined = self._joiner.joined_backwards(record)
            except WireError as error:
                raise unreadable(f"journal, {where}", error) from error
            if joined is None:
                return None
            value, record = joined, record_at(joined, where)
        return None if isinstance(record, PartEntry) else WholeRecord(record, value)


class PartJoiner:
    """Joins the parts of entries.  Parts of an entry whose others were not read are left out."""

    def __init__(self) -> None:
        self._parts: list[PartEntry] = []
        self._characters = 0

    def joined(self, part: PartEntry) -> bytes | None:
        """The entry once *part*, its last, completes it."""
        self._take(part, begins=part.part == 0, follows=1)
        return self._joined(self._parts) if part.part == part.parts - 1 else None

    def joined_backwards(self, part: PartEntry) -> bytes | None:
        """The same where records are read newest first: once *part*, its first, completes it."""
        self._take(part, begins=part.part == part.parts - 1, follows=-1)
        return self._joined(self._parts[::-1]) if part.part == 0 else None

    def _take(self, part: PartEntry, *, begins: bool, follows: int) -> None:
        last = self._parts[-1] if self._parts else None
        if begins or last is None or (last.interval, last.part + follows) != (part.interval, part.part):
            self._parts, self._characters = [], 0
        self._characters += len(part.text)
        if self._characters > _LONGEST_JOINED or len(self._parts) >= _MOST_PARTS:
            parts, characters, self._parts = len(self._parts) + 1, self._characters, []
            raise WireError(
                "too_large",
                f"an entry of interval {part.interval} has {characters} characters in {parts} parts, "
                f"and is not complete; allowed: {_LONGEST_JOINED} in {_MOST_PARTS}",
            )
        self._parts.append(part)

    def _joined(self, parts: list[PartEntry]) -> bytes | None:
        self._parts = []
        return "".join(part.text for part in parts).encode() if len(parts) == parts[0].parts else None
