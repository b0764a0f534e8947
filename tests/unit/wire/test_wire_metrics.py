"""Records of the metrics topic: what is read, what is refused, and with which word."""

from typing import Any

import numpy as np
import pytest

from controller.model.errors import WireError
from controller.model.resource_usage import percent_usage
from controller.wire.base import encode
from controller.wire.metrics import (
    MODELS,
    BrokerLoadRecord,
    BundleData,
    MetricRecord,
    NamespaceStateRecord,
    TickRecord,
    decode_metric,
)
from controller.wire.sweep import BrokerSweep
from tests.records import (
    CLUSTER,
    LEFT,
    METRICS,
    PERIOD,
    RIGHT,
    SAMPLES,
    T,
    as_bytes,
    broker_load,
    broker_state,
    broker_sweep,
    bundle_data,
    bundle_stats,
    load_report,
    namespace_state,
    tick,
    topic_stats,
    without,
)


def decode(record: Any, **options: Any) -> MetricRecord | None:
    value = record if isinstance(record, bytes) else as_bytes(record)
    return decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, **options)


def refusal(record: Any, **options: Any) -> str:
    with pytest.raises(WireError) as caught:
        decode(record, **options)
    return f"{caught.value.reason}: {caught.value.detail}"


def test_there_is_a_sample_of_every_type() -> None:
    assert set(METRICS) == set(MODELS)


@pytest.mark.parametrize("kind", METRICS)
def test_what_was_decoded_encodes_to_what_decodes_to_the_same(kind: str) -> None:
    record = decode(METRICS[kind])
    assert record is not None
    assert record.type == kind
    assert decode(encode(record)) == record


@pytest.mark.parametrize("kind", METRICS)
def test_unknown_fields_are_ignored(kind: str) -> None:
    assert decode({**METRICS[kind], "newInV1": {"x": [1]}}) == decode(METRICS[kind])


@pytest.mark.parametrize("size", [4096, -1, 2**63, None, "x"])
def test_sizes_of_topics_which_nobody_reads_may_be_anything(size: Any) -> None:
    assert decode(topic_stats(storageSize=size, backlogSize=size)) == decode(topic_stats())
    of_bundle = bundle_stats(storageSize=[size], backlogSize=size)
    assert decode(broker_sweep(bundleStats=[of_bundle])) == decode(broker_sweep())


@pytest.mark.parametrize(("kind", "field"), [(k, f) for k, r in METRICS.items() for f in r if f != "cluster"])
def test_a_missing_field_is_named(kind: str, field: str) -> None:
    record = without(METRICS[kind], field)
    if field in ("failureDomain", "capacity", "roster"):
        assert decode(record) is not None
    else:
        assert refusal(record).startswith(f"missing_field: {field}")


def test_a_field_is_known_by_its_name_on_the_wire_alone() -> None:
    assert decode({**broker_sweep(), "sweep_id": "another"}) == decode(broker_sweep())
    assert refusal({**without(broker_sweep(), "sweepId"), "sweep_id": "1"}).startswith("missing_field: sweepId")


@pytest.mark.parametrize("kind", METRICS)
def test_a_record_without_cluster_is_refused(kind: str) -> None:
    assert refusal(without(METRICS[kind], "cluster")).startswith("missing_field: cluster")


