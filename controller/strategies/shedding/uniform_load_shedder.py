"""Even out the busiest and the idlest broker, by message rate and, where that is even, by throughput.

Resources of the hosts do not count, so it suits brokers that share machines.  One broker gives in each round: the one
with the highest rate, when it is too many percent above the lowest; or else the one with the highest throughput, when
it is too many times the lowest.  It gives a share of the difference, the biggest bundles that still fit into it first.
A bundle may be larger than what is left of the share by a slack of 1,000, which Pulsar 4.2 no longer has.

Pulsar computes this partly in int and starts its minimum at the largest int, so it is wrong above 2**31 - 1 bytes/s: a
broker above that is never the idlest, and a difference near it unloads nothing.  trimtab does the same, unless
``trimtabUniformLoadShedderFixedExtremes`` is set.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.decision import Reason, Unload, UnloadDecision, Verdict
from controller.model.load import RATE_IN, RATE_OUT, ClusterView, Floats, busiest_first
from controller.model.option import option
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.movable import broker_own, movable, too_few_bundles

_INT_MAX: Final = 2**31 - 1
#: A minimum this close to zero counts as 1, to divide by it.
_ZERO: Final = 1e-6
_NO_LIMIT: Final = -1
_BY: Final = "UniformLoadShedder"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rule:
    """One of the two measures: how it is spread over the brokers, and the limits that apply to it."""

    #: One a bundle.
    of_bundle: Floats
    unit: str
    #: The broker with the most, a row, and what it has.
    busiest: int
    highest: float
    least: float
    #: Each broker against the least: "percent above" or "times".
    spread: Floats
    threshold: float
    spread_unit: str
    #: What must be there to move for a round to be worth it.
    minimum: float

    @property
    def fires(self) -> bool:
        """Whether the busiest broker is too far from the idlest; a threshold of 0 or less turns the rule off."""
        return self.threshold > 0 and float(self.spread[self.busiest]) > self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLoadShedder:
    """See the module docstring."""

    rate_difference_percent: float = option(
        "loadBalancerMsgRateDifferenceShedderThreshold",
        default=50.0,
        unit="%",
        meaning="how far the highest message rate may be above the lowest; 0 turns this rule off",
    )
    throughput_multiplier: float = option(
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
        default=4.0,
        meaning="how many times the lowest throughput the highest may be; 0 turns this rule off",
    )
    share_to_unload: float = option(
        "maxUnloadPercentage",
        default=0.2,
        meaning="share of the difference between the highest and the lowest that is unloaded at once, 0 to 1",
    )
    min_unload_rate: int = option(
        "minUnloadMessage",
        default=1000,
        unit="msg/s",
        meaning="message rates are not evened out if less than this would be unloaded",
    )
    min_unload_throughput: int = option(
        "minUnloadMessageThroughput",
        default=1024 * 1024,
        unit="bytes/s",
        meaning="throughputs are not evened out if less than this would be unloaded",
    )
    max_bundles: int = option(
        "maxUnloadBundleNumPerShedding",
        default=_NO_LIMIT,
        meaning="maximum number of bundles at once; -1: no limit",
        # The name of a getter, which is used as the name of the option in places.
        aliases=("getMaxUnloadBundleNumPerShedding",),
    )
    fixed_extremes: bool = option(
        "trimtabUniformLoadShedderFixedExtremes",
        default=False,
        meaning="compute in doubles throughout, so that clusters above 2**31 - 1 bytes/s are evened out as well",
    )
    slack: int = option(
        "trimtabUniformLoadShedderSlack",
        default=1000,
        unit="msg/s or bytes/s",
        meaning="by how much a bundle may be larger than what is left to unload; 0: as Pulsar 4.2 does",
    )

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        """Unload a share of the difference off the busiest broker; of equally busy ones, off the first by name."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        rate, throughput = self._by_rate(view), self._by_throughput(view)
        # The rate has precedence, even if it then finds nothing to unload.
        rule = rate if rate.fires or (rate.threshold > 0 and not throughput.fires) else throughput
        verdicts = _about_brokers(view, rule)
        if not rule.fires:
            return UnloadDecision(verdicts=verdicts, reason=Reason.BALANCED), memory
        unloads, refused = self._shed(view, rule, verdicts[rule.busiest])
        reason = Reason.OVERLOADED if unloads else refused[0].reason
        return UnloadDecision(unloads=tuple(unloads), verdicts=(*verdicts, *refused), reason=reason), memory

    def _by_rate(self, view: ClusterView) -> _Rule:
        load, short_term = view.brokers.load, view.bundles.short_term
        of_broker = load[:, RATE_IN] + load[:, RATE_OUT]
        busiest, highest, lowest, divisor = self._extremes(of_broker)
        return _Rule(
            of_bundle=short_term[:, RATE_IN] + short_term[:, RATE_OUT],
            unit="msg/s",
            busiest=busiest,
            highest=highest,
            least=lowest,
            spread=(of_broker - divisor) * 100 / divisor,
            threshold=self.rate_difference_percent,
            spread_unit="% above the lowest message rate",
            minimum=self.min_unload_rate,
        )

    def _by_throughput(self, view: ClusterView) -> _Rule:
        of_broker = view.brokers.throughput
        busiest, highest, lowest, divisor = self._extremes(of_broker)
        return _Rule(
            of_bundle=view.bundles.short_term_throughput,
            unit="bytes/s",
            busiest=busiest,
            highest=highest,
            least=lowest,
            spread=of_broker / divisor,
            threshold=self.throughput_multiplier,
            spread_unit="times the lowest throughput",
            minimum=self.min_unload_throughput,
        )

    def _extremes(self, load: Floats) -> tuple[int, float, float, float]:
        """The busiest broker's row, the most, the least, and what to divide by for the least."""
        highest = float(np.fmax.reduce(load))
        lowest = float(np.fmin.reduce(load, initial=np.inf if self.fixed_extremes else _INT_MAX))
        divisor = 1.0 if abs(lowest) <= _ZERO else lowest
        return int((load == highest).argmax()), highest, lowest if self.fixed_extremes else divisor, divisor

    def _shed(self, view: ClusterView, rule: _Rule, why: Verdict) -> tuple[list[Unload], list[Verdict]]:
        """The bundles that leave the busiest broker, biggest first, and why others, or all, do not."""
        too_few = too_few_bundles(view, rule.busiest, _BY)
        if too_few is not None:
            return [], [too_few]
        required = (rule.highest - rule.least) * self.share_to_unload
        if not self.fixed_extremes:
            required = _to_int(required)
        if not required >= rule.minimum:
            return [], [_refusal(why, Reason.BELOW_MINIMUM, required, rule.minimum, rule.unit)]
        rows, refused = movable(view, broker_own(view), rule.busiest, _BY)
        candidates = busiest_first(rule.of_bundle, rows)
        loads = rule.of_bundle[candidates].tolist()
        chosen = [candidates[i] for i in self._fitting(loads, required)]
        if loads and not chosen:
            smallest, room = loads[-1], self._room(required)
            nothing = _refusal(why, Reason.TOO_LARGE, smallest, room, rule.unit)
            if smallest <= room:
                nothing = _refusal(why, Reason.DISABLED, len(loads), self.max_bundles, "bundles")
            refused.insert(0, nothing)
        names = view.bundles.names
        return [Unload(bundle=names[row], source=why.subject, why=why) for row in chosen], refused

    def _fitting(self, loads: list[float], required: float) -> list[int]:
        """Positions in *loads*, in descending order, that make up *required*; those too large are passed over."""
        chosen: list[int] = []
        for i, load in enumerate(loads):
            if self.max_bundles != _NO_LIMIT and len(chosen) >= self.max_bundles:
                break
            if load <= self._room(required):
                chosen.append(i)
                required -= load if self.fixed_extremes else _to_int(load)
        return chosen

    def _room(self, required: float) -> float:
        """The largest bundle that may go while *required* is left; in Pulsar's int this wraps below zero."""
        room = required + self.slack
        return room - 2**32 if not self.fixed_extremes and room > _INT_MAX else room


def _to_int(x: float) -> float:
    """*x* as Java casts a double to int: rounded towards zero, within the range of int, 0 for NaN."""
    return 0.0 if x != x else float(int(min(max(x, -_INT_MAX - 1), _INT_MAX)))


def _about_brokers(view: ClusterView, rule: _Rule) -> tuple[Verdict, ...]:
    """A verdict on every broker."""
    verdicts = []
    for broker, observed in enumerate(rule.spread.tolist()):
        reason, detail = Reason.BALANCED, ""
        if rule.threshold > 0 and observed > rule.threshold:
            reason, detail = Reason.NOT_THIS_INTERVAL, "only the busiest broker gives at a time"
        if broker == rule.busiest and rule.fires:
            reason, detail = Reason.OVERLOADED, ""
        verdicts.append(
            Verdict(
                subject=view.brokers.names[broker],
                reason=reason,
                observed=observed,
                limit=rule.threshold,
                unit=rule.spread_unit,
                by=_BY,
                detail=detail,
            )
        )
    return tuple(verdicts)


def _refusal(about: Verdict, reason: Reason, observed: float, limit: float, unit: str) -> Verdict:
    return Verdict(subject=about.subject, reason=reason, observed=observed, limit=limit, unit=unit, by=_BY)
