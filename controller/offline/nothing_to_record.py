"""What to say where a log holds nothing of what a recording is to hold."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from controller.model.errors import TrimtabError
from controller.ports.records import Extent, Extents, RecordedTopic, RecordLog
from controller.wire.readable import utc

#: So many offsets are read for the last record of a partition: the very last ones may be marks of transactions.
_AT_THE_END: Final = 8


class NothingToRecordError(TrimtabError):
    """The log holds no record of what is to be copied."""


class WantedTime(NamedTuple):
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
    log: RecordLog, topics: Sequence[RecordedTopic], span: WantedTime, *, by_offsets: bool = False
) -> NothingToRecordError:
    """The error: the time, or offsets, that were asked for, the time that *log* has records of, and what to do."""
    wanted = counting(topics)
    asked = f"{log.where} holds no record of {', '.join(wanted)}{_worded(span)}"
    if by_offsets:
        asked = f"{asked} at the offsets of --offsets"
    held = [each for topic in wanted if (each := _held(log, topic)) is not None]
    if not held:
        return NothingToRecordError(f"{asked}, nor of another time: does a collector write to it?")
    first, last = min(times[0] for times in held), max(times[1] for times in held)
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
    return NothingToRecordError(f"{asked}; it holds those from {utc(first)} to {utc(last)}: {what}")


def _held(log: RecordLog, topic: RecordedTopic) -> tuple[int, int] | None:
    """When the first and the last record of *topic* were written, epoch ms; None where it has none."""
    there = {partition: at for partition, at in log.extents(topic).items() if at.first < at.end}
    first = [next(iter(log.read(topic, {each: at})), None) for each, at in there.items()]
    ends: Extents = {each: Extent(max(at.first, at.end - _AT_THE_END), at.end) for each, at in there.items()}
    times = [found.timestamp_ms for found in (*first, *log.read(topic, ends)) if found is not None]
    return (min(times), max(times)) if times else None


def _worded(span: WantedTime) -> str:
    if span.from_ms is None:
        return "" if span.to_ms is None else f" before {utc(span.to_ms)}"
    return f" from {utc(span.from_ms)} {'on' if span.to_ms is None else f'to {utc(span.to_ms)}'}"