@pytest.mark.parametrize("kind", METRICS)
def test_records_of_another_cluster_are_ignored_whatever_they_hold(kind: str) -> None:
    assert decode({**METRICS[kind], "cluster": "other"}) is None
    assert decode({**METRICS[kind], "cluster": "other", "v": 2, "interval": 7}) is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not_json"),
        (b'{"v": 1', "not_json"),
        (b'{"v": 1, "type": "\xff"}', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b"17", "not_json: expected an object, found int"),
        (b"[]", "not_json: expected an object, found list"),
        (as_bytes(METRICS["topic_stats"])[:-1] + b', "unknown": NaN}', "not_json: "),
        (as_bytes(load_report())[:-1] + b', "unknown": NaN}', "not_json: "),
        (as_bytes(METRICS["topic_stats"])[:-1] + b', "unknown": -Infinity}', "not_json: "),
        (b'{"type": "tick"}', "missing_field: v"),
        (b'{"v": 1}', "missing_field: type"),
        (b'{"v": 2, "type": "tick"}', "unknown_version: v is 2, known: 1"),
        (b'{"v": true, "type": "tick"}', "unknown_version: v is True, known: 1"),
        (b'{"v": 1.0, "type": "tick"}', "unknown_version: v is 1.0, known: 1"),
        (b'{"v": "1", "type": "tick"}', "unknown_version: v is '1', known: 1"),
        (b'{"v": 1, "type": "tock"}', "unknown_type: type is 'tock', known: broker_sweep, "),
        (b'{"v": 1, "type": ["tick"]}', "unknown_type: type is ['tick']"),
    ],
)
def test_what_is_no_record_is_refused_with_its_reason(value: Any, reason: str) -> None:
    assert refusal(value).startswith(reason)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("NaN", "should be a finite number, found nan"),
        ("Infinity", "finite number, found inf"),
        ("1e999", "finite number, found inf"),
        ("-0.5", "greater than or equal to 0, found -0.5"),
        ("1.1e12", "less than or equal to 1000000000000, found 1100000000000.0"),
        ('"12"', "valid number, found '12'"),
        ("true", "valid number, found True"),
        ("null", "valid number, found None"),
    ],
)
def test_a_rate_must_be_a_number_that_can_be(value: Any, told: str) -> None:
    record = as_bytes(topic_stats(msgRateIn="HERE")).replace(b'"HERE"', value.encode())
    refused = refusal(record)
    assert refused.startswith("bad_value: msgRateIn: ")
    assert told in refused


@pytest.mark.parametrize("count", [-1, 1.5, 1 << 63, "1", None])
def test_a_count_must_be_a_whole_number_that_fits(count: Any) -> None:
    assert refusal(topic_stats(producerCount=count)).startswith("bad_value: producerCount: ")


def test_a_bad_value_is_named_by_where_it_lies() -> None:
    spoilt = bundle_stats(msgRateOut=[1.0, -2.0])
    refused = refusal(broker_sweep(bundleStats=[bundle_stats(RIGHT), spoilt]))
    assert refused.startswith("bad_value: bundleStats.1.msgRateOut.1: ")
    assert refused.endswith("found -2.0")


def test_arrays_of_a_bundle_must_be_as_long_as_its_topics() -> None:
    short = bundle_stats(msgRateIn=[1.0])
    assert refusal(broker_sweep(bundleStats=[short])).endswith("msgRateIn has 1 values for 2 topics")
    absent = without(bundle_stats(), "consumerCount")
    assert refusal(broker_sweep(bundleStats=[absent])) == "missing_field: bundleStats.0: consumerCount is missing"


def test_a_chunk_lists_a_bundle_once() -> None:
    assert (
        refusal(broker_sweep(bundleStats=[bundle_stats(), bundle_stats()]))
        == "bad_value: bundleStats lists a bundle twice"
    )


def test_a_bundle_may_come_with_its_totals_alone() -> None:
    stats = bundle_stats()
    record = decode(broker_sweep(bundleStats=[{"bundle": stats["bundle"], "totals": stats["totals"]}]))
    assert isinstance(record, BrokerSweep)
    assert record.bundle_stats[0].topic == ()
    assert record.bundle_stats[0].totals.topics == 2


@pytest.mark.parametrize(
    "bundle",
    ["tenant/ns", "tenant/ns/0x00000000-0x80000000", "tenant/ns/0x80000000_0x00000000", "ns/0x00000000_0x80000000", ""],
)
def test_an_impossible_bundle_is_refused_wherever_it_is_named(bundle: str) -> None:
    report = load_report()
    report["lastStats"] = dict.fromkeys([bundle], next(iter(report["lastStats"].values())))
    for record in (
        topic_stats(bundle=bundle),
        bundle_data(bundle=bundle),
        broker_sweep(bundleStats=[bundle_stats(bundle)]),
        broker_load(report=report),
        report,
    ):
        assert refusal(record).startswith("impossible_bundle: ")


def test_heartbeat_bundles_and_those_of_v1_namespaces_are_possible() -> None:
    for bundle in ("pulsar/127.0.0.1:8080/0x00000000_0xffffffff", "prop/cluster/ns/0x00000000_0xffffffff"):
        assert decode(topic_stats(bundle=bundle)) is not None


def test_an_interval_off_the_period_is_refused() -> None:
    for record in (broker_sweep(interval=T + 1), tick(T + 1)):
        assert refusal(record) == f"misaligned_interval: {T + 1} is not a multiple of {PERIOD} ms"


