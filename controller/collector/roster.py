"""What has arrived in the log for an interval, and the roster that follows from it.  Pure.

The log alone decides: a sweep counts when all its chunks lie in the metrics topic, and of several complete sweeps of a
broker the one that was complete first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controller.wire.metrics import Tick
from controller.wire.sweep import SweepHeader


@dataclass(slots=True)
class Arrivals:
    """The sweeps of one cluster that arrived for the intervals that are not ticked yet."""

    cluster: str
    #: The highest T that is ticked, epoch ms; 0: none is known of.
    ticked: int = 0
    #: (T, broker, sweepId) -> the chunks that have come.
    _chunks: dict[tuple[int, str, str], set[int]] = field(default_factory=dict)
    #: T -> broker -> the sweep of it that was complete first.
    _complete: dict[int, dict[str, str]] = field(default_factory=dict)

    def take(self, heads: Iterable[SweepHeader | Tick]) -> None:
        """Take in what came, in the order of the log.  Repetitions change nothing."""
        for head in heads:
            if head.cluster != self.cluster:
                continue
            if isinstance(head, Tick):
                self.end(head.interval)
            elif head.interval > self.ticked:
                self._take_chunk(head)

    def _take_chunk(self, head: SweepHeader) -> None:
        complete = self._complete.setdefault(head.interval, {})
        if head.broker in complete:
            return
        came = self._chunks.setdefault((head.interval, head.broker, head.sweep_id), set())
        came.add(head.chunk)
        if len(came) == head.chunks:
            complete[head.broker] = head.sweep_id

    def end(self, interval: int) -> None:
        """*interval* is ticked: what came for it and for earlier ones is settled."""
        self.ticked = max(self.ticked, interval)
        self._chunks = {key: came for key, came in self._chunks.items() if key[0] > self.ticked}
        self._complete = {at: sweeps for at, sweeps in self._complete.items() if at > self.ticked}

    def complete(self, interval: int) -> Mapping[str, str]:
        """Broker -> its sweep that counts for *interval*."""
        return self._complete.get(interval, {})

    def missing(self, interval: int, active: Iterable[str]) -> tuple[str, ...]:
        """Those of the *active* brokers that have no complete sweep for *interval* yet, sorted."""
        return tuple(sorted(set(active) - self.complete(interval).keys()))

    def roster(self, interval: int, active: Iterable[str]) -> dict[str, str | None]:
        """The tick's roster: the *active* brokers and all that were swept, with the sweep that counts or None."""
        complete = self.complete(interval)
        return {broker: complete.get(broker) for broker in sorted({*active, *complete})}
