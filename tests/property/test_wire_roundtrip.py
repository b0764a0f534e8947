"""Encoding and decoding a record gives the same record, to the last bit of every float."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.decision import Command, Reason, Verdict
from controller.model.errors import WireError
from controller.strategies.common.usage_history import UsageHistory
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.base import MAX_COUNT, REASONS, encode, validate
from controller.wire.commands import SplitEvent, UnloadEvent, command_event, parse_event, to_command
from controller.wire.journal import encode_entry
from controller.wire.metrics import decode_metric
from controller.wire.sweep import ArrowSweep, BrokerSweep, SweepHeader, encode_sweep_arrow
from tests.journal_entries import entry, parse_entry
from tests.records import CLUSTER, METRICS, PERIOD, T, as_bytes, broker_sweep, bundle_stats, without

RATE = st.floats(min_value=0, max_value=1e12)
COUNT = st.integers(min_value=0, max_value=(1 << 63) - 1)
TALLY = st.integers(min_value=0, max_value=MAX_COUNT)
NUMBER = st.floats(allow_nan=False)  # a NaN equals nothing; it has a test of its own
TEXT = st.text(st.characters(codec="utf-8"))
NAME = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), min_size=1)
POSITION = st.integers(min_value=0, max_value=0xFFFFFFFF)

TOPIC = st.tuples(TEXT, *[RATE] * 4, *[TALLY] * 2)


@st.composite
def bundles(draw: st.DrawFn) -> str:
    lower, upper = sorted(draw(st.lists(POSITION, min_size=2, max_size=2, unique=True)))
    return f"tenant/ns/0x{lower:08x}_0x{upper:08x}"


@pytest.mark.slow
@given(bundles(), st.lists(TOPIC, max_size=5))
def test_a_sweep_in_json(bundle: str, topics: list[tuple[object, ...]]) -> None:
    columns = [list(column) for column in zip(*topics, strict=True)] or [[]] * 7
    arrays: dict[str, Any] = dict(zip(("topic", *RATES, *COUNTS), columns, strict=True))
    sent = broker_sweep(bundleStats=[bundle_stats(bundle, **arrays)])
    record = decode_metric(as_bytes(sent), cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(record, BrokerSweep)
    received = json.loads(encode(record))
    assert {name: received["bundleStats"][0][name] for name in arrays} == arrays
    assert decode_metric(encode(record), cluster=CLUSTER, period_ms=PERIOD) == record


@given(st.lists(TOPIC, max_size=5))
def test_a_sweep_in_arrow(topics: list[tuple[object, ...]]) -> None:
    header = validate(SweepHeader, as_bytes(without(broker_sweep(), "bundleStats")))
    load = np.array([topic[1:5] for topic in topics], dtype=np.float64).reshape(-1, 4)
    counts = np.array([topic[5:] for topic in topics], dtype=np.int64).reshape(-1, 2)
    value = encode_sweep_arrow(
        header,
        bundles=["tenant/ns/0x00000000_0xffffffff"],
        bundle=np.zeros(len(topics), dtype=np.int64),
        topics=[str(topic[0]) for topic in topics],
        load=load,
        counts=counts,
    )
    record = decode_metric(value, cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(record, ArrowSweep)
    received = [record.batch.column(name).to_pylist() for name in ("topic", *RATES, *COUNTS)]
    assert list(zip(*received, strict=True)) == topics
    assert SweepHeader(**{name: getattr(record, name) for name in SweepHeader.model_fields}) == header


VERDICT = st.builds(
    Verdict,
    subject=TEXT,
    reason=st.sampled_from(Reason),
    observed=st.none() | NUMBER,
    limit=st.none() | NUMBER,
    unit=TEXT,
    by=TEXT,
    detail=TEXT,
)
COMMON = {
    "id": NAME,
    "cluster": st.just(CLUSTER),
    "bundle": bundles(),
    "interval": st.integers(min_value=0, max_value=T),
    "expires_at_ms": st.integers(min_value=0, max_value=T),
    "mode": st.sampled_from(["active", "dry_run"]),
    "source": NAME,
    "why": VERDICT,
}
COMMAND = st.builds(Command, action=st.just("unload"), destination=TEXT, **COMMON) | st.builds(
    Command,
    action=st.just("split"),
    algorithm=TEXT,
    boundaries=st.lists(POSITION, max_size=4).map(tuple),
    unload_after_split=st.booleans(),
    **COMMON,
)


@given(COMMAND, COUNT, st.integers(min_value=0, max_value=2 * T))
def test_a_command_in_its_event(command: Command, epoch: int, time_ms: int) -> None:
    event = parse_event(command_event(command, epoch, time_ms))
    assert isinstance(event, UnloadEvent | SplitEvent)
    assert to_command(event) == command
    assert (event.epoch, event.time_ms) == (epoch, time_ms)


@given(
    st.lists(COMMAND, max_size=3),
    st.dictionaries(TEXT, NUMBER),
    st.dictionaries(TEXT, st.integers(0, T)),
    st.integers(),
)
def test_a_journal_entry(
    commands: list[Command], usage: dict[str, float], recently_unloaded: dict[str, int], seed: int
) -> None:
    written = entry(
        T, *commands, shedder=UsageHistory(usage=usage), recently_unloaded=recently_unloaded, seed=abs(seed) >> 1
    )
    value = encode_entry(written)
    assert parse_entry(value) == written
    assert encode_entry(written) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def refusal(value: bytes) -> str | None:
    try:
        decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T)
    except WireError as error:
        return error.reason
    return None


@given(st.sampled_from(sorted(METRICS)), st.data(), JSON)
def test_a_spoilt_record_is_read_or_refused_with_a_known_reason(kind: str, data: st.DataObject, value: object) -> None:
    record = METRICS[kind]
    spoilt = {**record, data.draw(st.sampled_from(sorted(record))): value}
    assert refusal(as_bytes(spoilt)) in (None, *REASONS)


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_are_refused_with_a_known_reason(value: bytes, arrow: bool) -> None:
    assert refusal(b"\xff" * 4 * arrow + value) in REASONS