def test_an_interval_may_lie_one_period_ahead_of_the_log_and_no_further() -> None:
    for record in (broker_sweep(), tick()):
        assert decode(record, append_time_ms=T - PERIOD) is not None
        refused = refusal(record, append_time_ms=T - PERIOD - 1)
        assert refused == f"future_interval: {T}, but the record was appended at {T - PERIOD - 1}"


def test_a_record_over_the_limit_is_not_even_parsed() -> None:
    assert refusal(b"x" * 101, max_bytes=100) == "too_large: 101 bytes, allowed: 100"
    assert refusal(b"x" * 100, max_bytes=100).startswith("not_json")


def test_chunk_numbers_start_at_0() -> None:
    assert decode(broker_sweep(chunk=1, chunks=2)) is not None
    assert refusal(broker_sweep(chunk=2, chunks=2)) == "bad_value: chunk 2 (from 0) of 2"


@pytest.mark.parametrize("n", [1, 2])
def test_a_load_report_saved_from_a_real_broker_is_read_as_it_is(n: int) -> None:
    record = decode((SAMPLES / f"load_report_{n}.json").read_bytes())
    assert isinstance(record, BrokerLoadRecord)
    assert record.broker_name == f"127.0.0.1:1808{n - 1}"
    assert record.cluster == CLUSTER
    assert {bundle: stats.topics for bundle, stats in record.report.last_stats.items()} == {
        bundle: stats["topics"] for bundle, stats in load_report(n)["lastStats"].items()
    }


def test_load_reports_are_read_as_they_lie_in_zookeeper() -> None:
    lines = (SAMPLES / "loadbalance_brokers.jsonl").read_bytes().splitlines()
    records = [decode(line) for line in lines]
    assert [record.broker_name for record in records if isinstance(record, BrokerLoadRecord)] == [
        "127.0.0.1:18080",
        "127.0.0.1:18081",
        "127.0.0.1:18082",
    ]


def test_a_load_report_of_an_older_broker_is_known_by_its_fields() -> None:
    assert decode(without(load_report(), "loadReportType")) == decode(load_report())


def test_a_load_report_is_named_by_its_tls_address_where_there_is_no_other() -> None:
    record = decode(load_report(webServiceUrl=None, webServiceUrlTls="https://broker-7:8443"))
    assert isinstance(record, BrokerLoadRecord)
    assert record.broker_name == "broker-7:8443"
    assert refusal(load_report(webServiceUrl=None)) == "missing_field: webServiceUrl is missing"
    assert refusal(load_report(webServiceUrl="broker-7")) == "bad_value: webServiceUrl has no host"


def test_limits_that_a_broker_does_not_know_may_be_negative_in_its_report_only() -> None:
    assert decode(load_report(cpu={"usage": 1.0, "limit": -1.0})) is not None
    assert refusal(broker_sweep(cpu={"usage": 1.0, "limit": -1.0})).startswith("bad_value: cpu.limit")


@pytest.mark.parametrize("usage", [-1.0, -1600.0, -0.0, -4.9e-324, "NaN", 0.0, 5.0])
@pytest.mark.parametrize("limit", [-1.0, 0.0, -0.0])
def test_a_resource_without_a_limit_is_read_whatever_its_usage_is_and_counts_as_unused(
    usage: float | str, limit: float
) -> None:
    record = decode(load_report(cpu={"usage": usage, "limit": limit}))
    assert isinstance(record, BrokerLoadRecord)
    cpu = record.report.cpu
    assert percent_usage(*np.array([[cpu.used], [cpu.limit]])).tolist() == [0.0]


@pytest.mark.parametrize("usage", [-1.0, -1600.0, -0.0, -4.9e-324])
def test_a_usage_that_the_jvm_could_not_measure_counts_as_none(usage: float) -> None:
    record = decode(load_report(cpu={"usage": usage, "limit": 1600.0}))
    assert isinstance(record, BrokerLoadRecord)
    assert str(record.report.cpu.used) == "0.0"


@pytest.mark.parametrize("usage", ["Infinity", "5.0", None, True, []])
def test_what_is_no_usage_is_refused_also_of_a_resource_without_a_limit(usage: object) -> None:
    assert refusal(load_report(cpu={"usage": usage, "limit": -1.0})).startswith("bad_value: cpu.usage")


