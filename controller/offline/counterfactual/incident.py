"""Makes an incident of a log: the load and the decisions around a time, and what was known before it.

And checks one: whether each decision, made again from it, has the bytes of the journal.
"""

import platform
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.recordings.incident_file import IncidentAbout, UnpackedIncident, write_incident
from controller.adapters.recordings.manifest import RecordedSettings
from controller.adapters.recordings.record_log import Extents, RecordedTopic, RecordLog
from controller.aggregate.state.states import States
from controller.engine import decide_interval
from controller.model.errors import TrimtabError
from controller.model.memory import Memory
from controller.model.records import BrokerState
from controller.offline.counterfactual.anonymised import anonymised
from controller.offline.counterfactual.reading import RecordedLoadLog
from controller.offline.counterfactual.replay_source import source_of_incident
from controller.offline.counterfactual.replayed_interval import with_near_detail
from controller.offline.counterfactual.start import known_at, start_before
from controller.offline.pseudonyms.anonymise import plain_versions
from controller.offline.record import FROM_THE_BEGINNING, AnonymiserOf, RecordRequest, record, requested_extents
from controller.offline.record_texts import FOLDED_TOPICS
from controller.wire.journal import encode_entry
from controller.wire.readable import utc

#: Results and the journal's entry come after the tick of an interval.
_AFTER: Final = 2


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
    start = start_before(log, span.since, settings.intervals, cluster, before=span.before)
    known = known_at(start, log, cluster)
    request = RecordRequest(
        from_ms=max(0, span.since - period_ms),
        to_ms=span.until + _AFTER * period_ms,
        first=FROM_THE_BEGINNING if known is None else known.first,
    )
    offsets: dict[RecordedTopic, Extents] = {
        topic: requested_extents(log, request, topic, settings) for topic in FOLDED_TOPICS.values()
    }
    if not any(extent.end > extent.first for extent in offsets["metrics"].values()):
        raise TrimtabError(f"{log.where} holds no load from {utc(span.since)} to {utc(span.until)}")
    versions = _versions(States[BrokerState].of(()) if start is None else start.state.brokers)
    otherwise: tuple[int, ...] = ()
    if anonymiser_of is not None:
        begin = () if known is None else known.records
        journal = requested_extents(log, request, "journal", settings)
        parts: dict[RecordedTopic, Extents] = {**offsets, "journal": journal}
        load = RecordedLoadLog(records=log, cluster=cluster, settings=settings.intervals, begin=begin, parts=parts)
        other = anonymiser_of(parts["metrics"], parts["journal"], begin)
        contents = anonymised(load, other)
        log, otherwise = contents.log, contents.otherwise
        known = None if known is None else replace(known, records=contents.begin)
        request = replace(request, offsets={**offsets, "journal": log.extents("journal")})
        settings, cluster = other.settings, other.cluster
        versions |= {"brokers": plain_versions(versions["brokers"])}
    with scratch_folder("trimtab-incident-") as made:
        folder = made / "recording"
        hidden = anonymiser_of is not None
        manifest = record(log, folder, request, settings, cluster, anonymised=hidden, known_before=lambda: known)
        about = IncidentAbout(
            cluster=manifest.cluster, around=span.around, anonymised=manifest.anonymised, versions=versions
        )
        write_incident(path, about, folder)
    return otherwise


def _versions(brokers: States[BrokerState]) -> dict[str, str]:
    versions = sorted({state.broker_version for state in brokers if state.broker_version})
    return {
        "trimtab": version("trimtab"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "brokers": ", ".join(versions)[:1000],
    }


def check_incident(incident: UnpackedIncident) -> CheckedIncident:
    """Make every decision of *incident* again, each from the recorded memory."""
    source = source_of_incident(incident)
    policy = source.policy(as_recorded=True)
    detail = policy.policy.detail_limits(policy.detail_share)
    same, different, unknown = list[int](), list[int](), list[int]()
    passed: Memory | None = None  # after intervals that the live run did not journal
    for each in source.log.intervals():
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
        cluster=source.log.cluster,
        around=max(decided, default=None),
        same=tuple(same),
        different=tuple(different),
        unknown=tuple(unknown),
    )
