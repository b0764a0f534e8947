"""How evenly load is spread over the brokers, and which two brokers even it out next.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder.LoadStats, isUnderLoaded, isOverLoaded
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from controller.model.decision import Reason
from controller.model.load import Bools, Floats, Ints

#: However large the target deviation is, a broker with half the average is not underloaded.
_MAX_UNDERLOADED: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerLoads:
    """What the brokers reported; a row a broker, in the order in which they are looked at."""

    names: tuple[str, ...]
    #: (n,) smoothed weighted usage, fraction.  Pulsar: weightedMaxEMA.
    load: Floats
    #: (n,) bytes/s in + out: smoothed, and as of the last report.
    throughput_ema: Floats
    throughput: Floats
    #: (n,) when the broker reported last, epoch ms.
    updated_at_ms: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether the brokers' data allow a round."""

    #: Why not, or None; then the broker that it is about, if it is about one.
    refusal: Reason | None
    broker: str = ""
    #: ms since bundles were taken off that broker, by its own data.
    elapsed_ms: int = 0
    #: (n,) rows that count for average and deviation: those with data that are recent enough.
    counted: Bools
    #: The brokers that still have to settle, with the time of their unloading.
    recently_unloaded: Mapping[str, int]


def readiness(
    loads: BrokerLoads,
    available: Collection[str],
    recently_unloaded: Mapping[str, int],
    *,
    now_ms: int,
    ttl_ms: int,
    delay_ms: int,
) -> Readiness:
    """Whether the data of all *available* brokers are there, and those that were unloaded have settled.

    One broker that has not settled stops the round for all.  Brokers before it in the order of *loads* that have
    settled are still taken off the list.  Pulsar: LoadStats.update.
    """
    counted = now_ms - loads.updated_at_ms <= ttl_ms
    settling = dict(recently_unloaded)
    for row, name in enumerate(loads.names):
        if counted[row] and name in settling:
            elapsed = int(loads.updated_at_ms[row]) - settling[name]
            if elapsed < delay_ms:
                return Readiness(
                    refusal=Reason.COOL_DOWN,
                    broker=name,
                    elapsed_ms=elapsed,
                    counted=counted,
                    recently_unloaded=settling,
                )
            del settling[name]
    if not counted.any():
        refusal = Reason.OUTDATED_DATA if len(counted) else Reason.NO_BROKERS
        return Readiness(refusal=refusal, counted=counted, recently_unloaded=settling)
    unknown = min(set(available) - set(loads.names), default="")
    refusal_or_none = Reason.NO_LOAD_DATA if unknown else None
    return Readiness(refusal=refusal_or_none, broker=unknown, counted=counted, recently_unloaded=settling)


class ImbalanceCause(NamedTuple):
    """Why load should move: the comparison that decided."""

    reason: Reason
    observed: float
    limit: float
    what: str
    unit: str = "usage"


class LoadStats:
    """Average and deviation of the load, and the brokers by load; both change as moves are planned."""

    def __init__(
        self, loads: BrokerLoads, counted: Bools, order: Ints, *, target_std: float, overloaded: float
    ) -> None:
        """Of *loads*, by the *counted* rows.

        ``order``: rows of the brokers that may give or take, in ascending order of their load, not empty.
        ``target_std`` and ``overloaded``: the deviation to reach and the load from which a broker is full, fractions.
        """
        load = loads.load[counted]
        # Added up one after the other, as Java does: with a target of 0 the last bit decides.
        self._square_sum = np.add.accumulate(load * load)[-1]
        self._brokers = len(load)
        self.average = np.add.accumulate(load)[-1] / self._brokers
        #: NaN where rounding makes the number under the root negative; then the deviation is not above the target.
        with np.errstate(invalid="ignore"):
            self.std = np.sqrt(self._square_sum / self._brokers - self.average * self.average)
        self._loads = loads
        self._order = order
        self._fullest, self._emptiest = len(order) - 1, 0
        self._target_std = target_std
        self._overloaded = overloaded
        self._share_underloaded = min(_MAX_UNDERLOADED, max(0.0, target_std / 2))
        self.sheddings = 0

    @property
    def has_pair(self) -> bool:
        """Whether two different brokers are left to even out."""
        return self._emptiest < self._fullest

    @property
    def fullest(self) -> int:
        """The row of the broker with most load that has not been looked at."""
        return int(self._order[self._fullest])

    @property
    def emptiest(self) -> int:
        """The row of the broker with least load that nothing was planned to go to."""
        return int(self._order[self._emptiest])

    def imbalance(self) -> ImbalanceCause | None:
        """Why load should move from the fullest to the emptiest broker, or None."""
        if self.std > self._target_std:
            return ImbalanceCause(
                Reason.OVERLOADED, float(self.std), self._target_std, "standard deviation of the load"
            )
        loads, fullest, emptiest = self._loads, self.fullest, self.emptiest
        least, low = float(loads.load[emptiest]), float(self.average * self._share_underloaded)
        if least < low:
            return ImbalanceCause(Reason.UNDERLOADED, least, low, "load of the emptiest broker")
        least = float(loads.throughput_ema[emptiest])
        low = float(loads.throughput_ema[fullest] * self._share_underloaded)
        if least < low:
            return ImbalanceCause(Reason.UNDERLOADED, least, low, "throughput of the emptiest broker", "bytes/s")
        load_of_fullest = float(loads.load[fullest])
        high = float(np.maximum(self._overloaded, self.average + self._target_std))  # NaN where the average is NaN
        if load_of_fullest > high:
            return ImbalanceCause(Reason.OVERLOADED, load_of_fullest, high, "load of the fullest broker")
        return None

    def poll_fullest(self) -> int:
        """The row of the fullest broker, which then counts as looked at."""
        row = self.fullest
        self._fullest -= 1
        return row

    def offload(self, giver: int, taker: int, load: np.float64) -> None:
        """Count *load* (fraction) as moved from *giver* to *taker* (rows); the taker then takes no more."""
        giver_load, taker_load = self._loads.load[giver], self._loads.load[taker]
        giver_after, taker_after = np.maximum(0, giver_load - load), taker_load + load
        self._square_sum -= giver_load * giver_load + taker_load * taker_load
        self._square_sum += giver_after * giver_after + taker_after * taker_after
        self.std = np.sqrt(np.abs(self._square_sum / self._brokers - self.average * self.average))
        self.sheddings += 1
        self._emptiest += 1
