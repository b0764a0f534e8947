"""The record of a summary: what is written is read, and what nobody should have written is refused."""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from random import Random
from string import ascii_letters
from typing import Any

import numpy as np
import pytest

from controller.aggregate.columns.blobs import pack, unpack
from controller.cycle.limits import Limits
from controller.cycle.summary import summary_of
from controller.lab.invented_weeks import InventedWeek
from controller.log.memory import MemoryLog, MemoryServer
from controller.model.decision import UsageOutlook
from controller.model.errors import WireError
from controller.model.load import TopicDetail
from controller.model.names import topic_hash
from controller.model.summary import MOST_OUTCOMES, MOST_SCALABLE, NO_PLACE, IntervalSummary, MoveSide, OutcomeOfMove
from controller.wire.summary import MAX_SUMMARY_BYTES, decode_summary, encode_summary, read_details, read_summary
from tests.cluster import MB, broker, view
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T
from tests.segments import segment, segmented

_MOVE = OutcomeOfMove(
    id="c-1",
    outcome="arrived",
    source=MoveSide(broker="hot", before=90.0, promised=80.0),
    destination=MoveSide(broker=""),
)


def summary() -> IntervalSummary:
    cluster = view(broker("a:8080", usage=0.9, **{LEFT: 60}), broker("b:8080", usage=0.1, **{RIGHT: 5}))
    return summary_of(
        cluster,
        entry(T, UNLOAD),
        Limits(),
        period_ms=PERIOD,
        epoch=3,
        decided_at_ms=T + 2_000,
        tick_to_decision_ms=150,
        outcomes=(_MOVE,),
    )


def forged(change: Callable[[dict[str, Any]], None]) -> bytes:
    """The record of ``summary`` after *change* was made to its fields."""
    fields = json.loads(encode_summary(summary()))
    change(fields)
    return json.dumps(fields).encode()


def part(text: str) -> bytes:
    return zlib.decompress(b64decode(text))


def as_part(content: bytes) -> str:
    return b64encode(zlib.compress(content)).decode()


