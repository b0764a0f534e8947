"""What a controller knew when a recording begins, as records of metrics: so that a short recording is enough.

Long-term averages take in 1,000 intervals.  They become stored averages (bundle_data), which new bundles start from.
"""

from collections.abc import Iterator, Set

from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.state.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from controller.aggregate.state.bundles import KnownBundles, Seeds
from controller.aggregate.state.states import States
from controller.model.load import Floats
from controller.model.records import BrokerState, NamespaceState
from controller.wire.base import encode
from controller.wire.metrics import (
    BalancingSwitches,
    BrokerStateRecord,
    BundleData,
    Capacity,
    NamespaceStateRecord,
    StoredBundleData,
    TimeAverage,
)


def known_in(state: ShardState, cluster: str) -> Iterator[bytes]:
    """Records from which a fold begins with the averages and states of *state*, the only shard."""
    yield from _namespaces(state.namespaces, cluster)
    yield from _brokers(state.brokers, cluster)
    bundles, seeds = state.bundles, state.seeds
    known = {name for row, name in enumerate(bundles.names) if bundles.long_samples[row] > 0}
    yield from _averages(bundles, known, cluster)
    yield from _averages(seeds, set(seeds.names) - known, cluster)


def _averages(table: KnownBundles | Seeds, wanted: Set[str], cluster: str) -> Iterator[bytes]:
    for row, name in enumerate(table.names):
        if name in wanted:
            short = _average(table.short_term[row], int(table.short_samples[row]), SHORT_TERM_SAMPLES)
            long = _average(table.long_term[row], int(table.long_samples[row]), LONG_TERM_SAMPLES)
            stored = StoredBundleData(short_term_data=short, long_term_data=long, topics=0)
            yield encode(BundleData(cluster=cluster, bundle=name, bundle_data=stored))


def _average(load: Floats, samples: int, most: int) -> TimeAverage:
    rate_in, rate_out, bytes_in, bytes_out = load.tolist()
    return TimeAverage(
        max_samples=most,
        num_samples=samples,
        msg_rate_in=rate_in,
        msg_rate_out=rate_out,
        msg_throughput_in=bytes_in,
        msg_throughput_out=bytes_out,
    )


def _namespaces(states: States[NamespaceState], cluster: str) -> Iterator[bytes]:
    for state in states:
        yield encode(
            NamespaceStateRecord(
                cluster=cluster,
                namespace=state.namespace,
                version=state.version,
                boundaries=state.boundaries,
                anti_affinity_group=state.anti_affinity_group or None,
                isolation_policies=state.isolation_policies or None,
            )
        )


def _brokers(states: States[BrokerState], cluster: str) -> Iterator[bytes]:
    for state in states:
        record = BrokerStateRecord(
            cluster=cluster,
            broker=state.broker,
            version=state.version,
            failure_domain=state.failure_domain or None,
            broker_version_string=state.broker_version or None,
            persistent_topics_enabled=state.persistent_topics,
            non_persistent_topics_enabled=state.non_persistent_topics,
            balancing=None if state.balancing is None else BalancingSwitches.of(state.balancing),
            leader=state.leader,
        )
        if state.capacity:
            record = record.model_copy(update={"capacity": Capacity.model_validate(dict(state.capacity))})
        yield encode(record)
