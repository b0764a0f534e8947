"""The end of a log, for people who ask what happened lately; no decision depends on it."""

from collections.abc import Iterator, Mapping

from controller.adapters.opened import log_system
from controller.model.errors import WireError
from controller.model.journal import JournalEntry
from controller.ports.systems import JournalTail
from controller.settings.trimtab_toml import Settings
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
    found: dict[str, Result] = {}
    for record in _results(settings, (b'"tick"', b'"result"')):
        if isinstance(record, Result):
            found.setdefault(record.id, record)
        elif record.interval < since:
            break
    return found


def last_entry(settings: Settings) -> JournalEntry | None:
    """The newest decision with the memory behind it; None before the first.  JournalError where it cannot be read."""
    return log_system(settings).tail().last_entry(settings.cluster.name)


def journal_tail(settings: Settings, most: int, about: str = "") -> JournalTail:
    """Of the newest decisions, *most* of them, those with the text *about* in them; a few older ones may be there, too.

    JournalError where an entry cannot be read.
    """
    return log_system(settings).tail().journal_tail(settings.cluster.name, most, about.encode())


def _results(settings: Settings, wanted: tuple[bytes, ...]) -> Iterator[Result | TickRecord]:
    for value in log_system(settings).tail().backwards("results", wanted):
        try:
            record = decode_result(value, cluster=settings.cluster.name, period_ms=1)
        except WireError:
            continue
        if record is not None:
            yield record
