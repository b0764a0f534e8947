"""Load reports and recordings, read as a log that ends where they end: for commands that decide on recorded load.

Ticks that are missing are placed as ``trimtab ticks`` places them; those that are there count as they are.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.ticks.prepass import PlacedTick, place_ticks
from controller.model.errors import SettingsError, WireError
from controller.offline.recording import cluster_of, header_of, lines_of, nothing_of, recorded_files
from controller.wire.metrics import Partitions, RosterEntry, TickRecord, decode_metric
from controller.wire.readable import lasting
from controller.wire.rows import Located

_ONE_EACH = Partitions(metrics=1, results=1)
_DEFAULT_CLUSTER = "standalone"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLoad:
    """A recording as records of a log with one partition, ticked."""

    cluster: str
    records: tuple[Located, ...]
    #: Broker -> time of its last report or sweep, epoch ms.
    heard: dict[str, int]
    #: One line for each record that could not be used: where it lies, and why.
    refused: tuple[str, ...]


def read_load(sources: Sequence[Path], *, cluster: str | None, period_ms: int) -> RecordedLoad:
    """The load in *sources*, each of them a file, a folder of files, or a log in a folder.

    Records of other clusters are left out; without *cluster* the first record that names one says which it is.
    Raises SettingsError where nothing in *sources* says anything about a broker.
    """
    recorded = [line for source in sources for path in recorded_files(source) for line in lines_of(path)]
    where = ", ".join(map(str, sources))
    if not recorded:
        raise SettingsError(f"{where} is empty: give load reports, or a recording of sweeps, as JSON or JSON lines")
    cluster = cluster or next(filter(None, map(cluster_of, recorded)), _DEFAULT_CLUSTER)
    found, refused = [], []
    for line in recorded:
        try:
            record = decode_metric(line.value, cluster=cluster, period_ms=period_ms)
        except WireError as error:
            refused.append(f"{line.path}, line {line.line}: {error}")
            continue
        if record is not None:
            found.append(record)
    headers = [header_of(record) for record in found]
    heard: dict[str, int] = {}
    for header in headers:
        if header is not None:
            heard[header.broker] = max(header.time_ms, heard.get(header.broker, 0))
    if not heard:
        why = f"; the first of {len(refused)} that cannot be used is {refused[0]}" if refused else ""
        raise SettingsError(f"{nothing_of(where, cluster, recorded)}{why}")
    has_ticks = any(isinstance(record, TickRecord) for record in found)
    ticked = enumerate(_as_ticked(found) if has_ticks else _with_ticks(found, period_ms, cluster))
    records = tuple(Located(source=log, partition=0, offset=i, record=record) for i, (log, record) in ticked)
    return RecordedLoad(cluster=cluster, records=records, heard=heard, refused=tuple(refused))


def notes_on(recorded: RecordedLoad, brokers: Collection[str]) -> list[str]:
    """Notes on the load: one broker alone, brokers not among *brokers*, which count, and records that are not used."""
    at = max(recorded.heard.values())
    alone = [
        f"a decision needs the reports of all brokers, and this load has that of {broker} alone: give the other files"
        " with --load, too, or a folder that holds all"
        for broker in recorded.heard
        if len(recorded.heard) == 1
    ]
    silent = [
        f"{broker} is not counted: its last report is {lasting((at - time_ms) / 1000)} older than the newest"
        for broker, time_ms in sorted(recorded.heard.items())
        if broker not in brokers
    ]
    return [*alone, *silent, *(f"not used: {refused}" for refused in recorded.refused)]


def _as_ticked(found: Sequence[object]) -> Iterator[tuple[int, object]]:
    """*found* with the ticks that close intervals: those with a roster, whatever partitions there were."""
    for record in found:
        if not isinstance(record, TickRecord):
            yield METRICS, record
        elif record.roster is not None:
            yield from _tick(record.model_copy(update={"partitions": _ONE_EACH}))


def _with_ticks(found: Sequence[object], period_ms: int, cluster: str) -> Iterator[tuple[int, object]]:
    behind: dict[int, list[PlacedTick]] = {}
    for placed in place_ticks([header_of(record) for record in found], period_ms=period_ms):
        behind.setdefault(placed.after, []).append(placed)
    for i, record in enumerate(found):
        yield METRICS, record
        for placed in behind.get(i, ()):
            roster = tuple(RosterEntry(broker=broker, sweep_id=sweep) for broker, sweep in placed.roster)
            yield from _tick(TickRecord(cluster=cluster, interval=placed.interval, partitions=_ONE_EACH, roster=roster))


def _tick(tick: TickRecord) -> Iterator[tuple[int, object]]:
    yield METRICS, tick
    yield RESULTS, tick.model_copy(update={"roster": None})
