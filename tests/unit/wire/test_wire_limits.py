"""How long, how large and how late what lies in a record may be: each limit, and one beyond."""

import tracemalloc
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from controller.model.errors import WireError
from controller.wire.base import Millis, printable, reader
from controller.wire.metrics import BrokerLoadRecord, decode_metric
from controller.wire.results import Result, decode_result
from controller.wire.sweep import BrokerSweep
from tests.records import (
    CLUSTER,
    LEFT,
    PERIOD,
    T,
    as_bytes,
    broker_load,
    broker_state,
    broker_sweep,
    load_report,
    namespace_state,
    result,
    tick,
    topic_stats,
)


def decode(record: Any, **limits: int) -> Any:
    value = record if isinstance(record, bytes) else as_bytes(record)
    return decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, **limits)


def refusal(record: Any, **limits: int) -> str:
    with pytest.raises(WireError) as caught:
        decode(record, **limits)
    return f"{caught.value.reason}: {caught.value.detail}"


def with_number(text: str) -> bytes:
    return as_bytes(topic_stats(unknown="HERE")).replace(b'"HERE"', text.encode())


@pytest.mark.parametrize("number", ["9" * 1000, "-" + "9" * 1000, "0." + "1" * 999, "1" * 998 + "e-01"])
def test_a_number_has_1000_digits_at_most(number: str) -> None:
    assert decode(with_number(number)) is not None
    assert refusal(with_number(f"{number}0")) == "not_json: a number of 1001 digits, allowed: 1000"


def test_digits_in_a_text_are_no_number() -> None:
    assert decode(topic_stats(unknown="9" * 2000)) is not None
    assert decode(topic_stats(unknown='\\"' + "9" * 2000)) is not None


@pytest.mark.parametrize(
    ("field", "most", "record"),
    [
        ("producerCount", 10**12, topic_stats),
        ("numTopics", 10**12, broker_sweep),
        ("lastUpdate", 2**63 - 1, broker_sweep),
        ("version", 2**63 - 1, broker_state),
    ],
)
def test_whole_numbers_end_at_their_limit(field: str, most: int, record: Any) -> None:
    assert decode(record(**{field: most})) is not None
    assert decode(record(**{field: 0})) is not None
    assert refusal(record(**{field: most + 1})).startswith(f"bad_value: {field}: ")
    assert refusal(record(**{field: -1})).startswith(f"bad_value: {field}: ")


def test_rates_end_at_10_to_the_12() -> None:
    assert decode(topic_stats(msgRateIn=1e12, msgThroughputOut=0.0)) is not None
    assert refusal(topic_stats(msgRateIn=1.0000001e12)).startswith("bad_value: msgRateIn: ")


@pytest.mark.parametrize(("partitions", "known"), [(1, True), (10_000, True), (10_001, False), (0, False)])
def test_a_tick_has_at_most_10_000_partitions_of_metrics_and_one_at_least(partitions: int, known: bool) -> None:
    record = tick(partitions={"metrics": partitions, "results": 10_000})
    if known:
        assert decode(record) is not None
    else:
        assert refusal(record).startswith("bad_value: partitions.metrics: ")
    assert refusal(tick(partitions={"metrics": 1, "results": 10_001})).startswith("bad_value: partitions.results: ")
    assert decode(tick(partitions={"metrics": 1, "results": 0})) is not None


def test_a_name_has_1_to_1024_characters_and_no_control_characters() -> None:
    for name in ("é", "é" * 1024):
        assert decode(broker_state(broker=name)) is not None
    for name in ("é" * 1025, "", "a\nb", "a\x7fb"):
        assert refusal(broker_state(broker=name)).startswith("bad_value: broker: ")
    assert decode(broker_state(failureDomain="")) is not None
    assert refusal(broker_state(failureDomain="x" * 1025)).startswith("bad_value: failureDomain: ")


def test_a_time_is_not_before_1970() -> None:
    time = TypeAdapter[int](Millis)
    assert time.validate_python(0) == 0
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        time.validate_python(-1)


def test_a_record_has_8_mib_at_most_where_nobody_says_otherwise() -> None:
    most = 8 * 1024 * 1024
    assert refusal(b" " * (most + 1)) == f"too_large: {most + 1} bytes, allowed: {most}"
    assert refusal(b" " * most).startswith("not_json: ")


