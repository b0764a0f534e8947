"""An incident with other names: the decisions are made again on the load with other names, and journalled.

A decision depends on names where loads are equal, and sentences are full of them.  So its journal cannot be that of the
log with other names; it begins with what the controller remembered then, and goes on with what comes out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from controller.adapters.recordings.record_log import StoredRecord
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.journal import JournalEntry
from controller.model.memory import Memory
from controller.offline.counterfactual.reading import RecordedLoadLog
from controller.offline.counterfactual.replayed_interval import with_near_detail
from controller.offline.pseudonyms.anonymise import Anonymiser
from controller.offline.pseudonyms.log import AnonymisedLog
from controller.wire.journal import encode_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymisedIncident:
    """What an incident holds instead of a log."""

    log: AnonymisedLog
    begin: tuple[bytes, ...]
    #: T of decisions that move something else than those of the log.
    otherwise: tuple[int, ...]


def anonymised(load: RecordedLoadLog, other: Anonymiser) -> AnonymisedIncident:
    """What *load* holds, with the names of *other*."""
    begin = other.begin(load.begin)
    stored_entries = [_stored(number, each.interval, encode_entry(other.journal.entry(each)))
            for number, each in enumerate(load.decided())]  # fmt: skip
    renamed = replace(
        load, records=AnonymisedLog(load.records, other, stored_entries), cluster=other.cluster, begin=begin,
        parts={topic: part for topic, part in load.parts.items() if topic != "journal"},
    )  # fmt: skip
    entries, otherwise = list[JournalEntry](), list[int]()
    for was, again in _decided_again(renamed, other):
        entries.append(again)
        if was is not None and sorted(map(_move, was.decision.commands)) != sorted(map(_move, again.decision.commands)):
            otherwise.append(again.interval)
    journal = [_stored(number, each.interval, encode_entry(each)) for number, each in enumerate(entries)]
    return AnonymisedIncident(log=AnonymisedLog(load.records, other, journal), begin=begin, otherwise=tuple(otherwise))


def _decided_again(renamed: RecordedLoadLog, other: Anonymiser) -> Iterator[tuple[JournalEntry | None, JournalEntry]]:
    """For each interval the original entry and the replayed one; first the memory that they begin with."""
    settings, memory = other.settings, None
    policy = settings.policy(other.cluster)
    detail = policy.detail_limits(settings.intervals.detail_share)
    for each in renamed.intervals():
        if each.entry is None:
            continue
        if memory is None:
            memory = each.memory
            if memory is not None:
                yield None, _remembering(other.cluster, memory)
            elif each.entry.memory.samples == 1:
                memory = policy.initial_memory(settings.decisions.seed)
            else:
                continue  # what it began with is not in the journal
        again = decide_interval([with_near_detail(each.snapshot, detail)], memory, each.entry.controls, policy)
        memory = again.memory
        yield each.entry, again


def _remembering(cluster: str, memory: Memory) -> JournalEntry:
    """An entry that tells *memory* and decides nothing."""
    decision = Decision(interval=memory.last_interval or 0, summary="what was remembered when the incident begins")
    return JournalEntry(cluster=cluster, decision=decision, memory=memory, controls=Controls(mode="observe"))


def _move(command: Command) -> tuple[str, str, str, str, tuple[int, ...]]:
    return command.action, command.bundle, command.source, command.destination, command.boundaries


def _stored(offset: int, timestamp_ms: int, value: bytes) -> StoredRecord:
    return StoredRecord(partition=0, offset=offset, timestamp_ms=timestamp_ms, key=None, value=value)