def with_body(**changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(fields: dict[str, Any]) -> None:
        fields["body"] = as_part(json.dumps(json.loads(part(fields["body"])) | changed).encode())

    return change


def with_column(name: str, alter: Callable[[np.ndarray[Any, Any]], Any]) -> Callable[[dict[str, Any]], None]:
    def change(fields: dict[str, Any]) -> None:
        arrays = dict(unpack(part(fields["columns"]), versions=(1,)).arrays)
        arrays[name] = np.ascontiguousarray(alter(arrays[name].copy()))
        fields["columns"] = as_part(pack(1, {}, arrays))

    return change


def test_what_is_written_is_read() -> None:
    written = summary()
    read = decode_summary(encode_summary(written), cluster=CLUSTER)
    assert read is not None
    assert encode_summary(read) == encode_summary(written)
    assert read.outcomes == (_MOVE,)
    assert (read.brokers.names, read.bundles.names) == (written.brokers.names, written.bundles.names)


def test_limit_goal_and_forecast_are_read_as_they_were_written() -> None:
    outlook = UsageOutlook(limit=0.85, goal=0.8, forecast={"a:8080": 0.95})
    cluster = view(broker("a:8080", usage=0.9), broker("b:8080", usage=0.1))
    made = entry(T)
    made = replace(made, decision=replace(made.decision, outlook=outlook))
    read = decode_summary(
        encode_summary(summary_of(cluster, made, Limits(), period_ms=PERIOD, epoch=3, decided_at_ms=T)), cluster=CLUSTER
    )
    assert read is not None
    assert (read.limit, read.goal) == (85.0, 80.0)
    assert read.brokers.forecast.tolist() == [95.0, pytest.approx(np.nan, nan_ok=True)]


def test_an_absurd_usage_or_forecast_of_one_broker_leaves_a_summary_readable() -> None:
    cluster = view(broker("a:8080", usage=0.9), broker("b:8080", usage=0.1))
    limit = cluster.brokers.limit.copy()
    limit[0] = 1e-40
    cluster = replace(cluster, brokers=replace(cluster.brokers, limit=limit))
    made = entry(T)
    made = replace(made, decision=replace(made.decision, outlook=UsageOutlook(forecast={"a:8080": 1e300})))
    read = decode_summary(
        encode_summary(summary_of(cluster, made, Limits(), period_ms=PERIOD, epoch=3, decided_at_ms=T)), cluster=CLUSTER
    )
    assert read is not None
    assert np.isnan(read.brokers.usage[0, 0])
    assert np.isnan(read.brokers.forecast).all()
    assert read.brokers.usage[1, 0] == 10.0


def test_a_summary_of_the_first_release_has_no_forecast_and_no_hot_topics() -> None:
    fields = json.loads(encode_summary(summary()))
    arrays = dict(unpack(part(fields["columns"]), versions=(1,)).arrays)
    for name in ("broker.forecast", "bundle.hot_place", "bundle.hot_rate", "bundle.hot_throughput"):
        del arrays[name]
    read = read_summary(json.dumps(fields | {"columns": as_part(pack(1, {}, arrays))}).encode(), cluster=CLUSTER)
    assert read is not None
    assert np.isnan(read.summary.brokers.forecast).all()
    assert (read.summary.bundles.hot_place == NO_PLACE).all()


def test_hot_topics_are_read_as_they_were_written() -> None:
    cluster = view(broker("a:8080", usage=0.9, **{LEFT: 60}), broker("b:8080", usage=0.1, **{RIGHT: 5}))
    topics = TopicDetail.of(np.array([0, 2]), np.array([0xFFFFFFFF, 7]), np.array([[1.0, 2, 30, 40], [9, 0, 0, 0]]))
    cluster = replace(cluster, bundles=replace(cluster.bundles, detail=topics, topics=topics.sizes))
    read = decode_summary(
        encode_summary(summary_of(cluster, entry(T), Limits(), period_ms=PERIOD, epoch=3, decided_at_ms=T)),
        cluster=CLUSTER,
    )
    assert read is not None
    assert read.bundles.hot_place.tolist() == [[NO_PLACE, NO_PLACE], [0xFFFFFFFF, 7]]
    assert read.bundles.hot_rate[1].tolist() == [3, 9]
    assert read.bundles.hot_throughput[1].tolist() == [70, 0]


def test_scalable_topics_are_read_as_they_were_written_and_an_earlier_release_has_none() -> None:
    cluster = segmented(
        {"a:8080": {segment("x", 0, 0x7FFF): 9, segment("x", 0x8000, 0xFFFF, 1): 1}, "b:8080": {}, "c:8080": {}}
    )
    written = encode_summary(summary_of(cluster, entry(T), Limits(), period_ms=PERIOD, epoch=3, decided_at_ms=T))
    read = decode_summary(written, cluster=CLUSTER)
    assert read is not None
    topics = read.scalable
    assert topics.place.tolist() == [topic_hash("topic://tenant/ns/x")]
    assert [read.ranges.namespaces[code] for code in topics.namespace.tolist()] == ["tenant/ns"]
    assert (topics.segments.tolist(), topics.serving.tolist(), topics.may_serve.tolist()) == ([2], [1], [3])
    assert topics.unevenness.tolist() == pytest.approx([3.0])
    assert [read.brokers.names[row] for row in topics.busiest.tolist()] == ["a:8080"]
    assert topics.cut.tolist() == [0x471C]
    fields = json.loads(written)
    arrays = unpack(part(fields["columns"]), versions=(1,)).arrays
    before = pack(1, {}, {name: array for name, array in arrays.items() if not name.startswith("topic.")})
    earlier = read_summary(json.dumps(fields | {"columns": as_part(before)}).encode(), cluster=CLUSTER)
    assert earlier is not None
    assert len(earlier.summary.scalable.place) == 0


def test_of_a_thousand_scalable_topics_a_summary_has_the_most_uneven() -> None:
    names = {segment(f"t{number}", 0, 0xFFFF): 1.0 + number % 7 for number in range(1000)}
    cluster = segmented({"a:8080": names, "b:8080": {}})
    made = summary_of(cluster, entry(T), Limits(), period_ms=PERIOD, epoch=3, decided_at_ms=T).scalable
    assert len(made.place) == MOST_SCALABLE
    assert set(made.throughput.tolist()) == {7.0 * MB}


def test_details_are_read_when_they_are_needed() -> None:
    read = read_summary(encode_summary(summary()), cluster=CLUSTER)
    assert read is not None
    budgets, verdicts = read_details(read.details)
    assert (budgets, verdicts) == (summary().guarding.budgets, summary().judged.verdicts)


def test_another_clusters_summary_is_none() -> None:
    assert read_summary(encode_summary(summary()), cluster="other") is None


def one(column: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    column.flat[0] = value
    return column


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.update(v=2),
        lambda fields: fields.pop("interval"),
        lambda fields: fields.update(interval=T + 1),
        lambda fields: fields.update(interval=-PERIOD),
        lambda fields: fields.update(periodMs=0),
        lambda fields: fields.update(body="no base64!"),
        lambda fields: fields.update(body=b64encode(b"no zlib").decode()),
        lambda fields: fields.update(body=as_part(b"{}")),
        lambda fields: fields.update(body=as_part(b"x" * (9 << 20))),
        lambda fields: fields.update(columns=fields["columns"][:-8]),
        lambda fields: fields.update(columns=as_part(b"TRIM")),
        with_body(limit=80.0, goal=90.0),
        with_column("broker.forecast", lambda column: one(column, -1.0)),
        with_column("broker.forecast", lambda column: one(column, np.inf)),
        with_column("bundle.hot_place", lambda column: one(column, -2)),
        with_column("bundle.hot_place", lambda column: one(column, 1 << 32)),
        with_column("bundle.hot_place", lambda column: column[:, :1]),
        with_column("bundle.hot_rate", lambda column: one(column, np.nan)),
        with_column("bundle.hot_throughput", lambda column: one(column, -1)),
        with_body(brokers=["a:8080", "a:8080"]),
        with_body(brokers=["b:8080", "a:8080"]),
        with_body(brokers=["a:8080", "b\n:8080"]),
        with_body(brokers=[f"{each:05d}" for each in range(5_000)]),
        with_body(bundles=["no bundle"]),
        with_body(reasons={f"r{each}": 1 for each in range(1_000)}),
        with_column("broker.usage", lambda column: column[:1]),
        with_column("broker.usage", lambda column: column.astype("<f8")),
        with_column("broker.usage", lambda column: one(column, -1)),
        with_column("broker.usage", lambda column: one(column, np.inf)),
        with_column("broker.load", lambda column: one(column, np.nan)),
        with_column("broker.topics", lambda column: one(column, -1)),
        with_column("range.owner", lambda column: one(column, 2)),
        with_column("range.owner", lambda column: one(column, -2)),
        with_column("range.namespace", lambda column: one(column, 9)),
        with_column("range.length", lambda column: one(column, 0)),
        with_column("range.bundles", lambda column: one(column, 0)),
        with_column("bundle.load", lambda column: one(column, -np.inf)),
    ],
)
def test_what_cannot_be_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(WireError):
        read_summary(forged(change), cluster=CLUSTER)


