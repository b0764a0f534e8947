"""Computes the ticks of a recording that has none, from its records alone.

In a live log the collector writes the ticks.  A recording of sweeps, or of the load reports that brokers write, gets
its ticks here, once.  From then on the recording itself says which sweeps count, and every replay decides the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

#: A broker without a load report for this long counts as gone.
#: Pulsar: loadBalancerReportUpdateMaxIntervalMinutes, and the minute it may take to notice.
SILENCE_MS: Final = 16 * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The fields that matter for ticks, of a sweep's chunk or of a load report (``sweep_id`` is "")."""

    broker: str
    #: T of a chunk, or lastUpdate of a report, epoch ms.
    time_ms: int
    sweep_id: str = ""
    chunk: int = 0
    chunks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTick:
    """A tick to be inserted after the record at index ``after``."""

    after: int
    #: T, epoch ms.
    interval: int
    #: (broker, sweepId or None), sorted by broker.
    roster: tuple[tuple[str, str | None], ...]


def place_ticks(headers: Sequence[Header | None], *, period_ms: int) -> list[PlacedTick]:
    """The ticks for the records with these *headers* (None: a record of another type), in the order of their intervals.

    If there are sweeps, only they count; otherwise the load reports do.
    """
    swept = any(header is not None and header.sweep_id for header in headers)
    return list((_by_sweeps if swept else _by_reports)(headers, period_ms))


def _by_sweeps(headers: Sequence[Header | None], period_ms: int) -> Iterator[PlacedTick]:
    """A tick after the record that completes the sweeps of T; the first complete sweep of each broker counts.

    T waits for incomplete sweeps until a record is two periods ahead.
    """
    chunks: dict[tuple[int, str, str], set[int]] = {}
    rosters: dict[int, dict[str, str | None]] = {}
    after: dict[int, int] = {}
    newest = 0
    for i, header in enumerate(headers):
        if header is None or not header.sweep_id:
            continue
        interval, broker = header.time_ms, header.broker
        newest = max(newest, interval)
        if interval <= newest - 2 * period_ms:
            continue
        roster = rosters.setdefault(interval, {})
        if roster.setdefault(broker, None) is not None:
            continue
        came = chunks.setdefault((interval, broker, header.sweep_id), set())
        came.add(header.chunk)
        if len(came) == header.chunks:
            roster[broker] = header.sweep_id
            after[interval] = i
        elif not any(roster.values()):
            after[interval] = i
    last = -1
    for interval, roster in sorted(rosters.items()):
        last = max(last, after[interval])
        yield PlacedTick(after=last, interval=interval, roster=tuple(sorted(roster.items())))


def _by_reports(headers: Sequence[Header | None], period_ms: int) -> Iterator[PlacedTick]:
    """A tick at every multiple of the period that the reports' times pass, with all brokers that reported recently."""
    last_report: dict[str, int] = {}
    due: int | None = None

    def ticks(until: int, after: int) -> Iterator[PlacedTick]:
        nonlocal due
        while due is not None and due < until:
            active = sorted(broker for broker, time_ms in last_report.items() if time_ms > due - SILENCE_MS)
            if not active:  # no broker has reported for long: no ticks in this gap
                due = until
                return
            yield PlacedTick(after=after, interval=due, roster=tuple((broker, None) for broker in active))
            due += period_ms

    for i, header in enumerate(headers):
        if header is None:
            continue
        interval = -(-header.time_ms // period_ms) * period_ms
        yield from ticks(interval, i - 1)
        due = due or interval
        last_report[header.broker] = max(header.time_ms, last_report.get(header.broker, 0))
    if due is not None:
        yield from ticks(due + period_ms, len(headers) - 1)
