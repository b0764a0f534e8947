"""The summary of an interval as a record: a JSON head, and three compressed parts in base64.

``body`` is the JSON of ``SummaryBody``, ``details`` that of ``SummaryDetails``, ``columns`` a blob of
aggregate/columns/blobs.py; all are packed by zlib.  It is text, so that every log can hold it; about 100 KB for 1,000
brokers and 10,000 bundles.  A record comes from a topic, so every length, number and name in it is checked when it is
read.
"""

import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from controller.aggregate.columns.blobs import pack, unpack
from controller.model.decision import Reason, Verdict
from controller.model.errors import StateError, WireError
from controller.model.load import Ints
from controller.model.names import FULL_UPPER, LONGEST_NAME
from controller.model.segment_code import KEY_HASHES
from controller.model.summary import (
    MOST_BROKERS,
    MOST_BUNDLES,
    MOST_CHANGES,
    MOST_HOT_TOPICS,
    MOST_IN_FLIGHT,
    MOST_OUTCOMES,
    MOST_RANGES,
    MOST_SCALABLE,
    MOST_VERDICTS,
    NO_PLACE,
    BudgetInForce,
    Guarding,
    IntervalSummary,
    JudgedSubjects,
    MoveSide,
    OutcomeOfMove,
    SummarizedBrokers,
    SummarizedBundles,
    SummarizedRanges,
    SummarizedTopics,
)
from controller.wire.base import (
    AnyText,
    BundleText,
    Count,
    Entries,
    Envelope,
    Items,
    Millis,
    Name,
    NameOrEmpty,
    Number,
    Record,
    Tally,
    check_interval,
    encode,
    is_empty,
    is_foreign,
    model_for,
    read_object,
    reader,
    refuse_too_large,
    validate,
)
from controller.wire.conversion import from_record, to_record
from controller.wire.journal import (
    BreakerRecord,
    ControlsRecord,
    InFlightRecord,
    ProposedDecisionRecord,
    proposed_record,
    to_proposed,
)

#: Bytes of a record, and of what a part unpacks to, at most.
MAX_SUMMARY_BYTES: Final = 1_000_000
_MOST_UNPACKED: Final = 8 << 20
_VERSION: Final = 1
_LEVEL: Final = 6
_RESOURCES: Final = 5
_LOADS: Final = 4


class SideRecord(Record):
    """One broker of a move: usage of its fullest resource, percent."""

    broker: NameOrEmpty
    before: Number | None = None
    promised: Number | None = None
    measured: Number | None = None


class OutcomeRecord(Record):
    """What became of a move, as the leader's audit saw it."""

    id: Name
    """The command's."""
    outcome: NameOrEmpty
    source: SideRecord
    destination: SideRecord
    came_to: NameOrEmpty = ""
    undone: bool | None = None
    undone_by: NameOrEmpty = ""


class VerdictRecord(Record):
    """What was found about one subject."""

    subject: NameOrEmpty
    reason: Annotated[Reason, Field(strict=False)]
    observed: Number | None = None
    limit: Number | None = None
    unit: NameOrEmpty = ""
    by: NameOrEmpty = ""
    detail: AnyText = ""


class BudgetRecord(Record):
    """A budget and how much of it is used."""

    key: Name
    scope: Name
    of: NameOrEmpty
    used: int
    limit: int
    unit: NameOrEmpty


