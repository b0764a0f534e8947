"""One round of TransferShedder: what it looks at, the pairs of brokers that it tries, and what it comes to.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder.findBundlesForUnloading
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from controller.model.decision import Reason
from controller.model.load import Ints
from controller.strategies.shedding.transfer_shedder.exchange import Exchange, Gate, GiverAndTaker, TopBundle
from controller.strategies.shedding.transfer_shedder.load_stats import (
    BrokerLoads,
    ImbalanceCause,
    LoadStats,
    Readiness,
    readiness,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadStore:
    """What one round looks at, apart from what is remembered."""

    now_ms: int
    loads: BrokerLoads
    #: Rows of ``loads`` that may give and take, in ascending order of their load, not empty.
    order: Ints
    #: All active brokers, also those without data.
    available: Collection[str]
    #: A broker's report of its bundles, lightest first; empty if there is none.
    bundles_of: Callable[[str], Sequence[TopBundle]]
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A pair of brokers (rows) that was tried: why, and the exchange, or the reason why there is none."""

    giver: int
    taker: int
    why: ImbalanceCause
    outcome: Exchange | Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round came to."""

    #: Pulsar's reason why nothing moves, or why the first bundles that move do.
    reason: Reason
    ready: Readiness
    #: Rounds in a row, this one included, in which load was uneven; 0 again once something moves.
    hit_count: int
    #: Average and standard deviation of the load, fractions, before anything moves; None where data allow no round.
    average: float | None = None
    std: float | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLimits:
    """What a round keeps to; times in ms, loads as fractions."""

    target_std: float
    overloaded: float
    hit_count_threshold: int
    max_brokers: int
    delay_ms: int
    ttl_ms: int
    #: Whether bundles are sent to the taker; else they are only taken off the giver.
    transfer: bool
    #: Whether what comes back in an exchange makes room for more to go.
    counts_gain: bool

    def plan(self, store: LoadStore, hit_count: int, recently_unloaded: Mapping[str, int]) -> Round:
        """One round on *store*, after *hit_count* uneven ones, with the T at which brokers were unloaded last."""
        ready = readiness(
            store.loads,
            store.available,
            recently_unloaded,
            now_ms=store.now_ms,
            ttl_ms=self.ttl_ms,
            delay_ms=self.delay_ms,
        )
        if ready.refusal is not None:
            return Round(reason=ready.refusal, ready=ready, hit_count=hit_count)
        # As Java divides: division by zero gives infinity or NaN, and comparisons with these decide.
        with np.errstate(all="ignore"):
            stats = LoadStats(
                store.loads, ready.counted, store.order, target_std=self.target_std, overloaded=self.overloaded
            )
            average, std = float(stats.average), float(stats.std)
            hit_count = hit_count + 1 if stats.imbalance() is not None else 0
            attempts = self._even_out(store, stats) if hit_count > self.hit_count_threshold else []
        reason, moves = _outcome(attempts)
        return Round(
            reason=reason,
            ready=ready,
            hit_count=0 if moves else hit_count,
            average=average,
            std=std,
            attempts=tuple(attempts),
        )

    def _even_out(self, store: LoadStore, stats: LoadStats) -> list[Attempt]:
        """Pair brokers until load is even, no pair is left, or as many brokers gave as may."""
        attempts: list[Attempt] = []
        while stats.has_pair and stats.sheddings < self.max_brokers:
            why = stats.imbalance()
            if why is None:
                break
            giver, taker = stats.poll_fullest(), stats.emptiest
            bundles = store.bundles_of(store.loads.names[giver])
            outcome: Exchange | Reason
            if len(bundles) < 2:
                outcome = Reason.SOLE_BUNDLE if bundles else Reason.NO_LOAD_DATA
            else:
                outcome = self._exchange(store, stats, giver, taker, bundles)
            attempts.append(Attempt(giver=giver, taker=taker, why=why, outcome=outcome))
        return attempts

    def _exchange(
        self, store: LoadStore, stats: LoadStats, giver: int, taker: int, bundles: Sequence[TopBundle]
    ) -> Exchange:
        loads = store.loads
        giver_load, throughput = loads.load[giver], loads.throughput[giver]
        pair = GiverAndTaker(
            giver=loads.names[giver],
            taker=loads.names[taker],
            giver_throughput=float(throughput),
            taker_throughput=float(loads.throughput[taker]),
            to_offload=float(throughput * ((giver_load - loads.load[taker]) / 2) / giver_load),
            transfer=self.transfer,
            counts_gain=self.counts_gain,
        )
        exchange = pair.exchange(bundles, store.bundles_of(pair.taker), store.gate)
        if exchange.offloaded > 0:
            stats.offload(giver, taker, (exchange.offloaded - exchange.gained) * giver_load / throughput)
        return exchange


def _outcome(attempts: Sequence[Attempt]) -> tuple[Reason, bool]:
    """The reason for the whole round, and whether anything moves."""
    for attempt in attempts:
        if isinstance(attempt.outcome, Exchange) and attempt.outcome.moves:
            return attempt.why.reason, True
    if any(attempt.outcome is Reason.NO_LOAD_DATA for attempt in attempts):
        return Reason.NO_LOAD_DATA, False
    return (Reason.NO_BUNDLES if attempts else Reason.HIT_COUNT), False
