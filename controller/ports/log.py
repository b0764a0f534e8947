"""What a log can do for the parts that write metrics and results, and for those that read commands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from controller.wire.dead_letter import DeadLetter, Source


class MetricsLog(Protocol):
    """The writing end of the metrics and result topics."""

    def publish(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append (key, value) pairs to the metrics topic; returns when all of them are safely there."""
        ...

    def results(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append (key, value) pairs to the result topic, likewise."""
        ...

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """End *interval* in every partition of both topics.

        *roster*: every active broker with the sweepId that counts, None where its sweep is missing.  It goes
        into partition 0 of the metrics topic, and that tick is written last: once it can be read, so can all.
        """
        ...


class IssuedEvent(NamedTuple):
    """An event as it lies in the command topic, read or not."""

    source: Source
    value: bytes


class CommandLog(Protocol):
    """The reading end of the command topic."""

    def read(self) -> Iterator[IssuedEvent]:
        """The events issued since the last one read, up to the present end, in order within a namespace."""
        ...

    def poll(self) -> Sequence[bytes]:
        """The values of what ``read`` gives, all at once; empty when there are none.

        What was issued a moment ago may come with the next call only.
        """
        ...


class DeadLetterLog(Protocol):
    """Where records go that cannot be used."""

    def write(self, batch: int, letters: Sequence[DeadLetter], *, part: int = 0) -> None:
        """Keep *letters*, found in this *part* of micro-batch *batch*.  The same batch brings the same ones again."""
        ...
