"""How far a log is ahead of its reader, and how much of it one batch may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What lies in the log and has not been read."""

    #: Or more than there are, while they are few.
    intervals: int
    #: Of all partitions together.
    offsets: int

    def offsets_a_batch(self, close_at_most: int, max_offsets: int) -> int | None:
        """So many offsets hold four fifths of *close_at_most* intervals; None where no more than that lie ahead.

        A batch that takes a little less than it may close leaves nothing behind where an interval is shorter than the
        others.  Never above *max_offsets*.
        """
        if self.intervals <= close_at_most:
            return None
        return max(1, min(max_offsets, 4 * close_at_most * self.offsets // (5 * self.intervals)))
