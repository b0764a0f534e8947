"""Records as rows of the fold, both ways, with absolute numbers."""

import json
import struct
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from controller.aggregate.columns.rows import (
    BUNDLE,
    FACT,
    METRICS,
    REPORT,
    REPORT_BUNDLE,
    RESULTS,
    SWEEP,
    TICK,
    TOPIC,
    Rows,
)
from controller.aggregate.shard.fold import DetailLimits
from controller.aggregate.state.states import States
from controller.model.balancing import Balancing
from controller.model.errors import WireError
from controller.model.names import topic_hash
from controller.model.records import (
    BrokerState,
    BundleSeed,
    CommandResult,
    NamespaceState,
    Tick,
)
from controller.model.topic_kinds import PERSISTENT, UNLISTED
from controller.wire.metrics import decode_metric
from controller.wire.packed_rows import rows_from_columns
from controller.wire.results import decode_result
from controller.wire.rows import Located, fact_of, rows_from_records
from controller.wire.sweep_load import in_stats
from tests.records import (
    CLUSTER,
    LEFT,
    PERIOD,
    RIGHT,
    T,
    as_bytes,
    broker_load,
    broker_state,
    broker_sweep,
    bundle_data,
    bundle_stats,
    load_report,
    namespace_state,
    result,
    tick,
    topic_stats,
)

BROKER = "broker-1:8080"
NEVER_NEAR = DetailLimits(topics=10**9, sessions=10**9, msg_rate=1e18, throughput=1e18)
TOPICS = [f"persistent://tenant/ns/topic-{i}" for i in range(2)]


def decoded(record: dict[str, Any]) -> Any:
    if record.get("type") == "result":
        return decode_result(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD)
    return decode_metric(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD)


def rows_of(*records: dict[str, Any], limits: DetailLimits = NEVER_NEAR, files: bool = False) -> Rows:
    located = [
        Located(source=METRICS, partition=3, offset=10 + i, file=f"{i}.jsonl", record=decoded(record))
        for i, record in enumerate(records)
    ]
    return rows_from_records(located, limits, files=files)


def test_a_sweep_is_a_row_of_its_own_numbers_and_a_row_for_each_bundle() -> None:
    other = bundle_stats(RIGHT, 0, totals={"msgRateIn": 1.0, "msgRateOut": 2.0, "msgThroughputIn": 3.0005,
        "msgThroughputOut": 4.0, "producerCount": 5, "consumerCount": 6, "topics": 7})  # fmt: skip
    resources: dict[str, Any] = {
        name: {"usage": 10.0 * i, "limit": 10.0 * i + 1}
        for i, name in enumerate(("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"), 1)
    }
    rows = rows_of(
        broker_sweep(
            bundleStats=[bundle_stats(LEFT, msgRateIn=[0.25, 1.5]), other],
            chunk=1, chunks=4, numTopics=8, numBundles=9, msgRateIn=0.5, msgRateOut=1.5, msgThroughputIn=2.5,
            msgThroughputOut=3.5, **resources,
        )
    )  # fmt: skip
    assert rows.kind.tolist() == [SWEEP, BUNDLE, BUNDLE]
    for column, value in (("interval", T), ("chunk", 1), ("chunks", 4), ("last_update", T - 500), ("source", METRICS)):
        assert getattr(rows, column).tolist() == [value] * 3
    assert (rows.partition.tolist(), rows.offset.tolist(), rows.file) == ([3] * 3, [10] * 3, None)
    assert (rows.broker.tolist(), rows.sweep.tolist()) == ([BROKER] * 3, [f"{BROKER}@{T}"] * 3)
    assert rows.bundle.tolist() == ["", LEFT, RIGHT]
    assert rows.stats.tolist() == [
        [0.0] * 7,
        # Two topics, added; thousandths of the rates.
        [1750.0, 42000.0, 2100500.0, 4201000.0, 2.0, 4.0, 2.0],
        # Without topics the totals stand; halves of a thousandth go to the even one.
        [1000.0, 2000.0, 3000.0, 4000.0, 5.0, 6.0, 7.0],
    ]
    assert rows.kinds.tolist() == [0, PERSISTENT, UNLISTED]
    assert [(row, numbers.tolist()) for row, numbers in rows.numbers.items()] == [
        (0, [10, 11, 20, 21, 30, 31, 40, 41, 50, 51, 0.5, 1.5, 2.5, 3.5, 8, 9, 0])
    ]
    assert rows.facts == {}
    assert rows.detail_size.tolist() == [0, 0, 0]
    assert rows.topic.tolist() == [[0] * 3] * 3


