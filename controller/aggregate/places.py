"""The positions of refused records, from which they are read again as dead letters."""

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """Part of one partition, or of one file, of the log: it begins and ends with a refused record."""

    #: METRICS or RESULTS, see controller.aggregate.columns.rows.
    source: int
    partition: int
    #: Its name; empty where the log has no files.
    file: str
    #: Offsets, or lines.
    first: int
    last: int


def spans(places: Iterable[tuple[int, int, str, int]]) -> list[Span]:
    """The spans that hold all of *places*: source, partition, file, offset.  One for each partition or file."""
    extents: dict[tuple[int, int, str], tuple[int, int]] = {}
    for source, partition, file, offset in places:
        where = (source, partition, file)
        first, last = extents.get(where, (offset, offset))
        extents[where] = (min(first, offset), max(last, offset))
    return [Span(*where, *ends) for where, ends in sorted(extents.items())]


def joined(parts: Iterable[Span]) -> list[Span]:
    """One span for each partition or file of *parts*."""
    return spans((part.source, part.partition, part.file, end) for part in parts for end in (part.first, part.last))
