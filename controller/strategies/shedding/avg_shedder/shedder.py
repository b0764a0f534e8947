"""Pair the fullest broker with the emptiest, the second fullest with the second emptiest, and move load within pairs.

A pair whose scores (usage as of now, percent) differ by a threshold is hit.  There are two thresholds: after a
difference of the high one load moves within few rounds in a row, after one of the low one only within many.  Then the
fuller broker gives a share of the difference in message rate or, where that is too little, in throughput to the emptier
one: its busiest bundles, without those that are more than what is left to give.  This strategy plans both ends, for the
placement of the same name.  With another one, bundles go where that one places them.

As in Pulsar, unless ``fixed``: with an odd number of brokers the middle one is paired with itself; a sole bundle may
go; and of bundles that are equal in all averages, in the number of their samples and in topics, every one goes where
the last of them is meant to go, as Pulsar files its plans under a bundle's data and not under its name.  Pulsar also
loses a plan when the data move on before the bundle is looked up, and then places at random; here the destination is
part of the command.

With ``plans_by_bundle`` each bundle has a plan of its own, as in Pulsar 5.0.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.AvgShedder
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

import numpy as np

from controller.model.decision import LazyVerdicts, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import (
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
)
from controller.model.option import option
from controller.model.resource_usage import ResourceWeights
from controller.strategies.common import options
from controller.strategies.common.equal_data import data_keys
from controller.strategies.common.movable import broker_own, movable, too_few_bundles
from controller.strategies.shedding.avg_shedder.pairs import BrokerHitCounts, Hits, Pair, pairs

_MB: Final = 1024 * 1024
_BY: Final = "AvgShedder"


#: A bundle (a row), the pair it moves within, and the verdict on the broker it leaves.
_Move: TypeAlias = tuple[int, Pair, Verdict]


@dataclass(slots=True, kw_only=True)
class _Round:
    """The findings of a round so far."""

    moves: list[_Move] = field(default_factory=list)
    #: For each pair, in their order: its verdicts, or the pair itself if it was not hit.
    verdicts: list[Sequence[Verdict] | Pair] = field(default_factory=list)
    refusals: list[Verdict] = field(default_factory=list)
    any_hit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AvgShedder(ResourceWeights):
    """See the module docstring; every option keeps broker.conf's unit."""

    paired_placement: ClassVar[str] = "AvgShedder"

    low_threshold: int = option(
        "loadBalancerAvgShedderLowThreshold",
        default=15,
        unit="points",
        meaning="paired brokers whose scores differ by this are hit",
    )
    high_threshold: int = option(
        "loadBalancerAvgShedderHighThreshold",
        default=40,
        unit="points",
        meaning="paired brokers whose scores differ by this are hit hard",
    )
    hit_count_low: int = option(
        "loadBalancerAvgShedderHitCountLowThreshold",
        default=8,
        unit="rounds",
        meaning="load moves within a pair when one of the two was hit so often",
    )
    hit_count_high: int = option(
        "loadBalancerAvgShedderHitCountHighThreshold",
        default=2,
        unit="rounds",
        meaning="load moves within a pair when one of the two was hit hard so often",
    )
    min_unload_msg_rate: int = option(
        "minUnloadMessage",
        default=1000,
        unit="msg/s",
        meaning="bundles are chosen by their message rate if more than this is to move",
    )
    min_unload_throughput: int = option(
        "minUnloadMessageThroughput",
        default=_MB,
        unit="bytes/s",
        meaning="nothing moves if what is to move is not more than this, nor than minUnloadMessage",
    )
    max_unload_share: float = option(
        "maxUnloadPercentage", default=0.2, meaning="share of the difference between two brokers that moves at once"
    )
    fixed: bool = options.avg_shedder_fixed()
    plans_by_bundle: bool = options.avg_shedder_plans_by_bundle()

    def initial_memory(self) -> BrokerHitCounts:
        """No broker was hit yet."""
        return BrokerHitCounts()

    def scores(self, view: ClusterView) -> Floats:
        """(n,) usage of each broker's fullest resource by the weights, percent."""
        return self.weighted_usage(view.brokers.usage, view.brokers.limit) * 100

    def decide(self, view: ClusterView, memory: BrokerHitCounts) -> tuple[UnloadDecision, BrokerHitCounts]:
        """Move load within every pair that was hit often enough, pairs that differ most first."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), BrokerHitCounts()
        hits, this_round = Hits(memory), _Round()
        for pair in pairs(view.brokers, self.scores(view)):
            if pair.difference < self.low_threshold or (self.fixed and pair.low == pair.high):
                hits.forget(pair)
                this_round.verdicts.append(pair)
            else:
                self._even_out(view, pair, hits, this_round)
        reason = Reason.BALANCED
        if this_round.moves:
            reason = Reason.OVERLOADED
        elif this_round.refusals:
            reason = this_round.refusals[0].reason

        def tell() -> Iterator[Verdict]:
            for one in this_round.verdicts:
                if isinstance(one, Pair):
                    yield from one.verdicts(Reason.BALANCED, Reason.BALANCED, self.low_threshold, _BY)
                else:
                    yield from one

        decision = UnloadDecision(
            unloads=self._unloads(view, this_round.moves), verdicts=LazyVerdicts(tell), reason=reason
        )
        # Without any hit all counts are dropped, also those of brokers that are not in the view.
        return decision, hits.stored(view.brokers.code_of) if this_round.any_hit else BrokerHitCounts()

    def _even_out(self, view: ClusterView, pair: Pair, hits: Hits, this_round: _Round) -> None:
        """Count a hit of *pair*; where it was hit often enough, choose the bundles that move within it."""
        this_round.any_hit = True
        # Not ">=": a difference of NaN counts as high, as in Pulsar.
        hard = not pair.difference < self.high_threshold
        hits.count(pair, hard=hard)
        if not hits.reached(pair, self.hit_count_high, self.hit_count_low):
            waiting = self._waiting(pair, hits, hard=hard)
            this_round.verdicts.append(waiting)
            this_round.refusals += waiting
            return
        hits.forget(pair)
        limit = self.high_threshold if hard else self.low_threshold
        why = pair.verdicts(Reason.OVERLOADED, Reason.UNDERLOADED, limit, _BY)
        rows, refused = self._choose(view, pair)
        this_round.moves += [(row, pair, why[0]) for row in rows]
        this_round.verdicts.append([*why, *refused])
        this_round.refusals += refused

    def _waiting(self, pair: Pair, hits: Hits, *, hard: bool) -> list[Verdict]:
        counts, limit = (hits.high, self.hit_count_high) if hard else (hits.low, self.hit_count_low)
        detail = f"{pair.difference:g} points between {pair.low} and {pair.high}"
        return [
            Verdict(
                subject=broker,
                reason=Reason.HIT_COUNT,
                observed=float(counts[broker]),
                limit=float(limit),
                unit="rounds",
                by=_BY,
                detail=detail,
            )
            for broker in dict.fromkeys((pair.high, pair.low))
        ]

    def _choose(self, view: ClusterView, pair: Pair) -> tuple[list[int], list[Verdict]]:
        """Rows of the bundles to move within *pair*, busiest first, and a verdict for all refused."""
        rate, throughput = pair.rate * self.max_unload_share, pair.throughput * self.max_unload_share
        if rate > self.min_unload_msg_rate:
            to_move, traffic_of = rate, _by_rate
        elif throughput > self.min_unload_throughput:
            to_move, traffic_of = throughput, _by_throughput
        else:
            low = Verdict(
                subject=pair.high,
                reason=Reason.BELOW_MINIMUM,
                observed=throughput / _MB,
                limit=self.min_unload_throughput / _MB,
                unit="MB/s",
                by=_BY,
                detail=f"and {rate:g} vs {self.min_unload_msg_rate} msg/s",
            )
            return [], [low]
        too_few = too_few_bundles(view, pair.high_row, _BY) if self.fixed else None
        if too_few is not None:
            return [], [too_few]
        rows, refused = movable(view, broker_own(view), pair.high_row, _BY)
        chosen = _fitting(rows, traffic_of(view.bundles.short_term[rows]), to_move)
        if not chosen:
            detail = "no bundle with traffic is small enough for what is to move"
            refused.append(Verdict(subject=pair.high, reason=Reason.NO_BUNDLES, by=_BY, detail=detail))
        return chosen, refused

    def _unloads(self, view: ClusterView, moves: list[_Move]) -> tuple[Unload, ...]:
        destinations = [pair.low for _, pair, _ in moves]
        if not (self.fixed or self.plans_by_bundle):
            destinations = _last_of_equals(view.bundles, [row for row, _, _ in moves], destinations)
        return tuple(
            Unload(bundle=view.bundles.names[row], source=pair.high, why=why, destination=destination)
            for (row, pair, why), destination in zip(moves, destinations, strict=True)
        )


def _by_rate(load: Floats) -> Floats:
    return load[:, RATE_IN] + load[:, RATE_OUT]


def _by_throughput(load: Floats) -> Floats:
    return load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]


def _fitting(rows: Ints, traffic: Floats, to_move: float) -> list[int]:
    """Those of *rows* that go, busiest first: each one with traffic that is no more than what is left to move."""
    order = np.argsort(-traffic, kind="stable")
    chosen, remaining = [], to_move
    for row, of_row in zip(rows[order].tolist(), traffic[order].tolist(), strict=True):
        if 0 < of_row <= remaining:
            chosen.append(row)
            remaining -= of_row
    return chosen


def _last_of_equals(bundles: BundleTable, rows: list[int], destinations: list[str]) -> list[str]:
    """*destinations* of bundles, all those with equal data where the last of them goes: see the module docstring."""
    keys = data_keys(bundles, rows)
    plans = dict(zip(keys, destinations, strict=True))
    return [plans[key] for key in keys]
