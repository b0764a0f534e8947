"""Where the refused records of a batch lie."""

from dataclasses import replace
from typing import Any

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, METRICS, REFUSED, RESULTS, Rows
from controller.aggregate.places import Span
from controller.aggregate.shard.fold import DetailLimits
from controller.wire.base import validate
from controller.wire.metrics import MODELS
from controller.wire.refused import refused_spans
from controller.wire.rows import Located, rows_from_records
from tests.records import LEFT, as_bytes, broker_sweep, bundle_stats, namespace_state, tick

LIMITS = DetailLimits(topics=10**9, sessions=10**9, msg_rate=1e18, throughput=1e18)
#: A batch without refused rows.
NOTHING: dict[str, Any] = {"source": [], "partition": [], "file": [], "offset": []}


def columns(kind: list[int], **given: list[Any]) -> dict[str, Any]:
    return {"kind": np.array(kind), **{name: np.array(values) for name, values in given.items()}}


def batch(*records: dict[str, Any], files: bool = False) -> Rows:
    located = [
        Located(
            source=METRICS, partition=3, offset=10 + i, file="f", record=validate(MODELS[each["type"]], as_bytes(each))
        )
        for i, each in enumerate(records)
    ]
    return rows_from_records(located, LIMITS, files=files)


def test_what_the_query_refused_lies_where_its_rows_say() -> None:
    refused = columns(
        [REFUSED, BUNDLE, REFUSED, REFUSED],
        source=[METRICS, METRICS, METRICS, RESULTS],
        partition=[1, 1, 1, 0],
        file=["", "", "", "a"],
        offset=[5, 6, 8, 2],
    )
    assert refused_spans(refused, batch(), shard=1) == [Span(METRICS, 1, "", 5, 8), Span(RESULTS, 0, "a", 2, 2)]


def test_facts_that_do_not_decode_are_refused_and_ticks_by_the_first_shard_alone() -> None:
    told = batch(broker_sweep(bundleStats=[bundle_stats(LEFT)]), namespace_state(), tick())
    assert refused_spans(columns([], **NOTHING), told, shard=0) == []
    unread = replace(told, facts={})
    assert refused_spans(columns([], **NOTHING), unread, shard=0) == [Span(METRICS, 3, "", 11, 12)]
    assert refused_spans(columns([], **NOTHING), unread, shard=1) == [Span(METRICS, 3, "", 11, 11)]
    first, last = sorted(told.facts)
    without_its_tick = replace(told, facts={first: told.facts[first]})
    assert refused_spans(columns([], **NOTHING), without_its_tick, shard=0) == [Span(METRICS, 3, "", 12, 12)]
    assert refused_spans(columns([], **NOTHING), without_its_tick, shard=2) == []
    without_its_fact = replace(told, facts={last: told.facts[last]})
    assert refused_spans(columns([], **NOTHING), without_its_fact, shard=0) == [Span(METRICS, 3, "", 11, 11)]


def test_of_a_folder_the_file_is_named() -> None:
    unread = replace(batch(namespace_state(), files=True), facts={})
    assert refused_spans(columns([], **NOTHING), unread, shard=1) == [Span(METRICS, 3, "f", 10, 10)]