class TotalsRecord(Record):
    """Sums over the whole cluster."""

    brokers: Tally
    brokers_without_data: Tally
    bundles: Tally
    namespaces: Tally
    topics: Count
    connections: Count
    rate: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    throughput: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SummaryBody(Record):
    """All of a summary that is no column of numbers."""

    summary: AnyText
    pulsar: NameOrEmpty = ""
    limit: Number | None = None
    goal: Number | None = None
    totals: TotalsRecord
    controls: ControlsRecord
    breaker: BreakerRecord
    failures_in_window: Count = 0
    most_in_a_row: Count | None = None
    most_in_window: Count | None = None
    in_flight: Annotated[Entries[Name, InFlightRecord], Field(max_length=MOST_IN_FLIGHT)] = Field(default_factory=dict)
    in_flight_total: Count = 0
    joined: Annotated[Entries[Name, Millis], Field(max_length=MOST_CHANGES)] = Field(default_factory=dict)
    departed: Annotated[Entries[Name, Millis], Field(max_length=MOST_CHANGES)] = Field(default_factory=dict)
    brokers_balance: AnyText = ""
    proposed: Annotated[ProposedDecisionRecord | None, Field(exclude_if=is_empty)] = None
    reasons: Annotated[Entries[Name, Count], Field(max_length=256)] = Field(default_factory=dict)
    verdicts_total: Count = 0
    outcomes: Annotated[Items[OutcomeRecord], Field(max_length=MOST_OUTCOMES)] = ()
    brokers: Annotated[Items[Name], Field(max_length=MOST_BROKERS)]
    """Sorted, as the three that follow; the columns refer to their places."""
    namespaces: Annotated[Items[NameOrEmpty], Field(max_length=MOST_RANGES)]
    bundles: Annotated[Items[BundleText], Field(max_length=MOST_BUNDLES)]


class SummaryDetails(Record):
    """What is read when a person looks at one interval."""

    budgets: Annotated[Items[BudgetRecord], Field(max_length=256)] = ()
    verdicts: Annotated[Items[VerdictRecord], Field(max_length=MOST_VERDICTS)] = ()


class SummaryRecord(Envelope):
    """What the leader saw, decided and found in one interval, for those who show it.  No decision depends on it."""

    type: Literal["summary"] = "summary"
    interval: Millis
    """T."""
    epoch: Count
    """The number of the leadership that decided it."""
    period_ms: Annotated[int, Field(gt=0, le=86_400_000)]
    decided_at_ms: Millis
    """When the decision and its commands were out, by the leader's clock."""
    tick_to_decision_ms: Count | None = None
    """null: the leader did not see when the interval was ticked."""
    body: str
    """A JSON object packed by zlib, in base64: all but columns and details (docs/page_data.md)."""
    details: str
    """A JSON object, likewise: budgets and the most important verdicts."""
    columns: str
    """Columns of brokers, ranges of the keyspace, bundles and scalable topics, likewise."""


def encode_summary(summary: IntervalSummary) -> bytes:
    """The record of *summary*; the same summary always gives the same bytes.

    WireError where it is longer than readers take: thousands of brokers and namespaces with long random names.
    """
    value = encode(
        SummaryRecord(
            cluster=summary.cluster,
            interval=summary.interval,
            epoch=summary.epoch,
            period_ms=summary.period_ms,
            decided_at_ms=summary.decided_at_ms,
            tick_to_decision_ms=summary.tick_to_decision_ms,
            body=_packed(encode(_body(summary))),
            details=_packed(encode(_details(summary))),
            columns=_packed(pack(_VERSION, {}, _columns(summary))),
        )
    )
    refuse_too_large(value, MAX_SUMMARY_BYTES)
    return value


class ReadSummary(NamedTuple):
    """A summary whose details are still packed: budgets and verdicts are empty."""

    summary: IntervalSummary
    details: bytes


@reader
def read_summary(
    value: bytes, *, cluster: str, append_time_ms: int | None = None, max_bytes: int = MAX_SUMMARY_BYTES
) -> ReadSummary | None:
    """The summary in *value*; None where it is another cluster's.  WireError where it cannot be used."""
    refuse_too_large(value, max_bytes)
    read = read_object(value)
    if is_foreign(read, cluster):
        return None
    record: SummaryRecord = validate(model_for(read, MODELS), value, read)
    check_interval(record.interval, period_ms=record.period_ms, append_time_ms=append_time_ms)
    body = validate(SummaryBody, _unpacked(_decoded(record.body)))
    try:
        columns = unpack(_unpacked(_decoded(record.columns)), versions=(_VERSION,)).arrays
    except (StateError, TypeError) as error:
        raise WireError("bad_value", f"columns: {error}") from error
    return ReadSummary(_summary(record, body, columns), _decoded(record.details))


