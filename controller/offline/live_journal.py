"""The journal of the run that is replayed: it has the controls, and the entries that the replay must reproduce."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from controller.adapters.recordings.record_log import StoredRecord
from controller.model.controls import Controls
from controller.model.errors import JournalError, WireError
from controller.model.journal import JournalEntry
from controller.wire.base import read_object, validate
from controller.wire.journal import ControlsRecord, to_controls
from controller.wire.journal_records import Decided, EntryReader, EntryWriter, PartEntry, PartJoiner, parse_record
from controller.wire.readable import utc

#: Of two values that differ, this many characters are shown.
_MAX_CHARS: Final = 120


class LiveEntry(NamedTuple):
    """An entry of the live run's journal."""

    interval: int
    #: In one piece, also where it lies in parts.
    value: bytes
    controls: Controls


class LiveJournal:
    """Reads the entries of one cluster, oldest first."""

    def __init__(self, records: Iterable[StoredRecord], *, cluster: str) -> None:
        self._entries = _entries(records, cluster)
        self._next = next(self._entries, None)
        #: Whether it has any entry.
        self.exists = self._next is not None

    def peek(self) -> LiveEntry | None:
        """The next entry, which stays the next one; None at the end."""
        return self._next

    def take(self) -> LiveEntry | None:
        """The next entry."""
        entry, self._next = self._next, next(self._entries, None)
        return entry

    def memory_before(self, interval: int) -> Decided | None:
        """The entry that a replay begins behind, whose first load is that of *interval*; what is before it is taken.

        That is the last entry before it; or, where the journal begins later, its first entry with the whole memory.
        None where the run began with no memory.
        """
        reader, last = EntryReader(None), None
        is_first = True
        while (entry := self.peek()) is not None and entry.interval < interval:
            last, is_first = _decided(reader, entry), False
            self.take()
        if last is not None and last.missing is None:
            return last
        if is_first and entry is not None and _is_beginning(_decided(EntryReader(None), entry)):
            return None
        while (entry := self.take()) is not None:
            decided = _decided(reader, entry)
            if decided.missing is None:
                return decided
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDifference:
    """The first entry in which a replay differs from the live run."""

    #: T, epoch ms.
    interval: int
    #: Where, and what both have there.
    what: str


@dataclass(slots=True, kw_only=True)
class JournalTally:
    """How many entries a replay wrote, and how many of them are the same in the live run's journal."""

    decided: int = 0
    compared: int = 0
    equal: int = 0
    commands: int = 0
    first: EntryDifference | None = None


class JournalComparison:
    """Compares each entry of a replay with the live run's."""

    def __init__(
        self,
        live: LiveJournal,
        *,
        begin: Decided | None,
        whole_every_ms: int,
        fallback_controls: Callable[[int], Controls],
    ) -> None:
        """*begin*: see LiveJournal.memory_before.  *fallback_controls*: of intervals that the live run lacks."""
        self._live, self._fallback_controls = live, fallback_controls
        base = None if begin is None else begin.remembered
        self._writer = EntryWriter(whole_every_ms=whole_every_ms, base=base)
        self.tally = JournalTally()

    def controls(self, interval: int) -> Controls:
        """The controls of *interval*: those of the live run's entry.

        An interval that was too old to act on may have no entry; it had the controls of the next one that has.
        """
        self._skip_before(interval)
        entry = self._live.peek()
        if entry is None:
            return self._fallback_controls(interval)
        return entry.controls if entry.interval == interval else entry.controls.timeless()

    def take(self, entry: JournalEntry) -> None:
        """Compare *entry*, whose controls were asked for."""
        tally, live = self.tally, self._live.peek()
        if live is not None and live.interval != entry.interval:
            if not live.controls.stale:
                self._differ(entry.interval, "the live run did not journal this interval")
            return  # too old to act on: the live run wrote no entry either, and the next one builds on the one before
        encoded = self._writer.encode(entry)
        self._writer.wrote(encoded)
        tally.decided += 1
        tally.commands += len(entry.decision.commands)
        if live is None:
            return
        self._live.take()
        tally.compared += 1
        if live.value == encoded.value:
            tally.equal += 1
        else:
            self._differ(entry.interval, difference(live.value, encoded.value))

    def _skip_before(self, interval: int) -> None:
        while (live := self._live.peek()) is not None and live.interval < interval:
            self.tally.compared += 1
            self._differ(live.interval, "the replay did not decide this interval")
            self._live.take()

    def _differ(self, interval: int, what: str) -> None:
        if self.tally.first is None:
            self.tally.first = EntryDifference(interval=interval, what=what)


def difference(live: bytes, replayed: bytes) -> str:
    """Where the entries *live* and *replayed* differ first, and what both have there."""
    ours, theirs = read_object(replayed), read_object(live)
    path, live_value, replayed_value = _first_difference((), theirs, ours)
    where = ".".join(path) or "its text"
    return f"{where}: live {_shortened(live_value)}, replayed {_shortened(replayed_value)}"


def _first_difference(path: tuple[str, ...], live: Any, replayed: Any) -> tuple[tuple[str, ...], Any, Any]:
    if isinstance(live, dict) and isinstance(replayed, dict):
        for key in [*live, *(key for key in replayed if key not in live)]:
            if live.get(key) != replayed.get(key) or (key in live) != (key in replayed):
                return _first_difference((*path, str(key)), live.get(key), replayed.get(key))
    if isinstance(live, list) and isinstance(replayed, list):
        for number, (a, b) in enumerate(zip(live, replayed, strict=False)):
            if a != b:
                return _first_difference((*path, str(number)), a, b)
        if len(live) != len(replayed):
            return path, f"{len(live)} of them", f"{len(replayed)} of them"
    return path, live, replayed


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}..."


def _entries(records: Iterable[StoredRecord], cluster: str) -> Iterator[LiveEntry]:
    """The decisions about *cluster*, parts joined.  JournalError naming the offset of what cannot be read."""
    joiner = PartJoiner()
    for record in records:
        try:
            value, fields = record.value, read_object(record.value)
            if fields.get("cluster") != cluster:
                continue
            if fields.get("type") == "part":
                part = parse_record(value)
                joined = joiner.joined(part) if isinstance(part, PartEntry) else None
                if joined is None:
                    continue
                value, fields = joined, read_object(joined)
            if fields.get("type") not in ("decision", "decision_delta"):
                continue
            controls = validate(ControlsRecord, to_json(fields["controls"]))
            yield LiveEntry(int(fields["interval"]), value, to_controls(controls))
        except (WireError, KeyError, ValueError, TypeError) as error:
            raise JournalError(f"journal, offset {record.offset}: {error}") from error


def _decided(reader: EntryReader, entry: LiveEntry) -> Decided:
    try:
        decided = reader.read(entry.value)
    except WireError as error:
        raise JournalError(f"journal, interval {utc(entry.interval)}: {error}") from error
    assert isinstance(decided, Decided), "only decisions are read"
    return decided


def _is_beginning(decided: Decided) -> bool:
    return decided.missing is None and decided.entry.memory.samples == 1