@pytest.mark.parametrize("amount", [1.1e15, 1e300, float("inf"), float("nan"), "NaN"])
@pytest.mark.parametrize("part", ["usage", "limit"])
def test_usage_and_limit_are_bounded_in_sweeps_and_reports(part: str, amount: float | str) -> None:
    cpu = {"usage": 1.0, "limit": 100.0, part: amount}
    assert refusal(broker_sweep(cpu=cpu)).startswith(f"bad_value: cpu.{part}")
    assert refusal(load_report(cpu=cpu)).startswith(f"bad_value: cpu.{part}")
    assert refusal(broker_load(report=load_report(cpu=cpu))).startswith(f"bad_value: report.cpu.{part}")


def test_the_bound_itself_and_the_limits_of_brokers_that_know_none_pass() -> None:
    assert decode(broker_sweep(memory={"usage": 1e15, "limit": 1e15})) is not None
    for limit in (-1e15, -1.0, 0.0, 1e15):
        assert decode(load_report(memory={"usage": 1e15, "limit": limit})) is not None
    assert refusal(load_report(memory={"usage": 1.0, "limit": -1.1e15})).startswith("bad_value: memory.limit")


def test_boundaries_are_numbers_inside_and_text_outside() -> None:
    record = decode(namespace_state())
    assert isinstance(record, NamespaceStateRecord)
    assert record.boundaries == (0, 0x80000000, 0xFFFFFFFF)
    assert b'"boundaries":["0x00000000","0x80000000","0xffffffff"]' in encode(record)


@pytest.mark.parametrize(
    "boundaries",
    [
        [],
        ["0x00000000"],
        ["0x00000000", "0x80000000"],
        ["0x40000000", "0xffffffff"],
        ["0x00000000", "0x80000000", "0x80000000", "0xffffffff"],
        ["0x00000000", "0x80000000", "0x40000000", "0xffffffff"],
        ["0x00000000", "0x_8000000", "0xffffffff"],
        ["0x00000000", "80000000", "0xffffffff"],
    ],
)
def test_boundaries_must_cut_the_whole_ring(boundaries: list[str]) -> None:
    assert refusal(namespace_state(boundaries=boundaries)).startswith("bad_value: ")


def test_isolation_policies_are_kept_as_they_are() -> None:
    policies = [{"namespaces": ["tenant/.*"], "autoFailoverPolicy": {"parameters": {"minLimit": "1"}}}]
    record = decode(namespace_state(isolationPolicies=policies))
    assert isinstance(record, NamespaceStateRecord)
    assert list(record.isolation_policies or ()) == policies


def test_bundle_data_is_either_stored_averages_or_a_quota() -> None:
    quota = {
        "msgRateIn": 1.0,
        "msgRateOut": 2.0,
        "bandwidthIn": 3.0,
        "bandwidthOut": 4.0,
        "memory": 5.0,
        "dynamic": True,
    }
    averages = without(bundle_data(), "bundleData")
    record = decode({**averages, "resourceQuota": quota})
    assert isinstance(record, BundleData)
    assert record.resource_quota is not None
    assert record.resource_quota.bandwidth_out == 4.0
    assert refusal(averages) == "missing_field: bundleData or resourceQuota is missing"
    assert refusal(bundle_data(resourceQuota=quota)).startswith("bad_value: ")


def test_a_tick_names_the_sweep_of_each_broker_or_none() -> None:
    record = decode(tick(roster=[{"broker": "a:1", "sweepId": "s"}, {"broker": "b:1", "sweepId": None}]))
    assert isinstance(record, TickRecord)
    assert [(entry.broker, entry.sweep_id) for entry in record.roster or ()] == [("a:1", "s"), ("b:1", None)]
    twice = [{"broker": "a:1", "sweepId": "s"}, {"broker": "a:1", "sweepId": "t"}]
    assert refusal(tick(roster=twice)) == "bad_value: roster lists a broker twice"


def test_a_capacity_may_name_some_resources_only() -> None:
    record = decode(broker_state(capacity={"cpu": 1600.0}))
    assert record is not None
    assert decode(encode(record)) == record


def test_a_million_bad_values_make_one_short_refusal() -> None:
    stats = bundle_stats(LEFT, topics=2000, msgRateIn=[-1.0] * 2000)
    assert len(refusal(broker_sweep(bundleStats=[stats]))) < 200


@pytest.mark.parametrize("part", ["usage", "limit"])
def test_usage_and_limit_that_are_no_numbers_are_said_to_be_none(part: str) -> None:
    cpu = {"usage": 1.0, "limit": 100.0, part: float("nan")}
    for record in (broker_sweep(cpu=cpu), load_report(cpu=cpu)):
        assert refusal(record) == f"bad_value: cpu.{part}: Input should be a finite number, found nan"
