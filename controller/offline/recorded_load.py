"""Load reports, logs in a folder and recordings, as far as they end: for commands that decide on recorded load.

Ticks that are missing are placed as ``trimtab ticks`` places them; those that are there count as they are.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.adapters.long_work import long_work, pieces
from controller.adapters.recordings.reading import Recording, is_recording
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.ticks.prepass import PlacedTick, place_ticks
from controller.aggregate.view import known_brokers
from controller.model.errors import SettingsError, WireError
from controller.offline.recording import (
    RecordedFiles,
    RefusedRecords,
    cluster_of,
    header_of,
    nothing_of,
    recorded_files,
    version_in,
)
from controller.offline.replay import LogReplay
from controller.wire.metrics import (
    BrokerLoadRecord,
    BrokerStateRecord,
    Partitions,
    RosterEntry,
    TickRecord,
    decode_metric,
)
from controller.wire.readable import counted, lasting
from controller.wire.rows import Located, rows_from_records

_ONE_EACH = Partitions(metrics=1, results=1)
_DEFAULT_CLUSTER = "standalone"
#: Nothing is forgotten on the way to the last interval.
_NEVER_MS: Final = 1 << 60
#: Maximum number of unusable records that are reported one by one.
_MAX_REFUSED_SHOWN: Final = 100
#: Keep every topic: one load fits in memory.
_ALL: Final = DetailLimits(topics=0, sessions=0, msg_rate=0, throughput=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLoad:
    """The load of the last interval that was recorded."""

    cluster: str
    #: Length of an interval.
    period_ms: int
    last: Snapshot
    #: Broker -> time of its last report or sweep, epoch ms.
    heard: dict[str, int]
    #: One line for each record that could not be used: where it lies, and why.  Of many, how many more there are.
    refused: tuple[str, ...]


def read_load(sources: Sequence[Path], *, cluster: str | None, period_ms: int) -> RecordedLoad:
    """The load in *sources*, each of them a file, a folder of files, or a log in a folder; or in one recording.

    Records of other clusters are left out; without *cluster* the first record that names one says which it is.
    *period_ms*: the length of an interval; a recording has its own.  Raises SettingsError where nothing in *sources*
    says anything about a broker, and where no interval is closed; RecordingError.
    """
    if len(sources) == 1 and is_recording(sources[0]):
        return _read_recording(Recording(sources[0]), cluster)
    recorded = RecordedFiles(path for source in sources for path in recorded_files(source))
    where = ", ".join(map(str, sources))
    if next(iter(recorded), None) is None:
        raise SettingsError(f"{where} is empty: give load reports, or a recording of sweeps, as JSON or JSON lines")
    rows, refused, versions = list[Any](), RefusedRecords(_MAX_REFUSED_SHOWN), dict[str, str]()
    for line in recorded:
        # Before the first record that names a cluster none can be another's.
        cluster = cluster or cluster_of(line)
        try:
            record = decode_metric(line.value, cluster=cluster or _DEFAULT_CLUSTER, period_ms=period_ms)
        except WireError as error:
            refused.add(line, error)
            continue
        if record is not None:
            rows.append(record)
        if isinstance(record, BrokerLoadRecord):
            versions[record.broker_name] = version_in(line.value)
    cluster = cluster or _DEFAULT_CLUSTER
    rows[:0] = _states(versions, cluster)
    headers = [header_of(record) for record in rows]
    last_report: dict[str, int] = {}
    for header in headers:
        if header is not None:
            last_report[header.broker] = max(header.time_ms, last_report.get(header.broker, 0))
    if not last_report:
        why = f"; the first of {refused.number} that cannot be used is {refused.lines[0]}" if refused.number else ""
        raise SettingsError(f"{nothing_of(where, cluster, recorded)}{why}")
    has_ticks = any(isinstance(record, TickRecord) for record in rows)
    ticked = enumerate(_as_ticked(rows) if has_ticks else _with_ticks(rows, period_ms, cluster))
    records = tuple(Located(source=log, partition=0, offset=i, record=record) for i, (log, record) in ticked)
    options = FoldOptions(bundle_ttl_ms=_NEVER_MS, detail=_ALL)
    _, snapshots = fold(ShardState(shard=0, shards=1), rows_from_records(records, _ALL), options)
    notes = (*refused.lines, *_others(refused.number - len(refused.lines)))
    return RecordedLoad(cluster=cluster, period_ms=period_ms, last=_last(snapshots), heard=last_report, refused=notes)


def _states(versions: Mapping[str, str], cluster: str) -> list[BrokerStateRecord]:
    """Broker -> what its load report says of its version, as states; those that are recorded are later, and count."""
    return [
        BrokerStateRecord(cluster=cluster, broker=broker, version=0, broker_version_string=text)
        for broker, text in versions.items()
        if text
    ]


def _others(number: int) -> list[str]:
    return [f"{counted(number, 'record')} more"] if number else []


def _read_recording(recording: Recording, cluster: str | None) -> RecordedLoad:
    """The load at the end of *recording*, as its controller had it."""
    manifest = recording.manifest
    if cluster not in (None, manifest.cluster):
        raise SettingsError(
            f"{recording.where} is a recording of cluster {manifest.cluster!r}, not {cluster!r}: leave out --cluster"
        )
    policy = manifest.settings.policy(manifest.cluster)
    replay = LogReplay(recording, manifest.settings, policy, recording.begin)
    with long_work("reading the recording, records", replay.size(), pieces) as tell:
        newest = deque(replay.snapshots(tell), maxlen=1)
    last = _last(newest)
    refused = (counted(replay.refused, "record"),) if replay.refused else ()
    return RecordedLoad(
        cluster=manifest.cluster,
        period_ms=policy.period_ms,
        last=last,
        heard=dict.fromkeys(known_brokers(last, [last])[0], last.interval),
        refused=refused,
    )


def _last(snapshots: Sequence[Snapshot]) -> Snapshot:
    if not snapshots:
        raise SettingsError("the load closes no interval: a tick, or reports of one, are needed")
    return snapshots[-1]


def notes_on(recorded: RecordedLoad, brokers: Collection[str]) -> list[str]:
    """Notes on the load: one broker alone, brokers not among *brokers*, which count, and records that are not used."""
    at = max(recorded.heard.values(), default=0)
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


def _as_ticked(rows: Sequence[object]) -> Iterator[tuple[int, object]]:
    """*rows* with the ticks that close intervals: those with a roster, whatever partitions there were."""
    for record in rows:
        if not isinstance(record, TickRecord):
            yield METRICS, record
        elif record.roster is not None:
            yield from _tick(record.model_copy(update={"partitions": _ONE_EACH}))


def _with_ticks(rows: Sequence[object], period_ms: int, cluster: str) -> Iterator[tuple[int, object]]:
    behind: dict[int, list[PlacedTick]] = {}
    for placed in place_ticks([header_of(record) for record in rows], period_ms=period_ms):
        behind.setdefault(placed.after, []).append(placed)
    for i, record in enumerate(rows):
        yield METRICS, record
        for placed in behind.get(i, ()):
            roster = tuple(RosterEntry(broker=broker, sweep_id=sweep) for broker, sweep in placed.roster)
            yield from _tick(TickRecord(cluster=cluster, interval=placed.interval, partitions=_ONE_EACH, roster=roster))


def _tick(tick: TickRecord) -> Iterator[tuple[int, object]]:
    yield METRICS, tick
    yield RESULTS, tick.model_copy(update={"roster": None})
