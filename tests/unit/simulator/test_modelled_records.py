"""What the modelled cluster publishes is read back here by controller.wire alone."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from controller.model.load import Floats
from controller.simulator.cluster import ClusterShape, ModelledCluster, ModelledSweep
from controller.simulator.encode import (
    KeyValue,
    arrow_records,
    json_records,
    namespace_record,
    topic_records,
)
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.metrics import MetricRecord, NamespaceStateRecord, TopicStats, decode_metric
from controller.wire.sweep import ArrowSweep, SweepHeader
from controller.wire.sweep import BrokerSweep as JsonSweep

PERIOD = 60_000
NOW = 1_735_689_600_000
FORMS = [json_records, arrow_records]

#: Topic -> bundle, the four rates and throughputs, the four counts.
Topics = dict[str, tuple[str, list[float], list[int]]]


def modelled(**shape: int) -> ModelledCluster:
    small = {"brokers": 3, "namespaces": 2, "bundles": 8, "topics": 300}
    return ModelledCluster(ClusterShape(**{**small, **shape}), seed=1)


def decoded(record: KeyValue) -> MetricRecord:
    read = decode_metric(record[1], cluster="demo", period_ms=PERIOD, append_time_ms=NOW)
    assert read is not None
    return read


def topics_of(record: MetricRecord) -> Topics:
    """The topics of one chunk, in whatever form."""
    if isinstance(record, TopicStats):
        row = [getattr(record, name) for name in _snake((*RATES, *COUNTS))]
        return {record.topic: (record.bundle, row[:4], row[4:])}
    if isinstance(record, ArrowSweep):
        by_name = record.batch.to_pydict()
        rates, counts = ([list(r) for r in zip(*(by_name[n] for n in names), strict=True)] for names in (RATES, COUNTS))
        return dict(zip(by_name["topic"], zip(by_name["bundle"], rates, counts, strict=True), strict=True))
    assert isinstance(record, JsonSweep)
    found: Topics = {}
    for stats in record.bundle_stats:
        columns = [getattr(stats, name) for name in _snake((*RATES, *COUNTS))]
        for topic, *row in zip(stats.topic, *columns, strict=True):
            found[topic] = (stats.bundle, row[:4], row[4:])
    return found


def _snake(names: tuple[str, ...]) -> list[str]:
    return ["".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in names]


def expected(sweep: ModelledSweep) -> Topics:
    bundles = np.repeat(np.array(sweep.bundles, dtype=object), np.diff(sweep.starts)).tolist()
    rows = zip(bundles, sweep.load.tolist(), sweep.counts.tolist(), strict=True)
    return dict(zip(sweep.topics, rows, strict=True))


def load_of(topics: Topics) -> Floats:
    total: Floats = np.array([rates for _, rates, _ in topics.values()]).sum(axis=0)
    return total


@pytest.mark.parametrize("form", [*FORMS, topic_records])
def test_every_topic_is_read_back_once_with_its_bundle_rates_and_counts(
    form: Callable[[ModelledSweep], Iterator[KeyValue]],
) -> None:
    total = 0
    for sweep in modelled().sweeps(NOW):
        found: Topics = {}
        for record in form(sweep):
            assert record[0] == sweep.broker
            topics = topics_of(decoded(record))
            assert not found.keys() & topics.keys()
            found |= topics
        assert found == expected(sweep)
        total += len(found)
    assert total == 300


@pytest.mark.parametrize("form", FORMS)
def test_the_header_says_what_the_broker_says_of_itself(
    form: Callable[[ModelledSweep], Iterator[KeyValue]],
) -> None:
    sweep = next(modelled().sweeps(NOW))
    (record,) = map(decoded, form(sweep))
    assert isinstance(record, SweepHeader)
    assert (record.broker, record.interval, record.sweep_id) == (sweep.broker, NOW, sweep.sweep_id)
    assert (record.chunk, record.chunks) == (0, 1)
    resources = (record.cpu, record.memory, record.direct_memory, record.bandwidth_in, record.bandwidth_out)
    assert [r.usage for r in resources] == sweep.usage.tolist()
    assert [r.limit for r in resources] == sweep.limit.tolist()
    load = [record.msg_rate_in, record.msg_rate_out, record.msg_throughput_in, record.msg_throughput_out]
    np.testing.assert_allclose(load, load_of(expected(sweep)))
    assert (record.num_topics, record.num_bundles) == (len(sweep.topics), len(sweep.bundles))
    assert record.num_producers == sum(counts[0] for _, _, counts in expected(sweep).values()) > 0


def test_a_bundles_totals_are_the_sums_of_its_topics() -> None:
    sweep = next(modelled().sweeps(NOW))
    (record,) = map(decoded, json_records(sweep))
    assert isinstance(record, JsonSweep)
    assert [stats.bundle for stats in record.bundle_stats] == sweep.bundles
    for stats in record.bundle_stats:
        totals = stats.totals
        assert totals.topics == len(stats.topic) > 0
        assert totals.msg_throughput_out == pytest.approx(sum(stats.msg_throughput_out))
        assert totals.msg_rate_in == pytest.approx(sum(stats.msg_rate_in))
        assert (totals.producer_count, totals.consumer_count) == (
            sum(stats.producer_count),
            sum(stats.consumer_count),
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("max_bytes", [12_000, 17_000])
def test_a_large_sweep_is_cut_into_numbered_chunks_below_the_limit_even_within_a_bundle(
    form: Callable[..., Iterator[KeyValue]], max_bytes: int
) -> None:
    sweep = next(modelled(brokers=1, empty_brokers=0, namespaces=1, bundles=2, topics=400).sweeps(NOW))
    values = list(form(sweep, max_bytes=max_bytes))
    assert all(len(value) <= max_bytes for _, value in values)
    chunks = [decoded(value) for value in values]
    assert len(chunks) > 2
    assert [(c.chunk, c.chunks) for c in chunks if isinstance(c, SweepHeader)] == [
        (i, len(chunks)) for i in range(len(chunks))
    ]
    topics = Counter(topic for chunk in chunks for topic in topics_of(chunk))
    assert topics == Counter(sweep.topics)
    in_chunks = [{bundle for bundle, _, _ in topics_of(chunk).values()} for chunk in chunks]
    assert any(len([c for c in in_chunks if bundle in c]) > 1 for bundle in sweep.bundles)


def test_namespaces_are_published_with_their_boundaries_and_version() -> None:
    cluster = modelled()
    for state in cluster.changed_namespaces():
        key, value = namespace_record(cluster.name, state)
        record = decoded((key, value))
        assert isinstance(record, NamespaceStateRecord)
        assert key == record.namespace == state.namespace
        assert (record.version, record.boundaries) == (1, cluster.boundaries(state.namespace))
        assert b'"0x00000000","0x40000000"' in value
