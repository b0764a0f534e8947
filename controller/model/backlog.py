"""The backlog of a log, and how much of it one batch may read."""

from dataclasses import dataclass


def intervals_since(began: int | None, last: int | None, period_ms: int) -> int:
    """The number of intervals from *began* to *last*, epoch ms; 0 where one of them is not known."""
    return 0 if began is None or last is None else (last - began) // period_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The part of the log that has not been read yet."""

    #: An estimate; it may be too high while the backlog is small.
    intervals: int
    #: The sum over all partitions.
    offsets: int

    def offsets_a_batch(self, close_at_most: int, max_offsets: int) -> int | None:
        """The number of offsets that hold about four fifths of *close_at_most* intervals, at most *max_offsets*.

        None if the backlog has no more than *close_at_most* intervals: no limit is needed then.  Four fifths, because
        some intervals have fewer offsets than the average.
        """
        if self.intervals <= close_at_most:
            return None
        return max(1, min(max_offsets, 4 * close_at_most * self.offsets // (5 * self.intervals)))
