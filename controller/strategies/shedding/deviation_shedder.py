"""Unload brokers whose traffic is too many standard deviations above the average.

The broker furthest above gives its biggest bundle with which the broker with the least load would still be below it.
The loads are then computed as if the bundle went there, and so on until no broker stands out.  Where no bundle fits,
the next broker is looked at.  The placement then decides where bundles go.

A standard deviation is relative: brokers that are nearly alike have outliers, too, and of n brokers none is further
above than sqrt(n - 1), so of two the fuller one is always exactly 1 above.  So the default threshold is below 1, and a
broker must also be so many percent above the average.  Both are trimtab's: Pulsar leaves measure and threshold open.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.DeviationShedder, an abstract class that no release extends and
4.0 no longer has.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from controller.model.decision import Reason, Unload, UnloadDecision, Verdict
from controller.model.load import (
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    ClusterView,
    Floats,
)
from controller.model.option import option
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.movable import broker_own, movable

_UNIT: Final = "standard deviations above the average"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationShedder(ABC):
    """Base of the shedders that measure a broker by one number, in the same unit as its bundles."""

    threshold: float = option(
        "loadBalancerDeviationShedderThreshold",
        default=0.9,
        unit="standard deviations",
        meaning="how far above the average a broker stands out",
    )
    min_above_percent: float = option(
        "trimtabDeviationShedderMinAboveAveragePercentage",
        default=10.0,
        unit="%",
        meaning="a broker less than this above the average never stands out",
    )
    max_bundles: int = option(
        "trimtabDeviationShedderMaxBundles", default=1000, meaning="maximum number of bundles at once; -1: no limit"
    )
    fixed_receiver: bool = option(
        "trimtabDeviationShedderFixedReceiver",
        default=False,
        meaning="add a moved bundle to the load of its receiver, from which Pulsar subtracts it; idle bundles stay",
    )

    #: Of :meth:`measure`.
    unit: ClassVar[str]

    @abstractmethod
    def measure(self, load: Floats) -> Floats:
        """(n,) what counts of (n, 4) *load*, of brokers or of bundles alike."""

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        """Unload bundles off the brokers that stand out, in the order of planning."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        by, names = type(self).__name__, view.brokers.names
        givers = _Givers(view, self.measure(view.bundles.load), by, idle_too=not self.fixed_receiver)
        spread = _Spread(self.measure(view.brokers.load))
        verdicts = [
            self._about(name, Reason.BALANCED, spread.deviation(load))
            for name, load in zip(names, spread.load, strict=True)
        ]
        unloads: list[Unload] = []
        refusals: list[Verdict] = []
        while spread.by_load and len(unloads) != self.max_bundles and self._stands_out(spread):
            (lowest, receiver), (highest, broker) = spread.by_load[0], spread.by_load[-1]
            if verdicts[broker].reason is Reason.BALANCED:
                verdicts[broker] = self._about(names[broker], Reason.OVERLOADED, spread.deviation(highest))
                refusals += givers.refused(broker)
            bundle = givers.take(broker, lowest, highest)
            if bundle is None:
                # Pulsar then looks at the next broker.
                refusals.append(givers.why_nothing(broker, lowest, highest, self.unit))
                spread.by_load.pop()
                continue
            row, load = bundle
            unloads.append(Unload(bundle=view.bundles.names[row], source=names[broker], why=verdicts[broker]))
            spread.move(
                (highest, broker), highest - load, (lowest, receiver), lowest + (load if self.fixed_receiver else -load)
            )
        verdicts = [
            self._not_balanced(each, load, spread.mean, bool(unloads))
            for each, load in zip(verdicts, spread.load, strict=True)
        ]
        reason = refusals[0].reason if refusals else Reason.BALANCED
        if unloads:
            reason = Reason.OVERLOADED
        return UnloadDecision(unloads=tuple(unloads), verdicts=(*verdicts, *refusals), reason=reason), memory

    def _stands_out(self, spread: "_Spread") -> bool:
        highest = spread.by_load[-1][0]
        high = highest > spread.mean * (1 + self.min_above_percent / 100)
        return high and spread.deviation(highest) > self.threshold

    def _not_balanced(self, verdict: Verdict, load: float, mean: float, others_give: bool) -> Verdict:
        """*verdict*, with the reason why a broker above the threshold gives nothing; *others_give*: others do."""
        if verdict.reason is not Reason.BALANCED or verdict.observed is None or verdict.observed <= self.threshold:
            return verdict
        if others_give:
            return replace(verdict, reason=Reason.NOT_THIS_INTERVAL, detail="brokers that stand out more give first")
        limit, detail = mean * (1 + self.min_above_percent / 100), f"{self.min_above_percent:g} % above the average"
        refused = replace(verdict, reason=Reason.BELOW_MINIMUM, observed=load, limit=limit)
        return replace(refused, unit=self.unit, detail=detail)

    def _about(self, broker: str, reason: Reason, deviation: float) -> Verdict:
        observed = deviation if math.isfinite(deviation) else None
        by = type(self).__name__
        return Verdict(subject=broker, reason=reason, observed=observed, limit=self.threshold, unit=_UNIT, by=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputDeviationShedder(DeviationShedder):
    """Measures a broker by its bytes/s, in and out."""

    unit = "bytes/s"

    def measure(self, load: Floats) -> Floats:
        """Bytes/s."""
        return load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRateDeviationShedder(DeviationShedder):
    """Measures a broker by its msg/s, in and out."""

    unit = "msg/s"

    def measure(self, load: Floats) -> Floats:
        """Msg/s."""
        return load[:, RATE_IN] + load[:, RATE_OUT]


class _Spread:
    """How load is spread over the brokers, while moves are planned."""

    def __init__(self, load: Floats) -> None:
        #: Of each broker, before anything moves.
        self.load: list[float] = load.tolist()
        #: (load, broker row) in ascending order; a broker that cannot give any more is taken out.
        self.by_load = sorted(zip(self.load, range(len(load)), strict=True))
        self._brokers = len(load)
        #: Moves do not change it.
        self.mean = math.fsum(self.load) / self._brokers
        self._squares = math.fsum(x * x for x in self.load)
        self._width = self._standard_deviation()

    def deviation(self, load: float) -> float:
        """By how many standard deviations *load* is above the average; infinite or NaN where there is no deviation."""
        above = load - self.mean
        if self._width:
            return above / self._width
        return math.copysign(math.inf, above) if above else math.nan

    def move(self, giver: tuple[float, int], remaining: float, receiver: tuple[float, int], received: float) -> None:
        """Give the last broker of ``by_load`` the load *remaining*, and the first one *received*."""
        self.by_load.pop()
        self.by_load.pop(0)
        self._squares += remaining * remaining + received * received - (giver[0] * giver[0] + receiver[0] * receiver[0])
        self._width = self._standard_deviation()
        insort(self.by_load, (received, receiver[1]))
        insort(self.by_load, (remaining, giver[1]))

    def _standard_deviation(self) -> float:
        variance = self._squares / self._brokers - self.mean * self.mean
        # Rounding can make it negative where all brokers are alike: then, as in Java, none stands out.
        return math.sqrt(variance) if variance >= 0 else math.nan


class _Givers:
    """The bundles left on the brokers that stand out, each broker's in ascending order of load."""

    def __init__(self, view: ClusterView, load: Floats, by: str, *, idle_too: bool) -> None:
        self._view, self._load, self._by, self._idle_too = view, load, by, idle_too
        self._own = broker_own(view)
        self._remaining: dict[int, tuple[list[float], list[int]]] = {}

    def refused(self, broker: int) -> list[Verdict]:
        """Look at *broker* for the first time: a verdict on each of its bundles that may not move."""
        rows, refused = movable(self._view, self._own, broker, self._by)
        if not self._idle_too:
            rows = rows[self._load[rows] > 0]
        rows = rows[np.argsort(self._load[rows], kind="stable")]
        self._remaining[broker] = (self._load[rows].tolist(), rows.tolist())
        return refused

    def take(self, broker: int, lowest: float, highest: float) -> tuple[int, float] | None:
        """Take the largest bundle that leaves the receiver below *highest*: its row and load; of equals, the last."""
        loads, rows = self._remaining[broker]
        i = bisect_left(loads, highest, key=lambda load: load + lowest)  # a difference would be rounded otherwise
        return (rows.pop(i - 1), loads.pop(i - 1)) if i else None

    def why_nothing(self, broker: int, lowest: float, highest: float, unit: str) -> Verdict:
        """The verdict on *broker*: its smallest bundle brings the receiver from *lowest* to *highest* or above."""
        name, loads = self._view.brokers.names[broker], self._remaining[broker][0]
        if not loads:
            return Verdict(subject=name, reason=Reason.NO_BUNDLES, by=self._by)
        return Verdict(
            subject=name,
            reason=Reason.TOO_LARGE,
            observed=loads[0] + lowest,
            limit=highest,
            unit=unit,
            by=self._by,
            detail="any bundle would make the idlest broker at least as busy",
        )