def test_text_for_people_has_4096_characters_and_is_on_one_line() -> None:
    assert printable("x" * 4096) == "x" * 4096
    assert printable("x" * 4097) == "x" * 4093 + "..."
    assert printable("a\nb\tc\x1bd") == "a b c d"
    told = decode_result(as_bytes(result(detail="a\n" + "x" * 5000)), cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(told, Result)
    assert told.detail == "a " + "x" * 4091 + "..."


@pytest.mark.parametrize(("length", "shown"), [(58, "x" * 58 + "'"), (59, "x" * 56 + "...")])
def test_a_value_that_is_refused_is_shown_with_60_characters(length: int, shown: str) -> None:
    assert refusal({"v": 1, "type": "x" * length}).startswith(f"unknown_type: type is '{shown}, known: ")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["broker", "report.lastUpdate", "bundleStats.0.totals", "roster.0.broker"])
def test_a_large_object_that_lacks_fields_is_refused_by_the_first_and_not_copied_for_each(where: str) -> None:
    large: dict[str, Any] = {"unknown": [{} for _ in range(30_000)]}
    record: dict[str, Any] = {
        "broker": {"v": 1, "cluster": CLUSTER, "type": "broker_sweep", **large},
        "report.lastUpdate": broker_load(report=large),
        "bundleStats.0.totals": broker_sweep(bundleStats=[{"bundle": LEFT, **large}]),
        "roster.0.broker": tick(roster=[large]),
    }[where]
    value = as_bytes(record)
    tracemalloc.start()
    try:
        assert refusal(value) == f"missing_field: {where}: Field required"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 80 * len(value), "read once, and once more"


def test_a_version_may_lie_one_period_ahead_of_the_log_and_no_further() -> None:
    for record in (broker_state(version=T), namespace_state(version=T)):
        assert decode(record) is not None
        assert decode(record, append_time_ms=T - PERIOD) is not None
        refused = refusal(record, append_time_ms=T - PERIOD - 1)
        assert refused == f"future_version: {T}, but the record was appended at {T - PERIOD - 1}"


@pytest.mark.parametrize(("ahead", "believed"), [(PERIOD, True), (PERIOD + 1, False)])
def test_a_brokers_time_that_lies_further_ahead_than_a_period_is_taken_for_0(ahead: int, believed: bool) -> None:
    at = {"append_time_ms": T}
    sweep = decode(broker_sweep(lastUpdate=T + ahead), **at)
    report = decode(broker_load(report=load_report(lastUpdate=T + ahead)), **at)
    assert isinstance(sweep, BrokerSweep)
    assert isinstance(report, BrokerLoadRecord)
    assert sweep.last_update == report.report.last_update == (T + ahead if believed else 0)
    assert decode(broker_sweep(lastUpdate=T + ahead)).last_update == T + ahead


def test_a_result_is_read_like_a_metric() -> None:
    def said(record: Any, **limits: int) -> str:
        with pytest.raises(WireError) as caught:
            decode_result(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD, **limits)
        return f"{caught.value.reason}: {caught.value.detail}"

    assert said(topic_stats()).startswith("unknown_type: ")
    assert said(tick(T + 1)) == f"misaligned_interval: {T + 1} is not a multiple of {PERIOD} ms"
    assert said(tick(), append_time_ms=T - PERIOD - 1).startswith("future_interval: ")
    assert said(result(), max_bytes=10).startswith("too_large: ")
    assert said(result(status="dead")).startswith("bad_value: status: ")
    assert decode_result(as_bytes(result(cluster="other")), cluster=CLUSTER, period_ms=PERIOD) is None
    assert said(result() | {"unknown": float("nan")}).startswith("not_json: ")


def test_whatever_a_reader_raises_is_told_in_one_line_as_a_bad_value() -> None:
    @reader
    def read(value: Any) -> Any:
        """Read it."""
        return {"a": 1}[value]

    assert read("a") == 1
    assert read.__doc__ == "Read it."
    for value, detail in (("b\nc", "cannot be read: KeyError: 'b\\nc'"), ([], "cannot be read: TypeError: unhashable")):
        with pytest.raises(WireError) as raised:
            read(value)
        assert raised.value.reason == "bad_value"
        assert raised.value.detail.startswith(detail)
