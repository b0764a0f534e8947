"""Where the refused records of a batch lie: those that the query refused, and facts and ticks that do not decode."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from controller.aggregate.columns.rows import REFUSED, TICK, Rows
from controller.aggregate.places import Span, spans

_PLACE = ("source", "partition", "file", "offset")


def refused_spans(columns: Mapping[str, NDArray[Any]], batch: Rows, *, shard: int) -> list[Span]:
    """The spans of the refused records among *columns*, of streaming.schemas.ROW; *batch* is what they decode to.

    Both are what *shard* gets.  O(refused records).
    """
    refused = columns["kind"] == REFUSED
    places = [*zip(*(columns[name][refused].tolist() for name in _PLACE), strict=True)]
    unread = batch.unread()
    # All shards get a tick; the first one tells of it.
    unread = unread[(batch.kind[unread] != TICK) | (shard == 0)]
    files = [""] * len(batch) if batch.file is None else batch.file
    for row in unread.tolist():
        places.append((int(batch.source[row]), int(batch.partition[row]), files[row], int(batch.offset[row])))
    return spans(places)
