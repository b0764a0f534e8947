"""Even out the load between the fullest and the emptiest broker, pair by pair: the extensible load manager's shedder.

Load is a broker's usage as the extensible load manager sees it, smoothed over the rounds since the broker got, gave or
split a bundle: what it had before says little about what it has now.  When the deviation over the brokers is above a
target for some rounds in a row, or one broker is far below or above the others, bundles go from the fullest broker to
the emptiest until half of what is between them has gone, then from the second fullest, and so on.  A bundle too heavy
for that may go in exchange for lighter ones.  Brokers that gave have to settle before the next round.

Before a bundle is taken, all filters are asked whether it may go to the emptiest broker, also where bundles are only
taken off.  If one is against it, the next bundle is looked at; no other broker is.

As in Pulsar, unless ``counts_gain`` is set: outside debug mode, what comes back in an exchange is not counted, so less
goes out.  As in Pulsar, unless ``swaps_keep_grace`` is set: bundles come back in an exchange that were unloaded within
the grace period.  Bundles that a guardrail guards never do.  Pulsar leaves some cases open; here a broker without
complete data neither gives nor takes, but its last data count for average and deviation until they are too old, and
brokers report once a round.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from controller.model.decision import Reason, UnloadDecision
from controller.model.load import ClusterView
from controller.model.option import option
from controller.strategies.common import options, owned_bundles
from controller.strategies.common.broker_load_data import BrokerLoad, BrokerLoadFeatures
from controller.strategies.common.top_bundles import TopBundles
from controller.strategies.protocols import Filter
from controller.strategies.shedding.transfer_shedder.exchange import Gate
from controller.strategies.shedding.transfer_shedder.load_stats import BrokerLoads
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from controller.strategies.shedding.transfer_shedder.reports import ReportedBundles
from controller.strategies.shedding.transfer_shedder.rounds import LoadStore, Round, RoundLimits
from controller.strategies.shedding.transfer_shedder.verdicts import Narrator

V = TypeVar("V")

_SECOND_MS: Final = 1000
#: Brokers settle from the end of their unloads on, which comes after T: so a T just the delay later is too early.
#: Pulsar: UnloadScheduler.execute, which notes the time when an unload is done.
_UNTIL_UNLOADED_MS: Final = 1


@dataclass(frozen=True, kw_only=True)
class TransferShedder(BrokerLoadFeatures, TopBundles):
    """See the module docstring; every option keeps broker.conf's unit."""

    target_std: float = option(
        "loadBalancerBrokerLoadTargetStd",
        default=0.25,
        unit="usage",
        meaning="load is uneven when its standard deviation over the brokers is above this",
    )
    hit_count_threshold: int = option(
        "loadBalancerSheddingConditionHitCountThreshold",
        default=3,
        unit="rounds",
        meaning="load moves when it was uneven in more rounds in a row than this",
    )
    transfer: bool = option(
        "loadBalancerTransferEnabled",
        default=True,
        meaning="send bundles to the emptiest broker; else take them off, for the placement to choose",
    )
    max_brokers: int = option(
        "loadBalancerMaxNumberOfBrokerSheddingPerCycle",
        default=3,
        unit="brokers",
        meaning="maximum number of brokers that give bundles in one round",
    )
    shedding_delay_seconds: int = option(
        "loadBalanceSheddingDelayInSeconds",
        default=180,
        unit="s",
        meaning="no round before the brokers that gave have settled for so long",
    )
    load_data_ttl_seconds: int = option(
        "loadBalancerBrokerLoadDataTTLInSeconds",
        default=1800,
        unit="s",
        meaning="brokers whose data are older than this do not count for average and deviation",
    )
    overloaded_percent: int = options.overloaded_percent(
        "a broker above this, and above the average by the target deviation, gives even if load is even"
    )
    debug: bool = option(
        "loadBalancerDebugModeEnabled",
        default=False,
        meaning="in Pulsar: log more, and by mistake count what comes back in an exchange",
    )
    counts_gain: bool = option(
        "trimtabTransferShedderCountsGain",
        default=False,
        meaning="TransferShedder always counts what comes back in an exchange, not only in debug mode",
    )
    swaps_keep_grace: bool = option(
        "trimtabTransferShedderSwapsKeepGracePeriod",
        default=False,
        meaning="true: TransferShedder takes no bundle back in an exchange that was unloaded within the grace period;"
        " Pulsar does",
    )
    #: Asked in this order of each bundle before it is taken; no option.
    filters: tuple[Filter, ...] = field(default=(), metadata={"meaning": "what says where a bundle may go"})

    def initial_memory(self) -> TransferHistory:
        """No broker has reported, and load was never uneven."""
        return TransferHistory()

    def decide(self, view: ClusterView, memory: TransferHistory) -> tuple[UnloadDecision, TransferHistory]:
        """Plan both ends of every move, the fullest broker first."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.OUTDATED_DATA if view.missing else Reason.NO_BROKERS), memory
        memory = self.observed(view, memory)
        loads = _loads(view, memory)
        bundles = ReportedBundles(view, self, self.filters, swaps_keep_grace=self.swaps_keep_grace)
        store = LoadStore(
            now_ms=view.as_of_ms,
            loads=loads,
            order=np.argsort(loads.load[: len(view.brokers)], kind="stable"),
            available=(*view.brokers.names, *_without_data(view, memory)),
            bundles_of=bundles.of,
            gate=Gate(stays=bundles.stays, barred=bundles.barred, retained=bundles.retained),
        )
        this_round = self.plan(store, memory.hit_count, self._cooling(store.available, view.as_of_ms, memory))
        decision = self._narrator.decision(store, this_round)
        gave = {unload.source: view.as_of_ms + _UNTIL_UNLOADED_MS for unload in decision.unloads}
        return decision, replace(
            memory,
            hit_count=this_round.hit_count,
            recently_unloaded_brokers={**this_round.ready.recently_unloaded, **gave},
        )

    def _cooling(self, available: Collection[str], now_ms: int, memory: TransferHistory) -> dict[str, int]:
        """Brokers that gave, and when; one that is gone is not forgotten before it would have settled."""
        active, since = set(available), now_ms - self.shedding_delay_seconds * _SECOND_MS
        return {name: t for name, t in memory.recently_unloaded_brokers.items() if name in active or t > since}

    def observed(self, view: ClusterView, memory: TransferHistory) -> TransferHistory:
        """The memory with the averages after the interval of *view*; those of brokers that left are forgotten.

        A broker that got, gave or split a bundle begins its averages anew, with this interval.
        Pulsar: BrokerLoadData.update, BrokerLoadDataReporter.handleEvent.
        """
        brokers, at = view.brokers, view.as_of_ms
        if all(memory.updated_at_ms.get(name) == at for name in brokers.names):
            return memory
        owned = view.owned_digests
        known = np.array([name in memory.weighted_max_ema for name in brokers.names], np.bool_)
        before = BrokerLoad(
            max_resource_usage=np.zeros(len(brokers)),
            weighted_max_ema=np.array([memory.weighted_max_ema.get(name, 0.0) for name in brokers.names]),
            msg_throughput_ema=np.array([memory.msg_throughput_ema.get(name, 0.0) for name in brokers.names]),
            reported=known & ~owned_bundles.changed(memory.bundles, owned),
        )
        now = self.updated(before, brokers.usage, brokers.limit, brokers.throughput)

        def known_of(before: Mapping[str, V], now: Iterable[V]) -> dict[str, V]:
            return owned_bundles.remembered(before, dict(zip(brokers.names, now, strict=True)), view)

        return replace(
            memory,
            weighted_max_ema=known_of(memory.weighted_max_ema, now.weighted_max_ema.tolist()),
            msg_throughput_ema=known_of(memory.msg_throughput_ema, now.msg_throughput_ema.tolist()),
            updated_at_ms=known_of(memory.updated_at_ms, [at] * len(brokers)),
            bundles=owned_bundles.remembered(memory.bundles, owned, view),
        )

    @property
    def _narrator(self) -> Narrator:
        return Narrator(
            target_std=self.target_std,
            hit_count_threshold=self.hit_count_threshold,
            delay_ms=self.shedding_delay_seconds * _SECOND_MS,
        )

    def plan(self, store: LoadStore, hit_count: int, recently_unloaded: Mapping[str, int]) -> Round:
        """One round on *store*, after *hit_count* uneven ones, with the T at which brokers were unloaded last.

        Pulsar: findBundlesForUnloading.
        """
        limits = RoundLimits(
            target_std=self.target_std,
            overloaded=self.overloaded_percent / 100,
            hit_count_threshold=self.hit_count_threshold,
            max_brokers=self.max_brokers,
            delay_ms=self.shedding_delay_seconds * _SECOND_MS,
            ttl_ms=self.load_data_ttl_seconds * _SECOND_MS,
            transfer=self.transfer,
            counts_gain=self.debug or self.counts_gain,
        )
        return limits.plan(store, hit_count, recently_unloaded)


def _without_data(view: ClusterView, memory: TransferHistory) -> list[str]:
    """The active brokers without data; not those that this shedder alone is not to see, as they are drained."""
    return [name for name in view.missing if memory.updated_at_ms.get(name) != view.as_of_ms]


def _loads(view: ClusterView, memory: TransferHistory) -> BrokerLoads:
    """The load of the view's brokers after this interval, then the last known of those that are missing."""
    brokers, at = view.brokers, memory.updated_at_ms
    missing = [name for name in _without_data(view, memory) if name in at]
    names = (*brokers.names, *missing)
    return BrokerLoads(
        names=names,
        load=np.array([memory.weighted_max_ema[name] for name in names]),
        throughput_ema=np.array([memory.msg_throughput_ema[name] for name in names]),
        # Not used: missing brokers neither give nor take.
        throughput=np.append(brokers.throughput, np.zeros(len(missing))),
        updated_at_ms=np.array([at[name] for name in names], np.int64),
    )