@reader
def read_details(packed: bytes) -> tuple[tuple[BudgetInForce, ...], tuple[Verdict, ...]]:
    """The budgets and the verdicts in the details of a ``ReadSummary``.  WireError where they cannot be used."""
    details = validate(SummaryDetails, _unpacked(packed))
    return (
        tuple(from_record(BudgetInForce, each) for each in details.budgets),
        tuple(map(verdict_of, details.verdicts)),
    )


def verdict_of(record: VerdictRecord) -> Verdict:
    """The verdict that *record* says."""
    return from_record(Verdict, record)


def decode_summary(value: bytes, *, cluster: str, append_time_ms: int | None = None) -> IntervalSummary | None:
    """As ``read_summary``, with the details."""
    read = read_summary(value, cluster=cluster, append_time_ms=append_time_ms)
    if read is None:
        return None
    summary, (budgets, verdicts) = read.summary, read_details(read.details)
    return replace(
        summary,
        guarding=replace(summary.guarding, budgets=budgets),
        judged=replace(summary.judged, verdicts=verdicts),
    )


MODELS: Final[dict[str, type[Any]]] = {"summary": SummaryRecord}


def _packed(content: bytes) -> str:
    return b64encode(zlib.compress(content, _LEVEL)).decode()


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise WireError("bad_value", f"a part is not base64: {error}") from error


def _unpacked(packed: bytes) -> bytes:
    """What *packed* holds; WireError where it is damaged or too long."""
    try:
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(packed, _MOST_UNPACKED)
    except zlib.error as error:
        raise WireError("bad_value", f"a compressed part: {error}") from error
    if not unpacking.eof:
        raise WireError("too_large", f"a part unpacks to more than {_MOST_UNPACKED} bytes, or is truncated")
    return content


def _body(summary: IntervalSummary) -> SummaryBody:
    guarding, judged = summary.guarding, summary.judged
    names = {
        "reasons": judged.reasons,
        "verdicts_total": judged.total,
        "proposed": proposed_record(guarding.proposed),
        "brokers": summary.brokers.names,
        "namespaces": summary.ranges.namespaces,
        "bundles": summary.bundles.names,
    }
    return to_record(SummaryBody, {**_of(summary), **_of(guarding), **names})


def _details(summary: IntervalSummary) -> SummaryDetails:
    return to_record(SummaryDetails, {"budgets": summary.guarding.budgets, "verdicts": summary.judged.verdicts})


