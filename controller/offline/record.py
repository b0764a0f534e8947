"""Copies a log into a recording: the same records, byte for byte, or with their names replaced."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from controller.adapters.long_work import long_work, pieces
from controller.adapters.recordings.manifest import (
    LARGEST_FILE,
    KnownBeginning,
    Manifest,
    RecordedExtent,
    RecordedSettings,
    RecordingError,
)
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import (
    RECORDED_TOPICS,
    Extent,
    Extents,
    RecordedTopic,
    RecordLog,
    offsets_in,
)
from controller.adapters.recordings.writing import RecordingWriter
from controller.model.errors import SettingsError, TrimtabError
from controller.offline.pseudonyms.anonymise import ANONYMISED, Anonymiser
from controller.offline.record_texts import FOLDED_TOPICS
from controller.wire.readable import utc

#: So many offsets are read for the last record of a partition: the very last ones may be marks of transactions.
_AT_THE_END: Final = 8


class NothingToRecordError(TrimtabError):
    """The log holds no record that the request would copy."""


class RequestedTime(NamedTuple):
    """A stretch of time, epoch ms; None: from the first record on, or up to the present end."""

    from_ms: int | None
    to_ms: int | None


def counting(topics: Sequence[RecordedTopic]) -> tuple[RecordedTopic, ...]:
    """Those of *topics* of which one must have a record.

    Where metrics or results are asked for, an entry of the journal alone is nothing that can be decided again, and
    it may be from an earlier time.
    """
    return tuple(each for each in topics if each != "journal" or not {"metrics", "results"} & {*topics})


def nothing_in(
    log: RecordLog, topics: Sequence[RecordedTopic], span: RequestedTime, *, by_offsets: bool = False
) -> NothingToRecordError:
    """The error: the time, or offsets, that were asked for, the time that *log* has records of, and what to do."""
    names = counting(topics)
    message = f"{log.where} holds no record of {', '.join(names)}{_worded(span)}"
    if by_offsets:
        message = f"{message} at the offsets of --offsets"
    spans = [each for topic in names if (each := _time_span(log, topic)) is not None]
    if not spans:
        return NothingToRecordError(f"{message}, nor of another time: does a collector write to it?")
    first, last = min(times[0] for times in spans), max(times[1] for times in spans)
    if span.from_ms is not None and span.to_ms is None:
        # A folder counts records as of the interval that their file begins with, and reads them as of its end.
        last = max(first, min(last, span.from_ms - 1))
    what = "give other offsets"
    if span.from_ms is not None and last < span.from_ms:
        what = "give an earlier --from"
    elif span.to_ms is not None and span.to_ms <= first:
        what = "give a later --to"
    elif any(each is not None for each in span):
        what = "give a longer time, --from and --to"
    return NothingToRecordError(f"{message}; it holds those from {utc(first)} to {utc(last)}: {what}")


def _time_span(log: RecordLog, topic: RecordedTopic) -> tuple[int, int] | None:
    """When the first and the last record of *topic* were written, epoch ms; None where it has none."""
    there = {partition: at for partition, at in log.extents(topic).items() if at.first < at.end}
    first = [next(iter(log.read(topic, {each: at})), None) for each, at in there.items()]
    ends: Extents = {each: Extent(max(at.first, at.end - _AT_THE_END), at.end) for each, at in there.items()}
    times = [record_found.timestamp_ms for record_found in (*first, *log.read(topic, ends)) if record_found is not None]
    return (min(times), max(times)) if times else None


def _worded(span: RequestedTime) -> str:
    if span.from_ms is None:
        return "" if span.to_ms is None else f" before {utc(span.to_ms)}"
    return f" from {utc(span.from_ms)} {'on' if span.to_ms is None else f'to {utc(span.to_ms)}'}"


#: Makes what replaces names, of the part of the metrics topic that is copied, of the journal of that time, and of what
#: was known before.
AnonymiserOf: TypeAlias = Callable[[Extents, Extents, Sequence[bytes]], Anonymiser]
#: Number of records that are copied between two reports of progress.
_PROGRESS_EVERY: Final = 500
#: ``first`` of a recording that begins with the log.
FROM_THE_BEGINNING: Final[Mapping[RecordedTopic, Mapping[int, int]]] = {topic: {} for topic in FOLDED_TOPICS.values()}
_AGAIN: Final = "delete it and record again"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """What to copy."""

    topics: Sequence[RecordedTopic] = RECORDED_TOPICS
    #: The stretch of time, epoch ms; None: from the first record on, or up to the present end.
    from_ms: int | None = None
    to_ms: int | None = None
    #: Topic -> partition -> offsets, instead of what the time says; other partitions of such a topic are left out.
    offsets: Mapping[RecordedTopic, Extents] = field(default_factory=dict)
    #: Topic -> partition -> the first offset, instead of what *from_ms* says.
    first: Mapping[RecordedTopic, Mapping[int, int]] = field(default_factory=dict)
    #: As the user asked for it: a recording that was broken off is continued if this is the same.
    options: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBefore:
    """What a controller knew when a recording begins."""

    #: Records of metrics that restore the known state: averages, states of namespaces and brokers.
    records: tuple[bytes, ...]
    #: Topic -> partition -> the first offset that they do not tell of.
    first: Mapping[RecordedTopic, Mapping[int, int]]
    #: The number of intervals that they cover, and T of the first and the last one, epoch ms.
    intervals: int
    first_ms: int
    last_ms: int
    #: Namespaces with bundles whose state is not known.
    undescribed: int


def record(
    log: RecordLog,
    folder: Path,
    request: RecordRequest,
    settings: RecordedSettings,
    cluster: str,
    *,
    anonymiser_of: AnonymiserOf | None = None,
    anonymised: bool = False,
    known_before: Callable[[], KnownBefore | None] | None = None,
    writer: RecordingWriter | None = None,
) -> Manifest:
    """Copy the part of *log* that *request* names into *folder*, or continue; returns the manifest.

    *settings* are kept in the manifest.  With *anonymiser_of* names are replaced, and only metrics and results are
    copied; then no true name lies in the folder at any time, if *request* asks without one.  *anonymised*: *log*,
    *settings* and *cluster* have other names already.  *known_before* reads what was known when it begins, which is
    kept in it; None where the log begins later, so that it begins with the log.  *writer*: of *folder*.
    NothingToRecordError where there is nothing to copy, which leaves nothing on the disk; TrimtabError where the log
    lost records since the recording was begun.
    """
    with writer or RecordingWriter(folder) as out:
        if anonymiser_of is not None:
            request = replace(request, topics=tuple(topic for topic in request.topics if topic in ANONYMISED))
        anonymised = anonymised or _is_anonymised(log)
        if out.continued_request is None:
            _refuse_nothing(log, request)
        else:
            _refuse_another(folder, out.continued_request, request)
        # All names count for the pseudonyms, so a recording without names that goes on reads them again.
        known = other = None
        if known_before is not None and (out.continued_request is None or anonymiser_of is not None):
            known = known_before()
            request = replace(request, first=FROM_THE_BEGINNING if known is None else known.first)
        manifest = _new_manifest(log, request, settings, cluster) if out.continued_request is None else out.manifest
        begin = () if known is None else known.records
        if anonymiser_of is not None:
            journal = requested_extents(log, request, "journal", settings)
            other = anonymiser_of(_whole(manifest, "metrics"), journal, begin)
            begin = other.begin(begin)
        content = b"".join(each + b"\n" for each in begin)
        if out.continued_request is None:
            hidden = manifest.model_copy(update={"anonymised": anonymised})
            manifest = hidden if other is None else other.manifest(manifest)
            manifest = manifest.model_copy(update={"known_before": _about(known, content)})
            out.begin(request.options, manifest, content, {topic: log.counted_from(topic) for topic in manifest.topics})
        elif other is not None and manifest.known_before != _about(known, content):
            raise TrimtabError(f"{log.where}: what was known before is gone since the recording was begun: {_AGAIN}")
        _copy(log, request, out, other)
        return out.finish()


def _refuse_another(folder: Path, options_before: str, request: RecordRequest) -> None:
    """Raise SettingsError where the recording that was *options_before* in *folder* was asked for otherwise."""
    if options_before != request.options:
        raise SettingsError(
            f"{folder} has the beginning of another recording, made with {options_before or 'other options'}: give the"
            " same options to go on, or choose another folder with -o"
        )


def _refuse_nothing(log: RecordLog, request: RecordRequest) -> None:
    """Raise NothingToRecordError where *log* has nothing that is *request*."""
    if not any(offsets_in(_from(log, request, topic, request.from_ms)) for topic in counting(request.topics)):
        raise _nothing(log, request)


def _nothing(log: RecordLog, request: RecordRequest) -> NothingToRecordError:
    return nothing_in(log, request.topics, _span(request), by_offsets=bool(request.offsets))


def _copy(log: RecordLog, request: RecordRequest, out: RecordingWriter, other: Anonymiser | None) -> None:
    """Copy what is left of it, with the names of *other*."""
    remaining = {topic: _remaining(log, out, topic) for topic in out.manifest.topics}
    sizes = [log.size(topic, extents) for topic, extents in remaining.items()]
    total, done = sum(each or 0 for each in sizes) if None not in sizes else 0, 0
    with long_work("recording, records", total, pieces) as tell:
        for topic, extents in remaining.items():
            for stored in log.read(topic, extents) if extents else ():
                out.add(topic, stored if other is None else other.rewrite(topic, stored))
                done += 1
                if done % _PROGRESS_EVERY == 0:
                    tell(done)
            out.end_topic(topic)
    if not {file.topic for file in out.manifest.files} & {*counting(request.topics)}:  # only marks of transactions
        out.discard()
        raise _nothing(log, request)


def _span(request: RecordRequest) -> RequestedTime:
    return RequestedTime(request.from_ms, request.to_ms)


def _is_anonymised(log: RecordLog) -> bool:
    return isinstance(log, Recording) and log.manifest.anonymised


def _about(known: KnownBefore | None, content: bytes) -> KnownBeginning | None:
    """What the manifest says of what was *known*, which is stored as *content*."""
    if known is None:
        return None
    if len(content) > LARGEST_FILE:
        raise RecordingError(
            f"what was known before has {len(content)} bytes, allowed: {LARGEST_FILE}: record without it, --before 0"
        )
    return KnownBeginning(
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        intervals=known.intervals,
        first_ms=known.first_ms,
        last_ms=known.last_ms,
        undescribed=known.undescribed,
    )


def _whole(manifest: Manifest, topic: RecordedTopic) -> Extents:
    return {each.partition: Extent(each.first, each.end) for each in manifest.topics.get(topic, ())}


def _new_manifest(log: RecordLog, request: RecordRequest, settings: RecordedSettings, cluster: str) -> Manifest:
    topics = {topic: requested_extents(log, request, topic, settings) for topic in request.topics}
    return Manifest(
        cluster=cluster,
        made_by=f"trimtab {version('trimtab')}",
        from_ms=request.from_ms,
        to_ms=request.to_ms,
        settings=settings,
        topics={topic: _listed(extents) for topic, extents in topics.items()},
        files=(),
    )


def _listed(extents: Extents) -> tuple[RecordedExtent, ...]:
    return tuple(
        RecordedExtent(partition=each, first=extents[each].first, end=extents[each].end, records=0)
        for each in sorted(extents)
    )


def requested_extents(
    log: RecordLog, request: RecordRequest, topic: RecordedTopic, settings: RecordedSettings
) -> Extents:
    """What of *topic* is copied, or read: what is there, within the requested offsets or time."""
    begin = request.from_ms
    if begin is not None and topic == "journal":
        # Entries hold what changed in the memory: back to one that holds it whole.
        begin = max(0, begin - (settings.whole_every_intervals + 1) * settings.intervals.period_ms)
    return _from(log, request, topic, begin)


def _from(log: RecordLog, request: RecordRequest, topic: RecordedTopic, begin: int | None) -> Extents:
    """The part of *topic* that exists, within the requested offsets, or from the time *begin* to the requested end."""
    there = log.extents(topic)
    if topic in request.offsets:
        offsets = request.offsets[topic]
        return {each: _within(there[each], at.first, at.end) for each, at in offsets.items() if each in there}
    first = request.first[topic] if topic in request.first else {} if begin is None else log.since(topic, begin)
    end = {} if request.to_ms is None else log.since(topic, request.to_ms)
    return {each: _within(at, first.get(each, at.first), end.get(each, at.end)) for each, at in there.items()}


def _within(there: Extent, first: int, end: int) -> Extent:
    first = min(max(there.first, first), there.end)
    return Extent(first, max(first, min(there.end, end)))


def _remaining(log: RecordLog, out: RecordingWriter, topic: RecordedTopic) -> Extents:
    """What of *topic* is still to be copied, all of which the log must still have."""
    remaining = out.remaining(topic)
    there = log.extents(topic) if remaining else {}
    moved = log.counted_from(topic) != out.counted_from(topic)
    for partition, extent in remaining.items():
        known = there.get(partition, Extent(0, 0))
        if moved or known.first > extent.first or known.end < extent.end:
            raise TrimtabError(
                f"{log.where}: records of {topic}, partition {partition}, from offset {extent.first} on are gone since"
                f" the recording was begun: {_AGAIN}"
            )
    return remaining