@pytest.mark.parametrize(
    ("limit", "value"), [("topics", 2), ("sessions", 3), ("msg_rate", 31.5), ("throughput", 3150.75)]
)
def test_topics_are_kept_of_bundles_whose_totals_reach_one_limit(limit: str, value: float) -> None:
    far = {"topics": 10**9, "sessions": 10**9, "msg_rate": 1e18, "throughput": 1e18}
    at, above = (DetailLimits(**{**far, limit: each}) for each in (value, value + (limit in far and 1)))
    rows = rows_of(broker_sweep(bundleStats=[bundle_stats(LEFT, msgRateIn=[0.25, 1.5])]), limits=at)
    assert rows.detail_size.tolist() == [0, 2]
    assert rows.detail_position.tolist() == [topic_hash(topic) for topic in TOPICS]
    assert rows.detail_load.tolist() == [[0.25, 21.0, 1050.25, 2100.5], [1.5, 21.0, 1050.25, 2100.5]]
    rows = rows_of(broker_sweep(), limits=above)
    assert (rows.detail_size.tolist(), rows.detail_load.shape) == ([0, 0], (0, 4))


def test_a_report_is_a_row_of_its_numbers_and_a_row_for_each_bundle_of_its_last_stats() -> None:
    report = load_report()
    rows = rows_of(broker_load())
    bundles = list(report["lastStats"])
    assert rows.kind.tolist() == [REPORT, *[REPORT_BUNDLE] * len(bundles)]
    assert rows.bundle.tolist() == ["", *bundles]
    assert set(rows.broker.tolist()) == {"127.0.0.1:18080"}
    assert set(rows.last_update.tolist()) == {report["lastUpdate"]}
    assert (set(rows.sweep.tolist()), set(rows.chunks.tolist()), set(rows.interval.tolist())) == ({""}, {0}, {-1})
    for name, stats in zip(bundles, rows.stats[1:].tolist(), strict=True):
        told = report["lastStats"][name]
        rates = [told[each] for each in ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")]
        assert stats[:4] == [round(rate * 1000) for rate in rates]
        assert stats[4:] == [told["producerCount"], told["consumerCount"], told["topics"]]
    assert set(rows.kinds[1:].tolist()) == {UNLISTED}
    assert rows.numbers[0].tolist()[10:-1] == [
        report[each]
        for each in ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut", "numTopics", "numBundles")
    ]


def test_a_topics_statistics_are_a_row_with_its_hash_and_its_place_on_the_ring() -> None:
    rows = rows_of(topic_stats(), topic_stats(topic=TOPICS[1]), topic_stats(bundle=RIGHT))
    assert rows.kind.tolist() == [TOPIC] * 3
    assert (rows.broker.tolist(), rows.bundle.tolist(), rows.offset.tolist()) == (
        [BROKER] * 3,
        [LEFT, LEFT, RIGHT],
        [10, 11, 12],
    )
    assert rows.stats[0].tolist() == [10500.0, 21000.0, 1050250.0, 2100500.0, 1.0, 2.0, 1.0]
    first, second = (topic_hash(topic) for topic in TOPICS)
    assert rows.topic[:, 1].tolist() == [first, second, first]
    assert rows.topic[0, 0] == rows.topic[2, 0] != rows.topic[1, 0]


def test_ticks_and_facts_are_rows_of_their_own() -> None:
    rows = rows_of(tick(), namespace_state(), tick(T + PERIOD), result(), files=True)
    assert rows.kind.tolist() == [TICK, FACT, TICK, FACT]
    assert rows.interval.tolist() == [T, -1, T + PERIOD, -1]
    assert rows.file is not None
    assert rows.file.tolist() == ["0.jsonl", "1.jsonl", "2.jsonl", "3.jsonl"]
    assert [type(rows.facts[row]) for row in range(4)] == [Tick, NamespaceState, Tick, CommandResult]


def fact(record: dict[str, Any]) -> Any:
    return fact_of(decoded(record))


def test_a_tick_says_its_partitions_and_its_roster_by_name() -> None:
    roster = [{"broker": "b:1", "sweepId": None}, {"broker": "a:1", "sweepId": "s"}]
    told = fact(tick(partitions={"metrics": 4, "results": 0}, roster=roster))
    assert told == Tick(interval=T, metrics_partitions=4, results_partitions=0, roster=(("a:1", "s"), ("b:1", "")))
    assert fact(tick(roster=None)).roster is None
    assert fact(tick(roster=[])).roster == ()


def test_a_result_says_owners_or_none() -> None:
    assert astuple(fact(result())) == ("c-1", "done", "", BROKER, "broker-2:8080")
    assert astuple(fact(result(ownerBefore=None, ownerAfter=None)))[3:] == ("", "")


def test_a_namespace_says_its_boundaries_and_policies() -> None:
    told = fact(namespace_state(antiAffinityGroup="g"))
    assert (told.namespace, told.version, told.boundaries) == ("tenant/ns", 3, (0, 0x80000000, 0xFFFFFFFF))
    assert (told.anti_affinity_group, tuple(told.isolation_policies)) == ("g", ())
    assert fact(namespace_state()).anti_affinity_group == ""


@pytest.mark.parametrize(("said", "enabled"), [(None, True), (True, True), (False, False)])
def test_a_broker_takes_topics_of_a_kind_unless_it_says_that_it_does_not(said: bool | None, enabled: bool) -> None:
    told = fact(broker_state(persistentTopicsEnabled=said, brokerVersionString="4.0.8"))
    assert (told.persistent_topics, told.non_persistent_topics) == (enabled, True)
    assert fact(broker_state(nonPersistentTopicsEnabled=said)).non_persistent_topics == enabled
    assert (told.broker, told.version, told.failure_domain, told.broker_version) == (BROKER, 0, "rack-1", "4.0.8")


SWITCHES = {
    "loadBalancerEnabled": True,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerAutoBundleSplitEnabled": False,
}


def test_a_broker_that_says_nothing_of_its_balancing_is_not_taken_to_be_off() -> None:
    assert fact(broker_state()).balancing is fact(broker_state(balancing=None)).balancing is None
    sheds = Balancing(enabled=True, shedding=True, splitting=False)
    assert fact(broker_state(balancing=SWITCHES)).balancing == sheds
    extensible = fact(broker_state(balancing={**SWITCHES, "extensibleLoadManager": True, "later": 1}))
    assert extensible.balancing == sheds._replace(extensible=True)


@pytest.mark.parametrize("wrong", ["true", 1, None, [], {}])
@pytest.mark.parametrize("key", [*SWITCHES])
def test_a_record_whose_switch_is_no_flag_is_refused(key: str, wrong: Any) -> None:
    with pytest.raises(WireError):
        fact(broker_state(balancing={**SWITCHES, key: wrong}))
    with pytest.raises(WireError):
        fact(broker_state(balancing={name: value for name, value in SWITCHES.items() if name != key}))


def test_switches_come_back_from_the_state_of_a_shard() -> None:
    states = [fact(broker_state(balancing=SWITCHES)), fact(broker_state(broker="b", balancing=None))]
    kept = States[BrokerState].of(states)
    assert [*kept] == sorted(states, key=lambda each: each.broker)
    assert "balancing" not in States[BrokerState].of(states[1:]).text, "an earlier release reads it"


def test_a_brokers_capacity_is_listed_by_wire_name() -> None:
    told = fact(broker_state(capacity={"memory": 2.0, "bandwidthOut": 1.0, "directMemory": None}))
    assert told.capacity == (("bandwidthOut", 1.0), ("memory", 2.0))
    bare = fact(broker_state(capacity=None, failureDomain=None))
    assert (bare.capacity, bare.failure_domain, bare.broker_version) == ((), "", "")
    assert isinstance(bare, BrokerState)


def average(samples: int, first: float) -> dict[str, Any]:
    rates = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
    return {"maxSamples": 10, "numSamples": samples, **{name: first + i for i, name in enumerate(rates)}}


def test_stored_averages_and_quotas_are_what_a_bundle_starts_from() -> None:
    stored = {"shortTermData": average(3, 1.0), "longTermData": average(30, 11.0), "topics": 2}
    assert fact(bundle_data(bundleData=stored)) == BundleSeed(
        bundle=LEFT,
        short_term_samples=3,
        short_term=(1.0, 2.0, 3.0, 4.0),
        long_term_samples=30,
        long_term=(11.0, 12.0, 13.0, 14.0),
    )
    quota = {
        "msgRateIn": 1.0,
        "msgRateOut": 2.0,
        "bandwidthIn": 3.0,
        "bandwidthOut": 4.0,
        "memory": 9.0,
        "dynamic": True,
    }
    assert fact(bundle_data(bundleData=None, resourceQuota=quota)) == BundleSeed(
        bundle=LEFT,
        short_term_samples=10,
        short_term=(1.0, 2.0, 3.0, 4.0),
        long_term_samples=1000,
        long_term=(1.0, 2.0, 3.0, 4.0),
    )


def test_stats_are_whole_without_a_negative_zero_and_end_with_64_bits() -> None:
    stats = in_stats(np.array([-0.0, 0.0005, 0.0015, 1e30, 2.0**70, 0.0, 3.0]))
    assert stats.tolist() == [0.0, 0.0, 2.0, 2.0**63, 2.0**63, 0.0, 3.0]
    assert not np.signbit(stats[0])


# From Spark's columns.


def longs(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def doubles(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def columns(*rows: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The columns of packed *rows*, each said by what it has."""
    usual: dict[str, Any] = {
        "source": METRICS, "partition": 0, "offset": 0, "file": "", "interval": -1, "broker": "", "sweep": "",
        "chunk": 0, "chunks": 0, "last_update": 0, "bundles": "", "stats": None, "topics": None,
        "numbers": None, "detail_size": None, "detail_position": None, "detail_load": None, "detail_segment": None,
        "body": None,
    }  # fmt: skip
    made = [usual | row for row in rows]
    return {name: np.array([row[name] for row in made], object) for name in made[0]}


def test_a_packed_row_is_unpacked_to_one_for_each_of_its_bundles() -> None:
    said = {"interval": T, "broker": BROKER, "sweep": "s", "chunk": 1, "chunks": 2, "last_update": 7}
    at = {"partition": 5, "offset": 6, "file": "f.jsonl"}
    found = rows_from_columns(
        columns(
            {"kind": SWEEP, "numbers": doubles(*range(17)), **said, **at},
            {
                "kind": BUNDLE, "bundles": f"{LEFT}\n{RIGHT}", **said, **at,
                "stats": longs(*range(7), 1, *range(7, 14), 2),
                "detail_size": longs(2, 1), "detail_position": longs(71, 72, 73), "detail_load": doubles(*range(12)),
                "detail_segment": longs(0, -5, 0),
            },
            {"kind": BUNDLE, "bundles": "tenant/z/0x00000000_0xffffffff", "stats": longs(*range(20, 27), 3), **said},
            {
                "kind": TOPIC, "bundles": f"{RIGHT}\n{LEFT}", "broker": "a:1\nb:1",
                "stats": longs(*range(60, 67), 2, *range(67, 74), 1, *range(74, 81), 1),
                "topics": longs(14, 1, 0, -9, 8, 0, 12, 0, 1, 7, 6, -3, 13, 1, 1, 5, 4, 0),
                "offset": 12, "partition": 4,
            },
            {"kind": TOPIC, "bundles": LEFT, "stats": longs(*range(30, 37), 2), "topics": longs(11, 0, 0, -2, 3, 0)},
            {"kind": REPORT, "numbers": doubles(*range(100, 117)), "broker": "r:1"},
            {"kind": REPORT_BUNDLE, "bundles": RIGHT, "stats": longs(*range(40, 47), 4), "broker": "r:1"},
            {"kind": TICK, "interval": T, "body": json.dumps(tick()), "offset": 9},
        ),
        cluster=CLUSTER, period_ms=PERIOD, files=True,
    )  # fmt: skip
    assert found.kind.tolist() == [SWEEP, BUNDLE, BUNDLE, BUNDLE, *[TOPIC] * 4, REPORT, REPORT_BUNDLE, TICK]
    swept = ["", LEFT, RIGHT, "tenant/z/0x00000000_0xffffffff"]
    assert found.bundle.tolist() == [*swept, RIGHT, LEFT, LEFT, LEFT, "", RIGHT, ""]
    assert found.broker.tolist() == [BROKER] * 4 + ["b:1", "a:1", "b:1", "", "r:1", "r:1", ""]
    assert found.sweep.tolist() == ["s"] * 4 + [""] * 7
    assert found.interval.tolist() == [T] * 4 + [-1] * 6 + [T]
    assert (found.chunk.tolist(), found.chunks.tolist()) == ([1] * 4 + [0] * 7, [2] * 4 + [0] * 7)
    assert found.last_update.tolist() == [7] * 4 + [0] * 7
    assert found.partition.tolist() == [5] * 3 + [0] + [4] * 3 + [0] * 4
    assert found.offset.tolist() == [6] * 3 + [0] + [14, 12, 13, 11] + [0] * 2 + [9]
    assert found.file is not None
    assert found.file.tolist() == ["f.jsonl"] * 3 + [""] * 8
    zero = [0.0] * 7
    assert found.stats.tolist() == [
        zero, [*range(7)], [*range(7, 14)], [*range(20, 27)],
        [*range(60, 67)], [*range(67, 74)], [*range(74, 81)], [*range(30, 37)],
        zero, [*range(40, 47)], zero,
    ]  # fmt: skip
    assert found.kinds.tolist() == [0, 1, 2, 3, 2, 1, 1, 2, 0, 4, 0]
    assert found.topic.tolist() == [[0] * 3] * 4 + [[-9, 8, 0], [7, 6, -3], [5, 4, 0], [-2, 3, 0]] + [[0] * 3] * 3
    assert found.detail_size.tolist() == [0, 2, 1, *[0] * 8]
    assert found.detail_position.tolist() == [71, 72, 73]
    assert found.detail_load.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert found.detail_segment.tolist() == [0, -5, 0]
    assert {row: numbers.tolist() for row, numbers in found.numbers.items()} == {
        0: [*range(17)],
        8: [*range(100, 117)],
    }
    assert list(found.facts) == [10]
    assert found.facts[10] == fact(tick())


def test_facts_are_decoded_by_their_topic_and_those_that_do_not_decode_are_left_out() -> None:
    bodies = [
        (FACT, METRICS, namespace_state()),
        (FACT, METRICS, {"v": 1}),
        (FACT, RESULTS, result()),
        (FACT, RESULTS, namespace_state()),
        (FACT, METRICS, namespace_state(cluster="other")),
        (TICK, RESULTS, tick(roster=None)),
        (TICK, METRICS, tick(T + 1)),
    ]
    found = rows_from_columns(
        columns(*({"kind": kind, "source": source, "body": json.dumps(body)} for kind, source, body in bodies)),
        cluster=CLUSTER, period_ms=PERIOD, files=False,
    )  # fmt: skip
    assert found.file is None
    assert {row: type(each) for row, each in found.facts.items()} == {0: NamespaceState, 2: CommandResult, 5: Tick}
    assert found.source.tolist() == [source for _, source, _ in bodies]


def test_the_partitions_of_rows_are_each_named_once_by_source_and_number() -> None:
    placed = [(RESULTS, 0), (METRICS, 3), (RESULTS, 2), (METRICS, 3), (METRICS, 0)]
    located = [
        Located(source=source, partition=partition, offset=i, record=decoded(broker_sweep()))
        for i, (source, partition) in enumerate(placed)
    ]
    rows = rows_from_records(located, NEVER_NEAR)
    assert [partition for partition, _ in rows.by_partition()] == sorted(set(placed))
    assert not [*rows_from_records([], NEVER_NEAR).by_partition()]


def test_what_is_no_fact_is_an_error() -> None:
    with pytest.raises(TypeError, match="TopicStats is not a fact"):
        fact(topic_stats())