def test_an_interval_ahead_of_the_log_is_refused() -> None:
    with pytest.raises(WireError, match="future_interval"):
        read_summary(encode_summary(summary()), cluster=CLUSTER, append_time_ms=T - 2 * PERIOD)


def test_a_record_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(WireError, match="too_large"):
        read_summary(b"{" * 2_000_000, cluster=CLUSTER)


@pytest.mark.parametrize(("brokers", "bundles"), [(100, 10_000), (1_000, 10_000), (1_000, 40_000)])
def test_its_size_is_bounded(brokers: int, bundles: int) -> None:
    week = InventedWeek(brokers=brokers, bundles=bundles, days=2 / 1440)
    log = MemoryLog(MemoryServer(now_ms=week.now_ms))
    week.write(log)
    (_, last) = log.read("summaries").read_to_end()
    assert len(last.value) <= 200_000


def test_a_summary_that_no_reader_would_take_is_not_written() -> None:
    random = Random(0)
    outcomes = tuple(
        replace(_MOVE, id=name, came_to=name[::-1])
        for name in ("".join(random.choices(ascii_letters, k=1_024)) for _ in range(MOST_OUTCOMES))
    )
    assert len(encode_summary(replace(summary(), outcomes=outcomes[:300]))) < MAX_SUMMARY_BYTES
    with pytest.raises(WireError, match="too_large"):
        encode_summary(replace(summary(), outcomes=outcomes))
