"""Catching up: while a query is far behind, its batches are cut by intervals rather than by a fixed number of records.

The snapshots and claims of an interval are the same whatever the number of its records, so it is intervals that memory
is needed for.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from pyspark.sql import SparkSession

from controller.adapters.long_work import long_work
from controller.model.backlog import Backlog, intervals_since
from streaming.checkpoint import checkpoint_files

log = logging.getLogger(__name__)

#: While the query catches up, more comes: each turn reads that of the turn before.  Whatever is left then is read as
#: usual, and closed a few intervals at a time.
_TURNS: Final = 5
#: Of Spark's offset log.
_VERSION: Final = "v1"
#: The version, the batch, and the one source that there is.
_LINES: Final = 3


class Turn(NamedTuple):
    """A part of catching up: all records that there are at its beginning."""

    #: An estimate.
    intervals: int
    #: So many records one batch may read.
    offsets: int


def turns(ahead_of: Callable[[], Backlog | None], *, threshold: int, max_offsets: int) -> Iterator[Turn]:
    """The turns in which a query that is far behind reads the log, until it has read all.

    *ahead_of*: the present backlog; None if such a log needs no other limit.  *threshold*: a backlog of up to so many
    intervals is normal.  *max_offsets*: the limit of any batch.
    """
    for _ in range(_TURNS):
        ahead = ahead_of()
        batch_offsets = None if ahead is None else ahead.offsets_a_batch(threshold, max_offsets)
        if ahead is None or batch_offsets is None:
            return
        log.info("catching up on %d intervals, with %d records a batch", ahead.intervals, batch_offsets)
        yield Turn(ahead.intervals, batch_offsets)


def report_progress(
    turn: Turn, last_interval: Callable[[], int | None], period_ms: int
) -> AbstractContextManager[object]:
    """Log now and then, within the block, the progress of a query that catches up, and the remaining time.

    *last_interval*: the last one that is decided, epoch ms.
    """
    began = last_interval()

    def closed() -> int:
        nonlocal began
        began = last_interval() if began is None else began
        return intervals_since(began, last_interval(), period_ms)

    return long_work("catching up, intervals", turn.intervals, look=closed)


def offset_read(spark: SparkSession, checkpoint: str) -> Any:
    """How far the query with this *checkpoint* has come, as its source says it; None where it has not begun."""
    files = checkpoint_files(spark, checkpoint)
    batches = [int(name) for name in files.names("offsets") if name.isdecimal()]
    text = files.read(f"offsets/{max(batches)}") if batches else None
    return None if text is None else _offset_in(text.decode(errors="replace"))


def _offset_in(text: str) -> Any:
    """The offset in a file of Spark's offset log: its version, a line about the batch, and one for each source."""
    lines = text.splitlines()
    if len(lines) != _LINES or lines[0] != _VERSION:
        return None
    return json.loads(lines[2])
