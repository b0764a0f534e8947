"""The end of a log, for commands that show recent events; no decision depends on it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from controller.log.factory import log_system
from controller.log.tail import JournalTail, LogTail
from controller.model.errors import WireError
from controller.model.journal import JournalEntry
from controller.settings.trimtab_toml import Settings
from controller.wire.journal import DecisionEntry, DeltaEntry
from controller.wire.journal_records import BackwardsReader, Decided, EntryReader
from controller.wire.metrics import TickRecord
from controller.wire.results import Result, decode_result


def last_tick(settings: Settings) -> int | None:
    """The newest interval with a tick, epoch ms.  TrimtabError where the log cannot be read."""
    # Results are few and small, and every partition of both topics is ticked.
    for record in _results(settings, (b'"tick"',)):
        if isinstance(record, TickRecord):
            return record.interval
    return None


def recent_results(settings: Settings, since: int) -> Mapping[str, Result]:
    """Command id -> its result, of the results that came since the interval *since*, epoch ms."""
    results: dict[str, Result] = {}
    for record in _results(settings, (b'"tick"', b'"result"')):
        if isinstance(record, Result):
            results.setdefault(record.id, record)
        elif record.interval < since:
            break
    return results


def last_entry(settings: Settings) -> JournalEntry | None:
    """The newest decision with the memory behind it; None before the first, or where it lies too far back.

    JournalError where it cannot be read.
    """
    return log_system(settings).tail().last_entry()


def journal_tail(settings: Settings, limit: int, about: str = "") -> JournalTail:
    """Those of the newest *limit* decisions that contain the text *about*.  JournalError: one cannot be read."""
    return log_system(settings).tail().journal_tail(limit, about.encode())


class ReadEntry(NamedTuple):
    """An entry of the journal as it was read: its memory may be changes only."""

    record: DecisionEntry | DeltaEntry
    #: In one piece, also where it lies in parts.
    value: bytes


def entries_backwards(tail: LogTail, cluster: str) -> Iterator[ReadEntry]:
    """The decisions about *cluster* in the journal, the newest first.  JournalError where one cannot be read."""
    reader = BackwardsReader(cluster)
    for value in tail.journal_backwards():
        whole = reader.read(value, tail.where)
        if whole is not None and isinstance(whole.record, DecisionEntry | DeltaEntry):
            yield ReadEntry(whole.record, whole.value)


def decided_at(tail: LogTail, cluster: str, interval: int) -> tuple[JournalEntry | None, JournalEntry | None]:
    """The decision before *interval* (epoch ms), and that of *interval*, each with its memory.

    None where the journal has none, or no longer the memory behind it.  JournalError where an entry cannot be read.
    """
    values = []
    for record, value in entries_backwards(tail, cluster):
        if record.interval > interval:
            continue
        values.append(value)
        if record.interval < interval and isinstance(record, DecisionEntry):
            break
    reader = EntryReader(cluster)
    read = [decided for value in reversed(values) if isinstance(decided := reader.read(value), Decided)]
    of_now = read.pop() if read and read[-1].interval == interval else None
    return _entry(read[-1] if read else None), _entry(of_now)


def _entry(decided: Decided | None) -> JournalEntry | None:
    return None if decided is None or decided.missing is not None else decided.entry


def _results(settings: Settings, texts: tuple[bytes, ...]) -> Iterator[Result | TickRecord]:
    for value in log_system(settings).tail().backwards("results", texts):
        try:
            record = decode_result(value, cluster=settings.cluster.name, period_ms=1)
        except WireError:
            continue
        if record is not None:
            yield record
