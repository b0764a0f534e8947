"""AvgShedder's pairs of brokers, the fullest with the emptiest and so on, and how often each broker was hit."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np

from controller.model.decision import Reason, Unload, Verdict
from controller.model.load import RATE_IN, RATE_OUT, BrokerTable, Floats
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.common.unissued import idle_unloads, restored

#: Pulsar keeps the counts of brokers that are gone for as long as pairs are hit; here they are so many at most, as many
#: as a cluster can have.
MAX_AWAY: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHitCounts(StrategyMemory):
    """AvgShedder's hit counts: rounds in which a broker's usage differed from its pair's by a threshold, by name."""

    kind: ClassVar[str] = "broker_hit_counts"
    #: Rounds with a difference at or above the high threshold.
    high: Mapping[str, int] = field(default_factory=dict)
    #: Rounds with a difference at or above the low threshold.
    low: Mapping[str, int] = field(default_factory=dict)

    def revert_unissued(self, before: Self, withheld: Collection[Unload], issued: Collection[Unload]) -> Self:
        """The hits before, of the pairs of brokers that gave nothing."""
        idle = idle_unloads(withheld, issued)
        brokers = {name for unload in idle for name in (unload.source, unload.destination) if name}
        return type(self)(high=restored(before.high, self.high, brokers), low=restored(before.low, self.low, brokers))


class Pair(NamedTuple):
    """Two brokers, and how far apart they are."""

    low: str
    high: str
    #: Row of the latter.
    high_row: int
    #: By score, in percentage points; by messages/s; by bytes/s.
    difference: float
    rate: float
    throughput: float

    def verdicts(self, of_high: Reason, of_low: Reason, limit: int, by: str) -> list[Verdict]:
        """One verdict on each; a broker that is paired with itself gets one."""
        about = [(self.high, of_high, f"above {self.low}")]
        if self.low != self.high:
            about.append((self.low, of_low, f"below {self.high}"))
        return [
            Verdict(
                subject=name,
                reason=reason,
                observed=self.difference,
                limit=float(limit),
                unit="points",
                by=by,
                detail=detail,
            )
            for name, reason, detail in about
        ]


def pairs(brokers: BrokerTable, scores: Floats) -> list[Pair]:
    """The pairs, those that differ most first; the middle one of an odd number is paired with itself."""
    order = np.argsort(scores, kind="stable")
    lows, highs = order[: (len(order) + 1) // 2], order[::-1][: (len(order) + 1) // 2]
    names, rate = brokers.names, brokers.load[:, RATE_IN] + brokers.load[:, RATE_OUT]
    with np.errstate(invalid="ignore"):
        apart = [(of[highs] - of[lows]).tolist() for of in (scores, rate, brokers.throughput)]
    return [
        Pair(names[low], names[high], high, *differences)
        for low, high, *differences in zip(lows.tolist(), highs.tolist(), *apart, strict=True)
    ]


class Hits:
    """The hit counts, while a round changes them."""

    def __init__(self, memory: BrokerHitCounts) -> None:
        self.high, self.low = dict(memory.high), dict(memory.low)

    def forget(self, pair: Pair) -> None:
        """Drop the counts of both brokers."""
        for counts in (self.high, self.low):
            if counts:
                counts.pop(pair.low, None)
                counts.pop(pair.high, None)

    def count(self, pair: Pair, *, hard: bool) -> None:
        """Count a hit of both brokers; a broker that is paired with itself counts twice."""
        for broker in (pair.low, pair.high):
            self.low[broker] = self.low.get(broker, 0) + 1
            if hard:
                self.high[broker] = self.high.get(broker, 0) + 1
            else:
                self.high.pop(broker, None)

    def reached(self, pair: Pair, high: int, low: int) -> bool:
        """Whether either was hit often enough; a broker without a count gets the count 0, as in Pulsar."""
        return any(
            counts.setdefault(broker, 0) >= limit
            for counts, limit in ((self.high, high), (self.low, low))
            for broker in (pair.low, pair.high)
        )

    def stored(self, here: Collection[str]) -> BrokerHitCounts:
        """What is remembered; where too many counts are of brokers that are not *here*, none of those."""
        return BrokerHitCounts(high=_bounded(self.high, here), low=_bounded(self.low, here))


def _bounded(counts: dict[str, int], here: Collection[str]) -> dict[str, int]:
    if sum(name not in here for name in counts) <= MAX_AWAY:
        return counts
    return {name: count for name, count in counts.items() if name in here}
