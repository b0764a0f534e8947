"""The log's ports: for those who write metrics and results, and for those who read commands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from controller.wire.dead_letter import DeadLetter, Source


class MetricsLog(Protocol):
    """A writer of the metrics and result topics."""

    def publish(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append (key, value) pairs to the metrics topic; returns when the log has acknowledged all of them."""
        ...

    def results(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append (key, value) pairs to the result topic; returns when the log has acknowledged all of them."""
        ...

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """Write the tick of *interval* (T, epoch ms) to every partition of both topics.

        *roster*: every active broker with the sweepId that counts, None if its sweep is missing.  The roster is in
        the tick of partition 0 of the metrics topic.  That tick is written last: when a reader sees it, all other
        ticks can be read too.
        """
        ...


class IssuedEvent(NamedTuple):
    """An event of the command topic as bytes, with its place in the topic."""

    source: Source
    value: bytes


class CommandLog(Protocol):
    """A reader of the command topic."""

    def read(self) -> Iterator[IssuedEvent]:
        """The events issued since the last one read, up to the current end, in order within a namespace."""
        ...

    def poll(self) -> Sequence[bytes]:
        """The values of the events that ``read`` would return, all at once; empty if there are none.

        An event that was issued a moment ago may only come with the next call.
        """
        ...


class DeadLetterLog(Protocol):
    """A writer of the dead letter topic, for records that cannot be used."""

    def write(self, batch: int, letters: Sequence[DeadLetter], *, part: int = 0) -> None:
        """Write *letters*, found in *part* of micro-batch *batch*.  If the batch is repeated, so are its letters."""
        ...


class Retention(Protocol):
    """What deletes old records, where the log does not do so itself."""

    def prune(self, *, read: int) -> None:
        """Delete some of what nobody needs any more; to be called often.

        *read*: the query has read all records up to this interval, epoch ms, and Spark has committed that.
        TrimtabError where something cannot be deleted; the log is still valid then.
        """
        ...
