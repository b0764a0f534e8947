"""Makes an incident of a log: the load and the decisions around a time, and what was known before it.

And checks one: whether each decision, made again from it, has the bytes of the journal.
"""

import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from controller.adapters.recordings.incident_file import IncidentAbout, UnpackedIncident, write_incident
from controller.adapters.recordings.manifest import RecordedSettings
from controller.aggregate.rows import METRICS, RESULTS
from controller.aggregate.shard_state import ShardState
from controller.aggregate.states import States
from controller.engine import decide_interval
from controller.model.errors import TrimtabError
from controller.model.memory import Memory
from controller.model.records import BrokerState
from controller.offline.counterfactual.anonymised import anonymised
from controller.offline.counterfactual.known_before import known_in
from controller.offline.counterfactual.opened import opened_incident
from controller.offline.counterfactual.reading import FoldedBatch, RecordedLoadLog
from controller.offline.counterfactual.shown import with_near_detail
from controller.offline.pseudonyms.anonymise import plain_versions
from controller.offline.record import AnonymiserOf, Wanted, record, wanted_extents
from controller.ports.records import Extent, Extents, RecordedTopic, RecordLog
from controller.wire.journal import encode_entry
from controller.wire.metrics import TickRecord
from controller.wire.readable import utc

#: Results and the journal's entry come after the tick of an interval.
_AFTER: Final = 2
_TOPIC_OF: Final[dict[int, RecordedTopic]] = {METRICS: "metrics", RESULTS: "results"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSpan:
    """Which intervals an incident holds, epoch ms; and how many before them are read for averages."""

    around: int
    since: int
    until: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedIncident:
    """Which decisions of an incident come out as they are in the journal, byte for byte."""

    cluster: str
    #: The last decision up to the time that the incident is about, epoch ms; None where there is none.
    around: int | None
    #: T of decisions that have the same bytes, and of those that have not.
    same: tuple[int, ...]
    different: tuple[int, ...]
    #: T of decisions that cannot be made again: the load, or the memory that they began with, is missing.
    unknown: tuple[int, ...]

    @property
    def reproduced(self) -> bool:
        """Whether the decision that it is about comes out the same."""
        return self.around in self.same


def make_incident(
    log: RecordLog,
    path: Path,
    span: IncidentSpan,
    settings: RecordedSettings,
    cluster: str,
    anonymiser_of: AnonymiserOf | None = None,
) -> tuple[int, ...]:
    """Write the incident in *span* of *log* to the new file *path*.

    With *anonymiser_of* names are replaced, and its journal has the decisions made again on the load with other names.
    Returns T of those that come out otherwise then.  TrimtabError where the log has no load in the span.
    """
    period_ms = settings.intervals.period_ms
    start = _start(log, span, settings, cluster)
    begin = () if start is None else tuple(known_in(start.state, cluster))
    end_ms = span.until + _AFTER * period_ms
    topics: tuple[RecordedTopic, ...] = ("metrics", "results")
    begin_ms = max(0, span.since - period_ms)
    offsets = {topic: _extents(log, topic, start, begin_ms, end_ms) for topic in topics}
    if not any(extent.end > extent.first for extent in offsets["metrics"].values()):
        raise TrimtabError(f"{log.where} holds no load from {utc(span.since)} to {utc(span.until)}")
    wanted = Wanted(from_ms=begin_ms, to_ms=end_ms, offsets=offsets)
    versions = _versions(States[BrokerState].of(()) if start is None else start.state.brokers)
    otherwise: tuple[int, ...] = ()
    if anonymiser_of is not None:
        parts = {**offsets, "journal": wanted_extents(log, wanted, "journal", settings)}
        load = RecordedLoadLog(records=log, cluster=cluster, settings=settings.intervals, begin=begin, parts=parts)
        other = anonymiser_of(parts["metrics"], parts["journal"])
        found = anonymised(load, other)
        log, begin, otherwise = found.log, found.begin, found.otherwise
        wanted = replace(wanted, offsets={**offsets, "journal": log.extents("journal")})
        settings, cluster = other.settings, other.cluster
        versions |= {"brokers": plain_versions(versions["brokers"])}
    with TemporaryDirectory(prefix="trimtab-incident-") as made:
        folder = Path(made) / "recording"
        manifest = record(log, folder, wanted, settings, cluster, anonymised=anonymiser_of is not None)
        about = IncidentAbout(
            cluster=manifest.cluster, around=span.around, anonymised=manifest.anonymised, versions=versions
        )
        write_incident(path, about, b"".join(each + b"\n" for each in begin), folder)
    return otherwise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Start:
    """Where an incident begins: behind the ticks of an interval."""

    state: ShardState
    #: Topic -> partition -> the first offset of the incident.
    first: dict[RecordedTopic, dict[int, int]]


def _start(log: RecordLog, span: IncidentSpan, settings: RecordedSettings, cluster: str) -> _Start | None:
    """The state behind the last interval before the span; None where the log begins within it."""
    since = max(0, span.since - (span.before + 1) * settings.intervals.period_ms)
    topics: tuple[RecordedTopic, ...] = ("metrics", "results")
    parts = {topic: _extents_since(log, topic, since) for topic in topics}
    load = RecordedLoadLog(records=log, cluster=cluster, settings=settings.intervals, parts=parts)
    state, last, ticks = None, -1, list[tuple[RecordedTopic, int, int, int]]()
    for step in load.folded():
        ticks += _ticks(step)
        if any(snapshot.interval >= span.since for snapshot in step.closed):
            break
        if step.closed:
            state, last = step.state, step.closed[-1].interval
    if state is None:
        return None
    first: dict[RecordedTopic, dict[int, int]] = {}
    for topic, partition, offset, interval in ticks:
        if interval <= last:
            first.setdefault(topic, {})[partition] = offset + 1
    return _Start(state=state, first=first)


def _ticks(step: FoldedBatch) -> Iterator[tuple[RecordedTopic, int, int, int]]:
    for located in step.records:
        if isinstance(located.record, TickRecord):
            yield _TOPIC_OF[located.source], located.partition, located.offset, located.record.interval


def _extents_since(log: RecordLog, topic: RecordedTopic, time_ms: int) -> Extents:
    since = log.since(topic, time_ms)
    return {each: Extent(since.get(each, at.first), at.end) for each, at in log.extents(topic).items()}


def _extents(log: RecordLog, topic: RecordedTopic, start: _Start | None, begin_ms: int, end_ms: int) -> Extents:
    """What an incident holds of *topic*; without *start* what the log took from *begin_ms* on."""
    ends = log.since(topic, end_ms)
    firsts = log.since(topic, begin_ms) if start is None else start.first.get(topic, {})
    found = {}
    for partition, there in log.extents(topic).items():
        first = min(max(there.first, firsts.get(partition, there.first)), there.end)
        found[partition] = Extent(first, max(first, min(there.end, ends.get(partition, there.end))))
    return found


def _versions(brokers: States[BrokerState]) -> dict[str, str]:
    told = sorted({state.broker_version for state in brokers if state.broker_version})
    return {
        "trimtab": version("trimtab"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "brokers": ", ".join(told)[:1000],
    }


def check_incident(incident: UnpackedIncident) -> CheckedIncident:
    """Make every decision of *incident* again, each from the recorded memory."""
    opened = opened_incident(incident)
    policy = opened.policy(as_recorded=True)
    detail = policy.policy.detail_limits(policy.detail_share)
    same, different, unknown = list[int](), list[int](), list[int]()
    passed: Memory | None = None  # after intervals that the live run did not journal
    for each in opened.log.intervals():
        entry, memory = each.entry, passed or each.memory
        if memory is None and entry is not None and entry.memory.samples == 1:
            memory = policy.policy.initial_memory(policy.seed)
        controls = each.passed if entry is None else entry.controls
        again = None
        if memory is not None and controls is not None:
            again = decide_interval([with_near_detail(each.snapshot, detail)], memory, controls, policy.policy)
        passed = again.memory if again is not None and entry is None else None
        if entry is not None and again is None:
            unknown.append(each.interval)
        elif entry is not None and again is not None:
            (same if encode_entry(again) == encode_entry(entry) else different).append(each.interval)
    decided = [interval for interval in (*same, *different, *unknown) if interval <= incident.about.around]
    return CheckedIncident(
        cluster=opened.log.cluster,
        around=max(decided, default=None),
        same=tuple(same),
        different=tuple(different),
        unknown=tuple(unknown),
    )