def _of(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {each.name: getattr(thing, each.name) for each in fields(thing)}


# ---- columns ----

#: Column -> its type in the blob, and how many numbers a row has.
_BROKER_COLUMNS: Final = {
    "has_data": ("|u1", 1),
    "usage": ("<f4", _RESOURCES),
    "forecast": ("<f4", 1),
    "load": ("<f4", _LOADS),
    "bundles": ("<i8", 1),
    "topics": ("<i8", 1),
    "connections": ("<i8", 1),
}
#: Bounds are stored as differences, which repeat: the step from the range before, and the range's own length.
_RANGE_COLUMNS: Final = {
    "namespace": ("<i4", 1),
    "step": ("<u4", 1),
    "length": ("<u4", 1),
    "bundles": ("<i4", 1),
    "owner": ("<i2", 1),
    "rate": ("|u1", 1),
    "throughput": ("|u1", 1),
}
_BUNDLE_COLUMNS: Final = {
    "owner": ("<i2", 1),
    "load": ("<f4", _LOADS),
    "topics": ("<i8", 1),
    "producers": ("<i8", 1),
    "consumers": ("<i8", 1),
    "hot_place": ("<i8", MOST_HOT_TOPICS),
    "hot_rate": ("<f4", MOST_HOT_TOPICS),
    "hot_throughput": ("<f4", MOST_HOT_TOPICS),
}
_TOPIC_COLUMNS: Final = {
    "namespace": ("<i4", 1),
    "place": ("<i8", 1),
    "segments": ("<i8", 1),
    "serving": ("<i8", 1),
    "may_serve": ("<i8", 1),
    "throughput": ("<f4", 1),
    "peak": ("<f4", 1),
    "busiest": ("<i2", 1),
    "cut": ("<i4", 1),
}
#: Columns that earlier releases did not write, and what stands for them.
_ADDED: Final = {
    ("broker", "forecast"): np.nan,
    ("bundle", "hot_place"): NO_PLACE,
    ("bundle", "hot_rate"): 0,
    ("bundle", "hot_throughput"): 0,
    **{("topic", name): 0 for name in _TOPIC_COLUMNS},
}
_TABLES: Final = {
    "broker": _BROKER_COLUMNS,
    "range": _RANGE_COLUMNS,
    "bundle": _BUNDLE_COLUMNS,
    "topic": _TOPIC_COLUMNS,
}


def _columns(summary: IntervalSummary) -> dict[str, NDArray[Any]]:
    ranges = summary.ranges
    lower = ranges.lower.astype(np.uint32)
    tables: dict[str, Mapping[str, NDArray[Any]]] = {
        "broker": _of(summary.brokers),
        "range": _of(ranges)
        | {"step": np.diff(lower, prepend=lower[:1] * 0), "length": ranges.upper.astype(np.uint32) - lower},
        "bundle": _of(summary.bundles),
        "topic": _of(summary.scalable),
    }
    return {
        f"{table}.{name}": np.ascontiguousarray(tables[table][name], np.dtype(kind))
        for table, columns in _TABLES.items()
        for name, (kind, _) in columns.items()
    }


def _read_table(table: str, arrays: Mapping[str, NDArray[Any]], rows: int | None) -> dict[str, NDArray[Any]]:
    """The columns of *table*, of *rows* rows each; None: as many as the first one has."""
    columns: dict[str, NDArray[Any]] = {}
    for name, (kind, width) in _TABLES[table].items():
        column = arrays.get(f"{table}.{name}")
        if column is None and (table, name) not in _ADDED:
            raise WireError("missing_field", f"columns: {table}.{name} is missing")
        if rows is None and column is not None and column.ndim:
            rows = len(column)
        shape: tuple[int, ...] = (rows or 0,) if width == 1 else (rows or 0, width)
        if column is None:
            column = np.full(shape, _ADDED[table, name], kind)
        if column.dtype != np.dtype(kind) or column.shape != shape:
            actual = f"{column.dtype.str}{list(column.shape)}"
            raise WireError("bad_value", f"columns: {table}.{name} is {actual}, expected {kind}{list(shape)}")
        columns[name] = column if width > 1 or kind in ("<f4", "|u1") else column.astype(np.int64)
    return columns


def _summary(record: SummaryRecord, body: SummaryBody, arrays: Mapping[str, NDArray[Any]]) -> IntervalSummary:
    if body.limit is not None and body.goal is not None and body.goal > body.limit:
        raise WireError("bad_value", f"goal {body.goal:g} is above the limit, {body.limit:g}")
    head = {
        each.name: getattr(record, each.name)
        for each in fields(IntervalSummary)
        if each.name in SummaryRecord.model_fields
    }
    parts: dict[str, Any] = {
        "limit": _finite(body.limit),
        "goal": _finite(body.goal),
        "guarding": from_record(Guarding, body, proposed=to_proposed(body.proposed)),
        "judged": JudgedSubjects(reasons=body.reasons, total=body.verdicts_total),
        "outcomes": tuple(map(_outcome, body.outcomes)),
        "brokers": _brokers(body, arrays),
        "ranges": _ranges(body, arrays),
        "bundles": _bundles(body, arrays),
        "scalable": _scalable(body, arrays),
    }
    return from_record(IntervalSummary, body, **head, **parts)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _outcome(record: OutcomeRecord) -> OutcomeOfMove:
    return from_record(OutcomeOfMove, record, source=_side(record.source), destination=_side(record.destination))


def _side(record: SideRecord) -> MoveSide:
    return MoveSide(
        broker=record.broker,
        before=_finite(record.before),
        promised=_finite(record.promised),
        measured=_finite(record.measured),
    )


def _brokers(body: SummaryBody, arrays: Mapping[str, NDArray[Any]]) -> SummarizedBrokers:
    _require_sorted("brokers", body.brokers)
    columns = _read_table("broker", arrays, len(body.brokers))
    columns["has_data"] = columns["has_data"].astype(np.bool_)
    _require("brokers", bool((columns["load"] >= 0).all() and np.isfinite(columns["load"]).all()))
    for name in ("usage", "forecast"):
        _require("brokers", not bool((columns[name] < 0).any() or np.isinf(columns[name]).any()))
    _require("brokers", all(bool((columns[name] >= 0).all()) for name in ("bundles", "topics", "connections")))
    return SummarizedBrokers(names=body.brokers, **columns)


def _ranges(body: SummaryBody, arrays: Mapping[str, NDArray[Any]]) -> SummarizedRanges:
    columns = _read_table("range", arrays, None)
    step, length, namespace = columns.pop("step"), columns.pop("length"), columns["namespace"]
    lower: Ints = np.cumsum(step) % (FULL_UPPER + 1)
    upper = lower + length
    _require("ranges", len(lower) <= MOST_RANGES and len(set(body.namespaces)) == len(body.namespaces))
    _require("ranges", bool((upper <= FULL_UPPER).all() and (length > 0).all() and (columns["bundles"] > 0).all()))
    _require("ranges", _in(namespace, 0, len(body.namespaces)) and bool((np.diff(namespace) >= 0).all()))
    same = np.diff(namespace) == 0
    _require("ranges", bool((np.diff(lower)[same] > 0).all()))
    _require("ranges", _in(columns["owner"], -1, len(body.brokers)))
    return SummarizedRanges(namespaces=body.namespaces, lower=lower, upper=upper, **columns)


def _bundles(body: SummaryBody, arrays: Mapping[str, NDArray[Any]]) -> SummarizedBundles:
    _require_sorted("bundles", body.bundles)
    columns = _read_table("bundle", arrays, len(body.bundles))
    _require("bundles", bool((columns["load"] >= 0).all() and np.isfinite(columns["load"]).all()))
    _require("bundles", all(bool((columns[name] >= 0).all()) for name in ("topics", "producers", "consumers")))
    _require("bundles", _in(columns["owner"], -1, len(body.brokers)))
    _require("bundles", _in(columns["hot_place"], NO_PLACE, FULL_UPPER + 1))
    for name in ("hot_rate", "hot_throughput"):
        _require("bundles", bool((columns[name] >= 0).all() and np.isfinite(columns[name]).all()))
    return SummarizedBundles(names=body.bundles, **columns)


def _scalable(body: SummaryBody, arrays: Mapping[str, NDArray[Any]]) -> SummarizedTopics:
    what, columns = "scalable topics", _read_table("topic", arrays, None)
    namespace = columns["namespace"]
    _require(what, len(namespace) <= MOST_SCALABLE and bool((np.diff(namespace) >= 0).all()))
    _require(what, _in(namespace, 0, len(body.namespaces)) and _in(columns["busiest"], -1, len(body.brokers)))
    _require(what, _in(columns["place"], 0, FULL_UPPER + 1) and _in(columns["cut"], -1, KEY_HASHES))
    _require(what, all(bool((columns[name] > 0).all()) for name in ("segments", "serving", "may_serve")))
    for name in ("throughput", "peak"):
        _require(what, bool((columns[name] >= 0).all() and np.isfinite(columns[name]).all()))
    return SummarizedTopics(**columns)


def _in(codes: Ints, first: int, end: int) -> bool:
    return bool(((codes >= first) & (codes < end)).all())


def _require_sorted(what: str, names: tuple[str, ...]) -> None:
    _require(what, all(len(name) <= LONGEST_NAME for name in names))
    _require(what, all(one < other for one, other in pairwise(names)))


def _require(what: str, holds: bool) -> None:
    if not holds:
        raise WireError("bad_value", f"columns: {what} are not in order, or out of range")
