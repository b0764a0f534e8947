"""What has arrived in the log for an interval, and the roster that follows from it.  Pure.

The log alone decides: a sweep counts when all its chunks are in the metrics topic, and of several complete sweeps of a
broker the one that was complete first.  Producers may write anything to the topic.  So only active brokers count, and
chunks only near their interval, and the state is bounded.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller.wire.chunks import Arrived
from controller.wire.metrics import TickRecord
from controller.wire.sweep import SweepHeader

#: The log's clock and a collector's may differ by so much, ms, or by half a period where that is less.
_SKEW_MS: Final = 10_000
#: A sweep that claims more chunks than this, of 900 KB each, is refused.
_MOST_CHUNKS: Final = 1_000
#: So many sweeps of a broker may be incomplete at a time; then the oldest is dropped for a new one.
_MOST_INCOMPLETE: Final = 8
_LONGEST_SWEEP_ID: Final = 1_000


@dataclass(slots=True)
class Arrivals:
    """The sweeps of one cluster that arrived for the intervals that are not ticked yet."""

    cluster: str
    period_ms: int
    #: The highest T that is ticked, epoch ms; 0: none is known of.
    ticked: int = 0
    #: Chunks that do not count, by the reason, since this was last emptied, and a broker that one of them names.
    passed_over: dict[str, int] = field(default_factory=dict)
    example: str = ""
    #: T -> broker -> sweepId -> the chunks that have come.
    _chunks: dict[int, dict[str, dict[str, set[int]]]] = field(default_factory=dict)
    #: T -> broker -> the sweep of it that was complete first.
    _complete: dict[int, dict[str, str]] = field(default_factory=dict)

    def ingest(self, arrived: Iterable[Arrived], active: Collection[str], *, with_ticks: bool) -> None:
        """Process records in the order of the log.  Repetitions have no effect.

        Brokers that are not *active* do not count.  Ticks count only *with_ticks*: the writer of ticks knows its own,
        so all others are forged.
        """
        for head, append_ms in arrived:
            if head.cluster != self.cluster:
                continue
            if isinstance(head, TickRecord):
                if with_ticks and (append_ms is None or head.interval <= append_ms + self._skew_ms):
                    self.end(head.interval)
            elif head.interval > self.ticked:
                why = self._refusal(head, append_ms, active)
                if why:
                    self.passed_over[why] = self.passed_over.get(why, 0) + 1
                    self.example = head.broker
                else:
                    self._take_chunk(head)

    @property
    def _skew_ms(self) -> int:
        return min(_SKEW_MS, self.period_ms // 2)

    def _refusal(self, head: SweepHeader, append_ms: int | None, active: Collection[str]) -> str:
        """Why *head* does not count, "" where it does."""
        if head.broker not in active:
            return "of brokers that are not active"
        if head.interval % self.period_ms or head.chunks > _MOST_CHUNKS or len(head.sweep_id) > _LONGEST_SWEEP_ID:
            return "without a valid interval, in too many chunks, or with too long an id"
        if append_ms is not None and not -self._skew_ms <= append_ms - head.interval <= self.period_ms:
            return "appended too long before or after their interval"
        return ""

    def _take_chunk(self, head: SweepHeader) -> None:
        complete = self._complete.setdefault(head.interval, {})
        if head.broker in complete:
            return
        sweeps = self._chunks.setdefault(head.interval, {}).setdefault(head.broker, {})
        came = sweeps.setdefault(head.sweep_id, set())
        came.add(head.chunk)
        if len(came) == head.chunks:
            complete[head.broker] = head.sweep_id
            del self._chunks[head.interval][head.broker]
            if not self._chunks[head.interval]:
                del self._chunks[head.interval]
        elif len(sweeps) > _MOST_INCOMPLETE:
            del sweeps[next(iter(sweeps))]

    def end(self, interval: int) -> None:
        """*interval* has its tick: forget what came for it and for earlier intervals."""
        self.ticked = max(self.ticked, interval)
        self.forget(self.ticked)

    def forget(self, interval: int) -> None:
        """Forget what came for *interval* and earlier ones; no tick will use it."""
        self._chunks = {at: sweeps for at, sweeps in self._chunks.items() if at > interval}
        self._complete = {at: sweeps for at, sweeps in self._complete.items() if at > interval}

    def complete(self, interval: int) -> Mapping[str, str]:
        """Broker -> its sweep that counts for *interval*."""
        return self._complete.get(interval, {})

    def missing(self, interval: int, active: Iterable[str]) -> tuple[str, ...]:
        """Those of the *active* brokers that have no complete sweep for *interval* yet, sorted."""
        return tuple(sorted(set(active) - self.complete(interval).keys()))

    def roster(self, interval: int, active: Iterable[str]) -> dict[str, str | None]:
        """The tick's roster: the *active* brokers, each with the sweep that counts or None."""
        complete = self.complete(interval)
        return {broker: complete.get(broker) for broker in sorted(set(active))}
