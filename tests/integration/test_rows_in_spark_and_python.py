"""The query and controller.wire draw the same line between good and bad records, and make the same rows of the good.

All cases lie in one log, a record an offset, and go through Spark once; each test looks at its own.

The query does not look into facts and ticks beyond their interval, it hands them all to controller.wire (suspects).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

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
from controller.aggregate.places import Span
from controller.aggregate.shard.fold import DetailLimits
from controller.log.dead_letters import DeadLetterLog
from controller.model.errors import WireError
from controller.wire.metrics import MetricRecord, decode_metric
from controller.wire.packed_rows import rows_from_columns
from controller.wire.results import Result, decode_result
from controller.wire.rows import Located, rows_from_records
from streaming import dead_letters
from streaming.dead_letters import DeadLetters
from streaming.decode import DecodeOptions, rows, suspects
from streaming.sources import located
from tests.records import (
    CLUSTER,
    LEFT,
    PERIOD,
    RATES,
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
    without,
)
from tests.records import (
    METRICS as EVERY_TYPE,
)
from tests.sharding import chosen_rows, shard_of
from tests.unit.wire import test_lz4_frames as lz4_frames
from tests.unit.wire.test_wire_arrow import TOPICS, packed, respun, with_column

pytestmark = pytest.mark.integration

_LIMITS = DetailLimits(topics=5, sessions=20, msg_rate=1_000, throughput=1e6)
_MAX_BYTES = 100_000
_OPTIONS = DecodeOptions(cluster=CLUSTER, period_ms=PERIOD, max_record_bytes=_MAX_BYTES, shards=3, detail=_LIMITS)
#: Whatever the records are that are read again.
EVERYWHERE = [Span(METRICS, 0, "", 0, 0)]
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"
_IMPOSSIBLE = "tenant/ns/0x80000000_0x00000000"


def sweep_of(*stats: Any) -> dict[str, Any]:
    return broker_sweep(bundleStats=list(stats))


def with_totals(bundle: str = LEFT, **changed: Any) -> dict[str, Any]:
    return bundle_stats(bundle, totals={**bundle_stats()["totals"], **changed})


def uneven(topics: int) -> dict[str, Any]:
    """Topics whose sums are not round: their order shows in the last bit."""
    columns = {name: [0.1 * (i + 1) + 1e5 / (i + 3) for i in range(topics)] for name in RATES}
    names = [f"persistent://tenant/ns/{'ünïcode-😀-' * (i % 2)}{i}" for i in range(topics)]
    names[-1] = f"segment://tenant/ns/ünïcode/0000-3fff-{topics}"
    return bundle_stats(LEFT, topics, topic=names, **columns)


def last_stats(**changed: Any) -> dict[str, Any]:
    return {**RATES, "producerCount": 1, "consumerCount": 2, "topics": 3, **changed}


def report(**changed: Any) -> dict[str, Any]:
    return load_report(**changed)


def twice(record: dict[str, Any], name: str, first: Any) -> bytes:
    """*record* with the field *name* given with *first* before the value it has."""
    return as_bytes({f"{name}!": first, **record}).replace(f'"{name}!"'.encode(), f'"{name}"'.encode())


def text(record: dict[str, Any], old: str, new: str | bytes) -> bytes:
    value = json.dumps(record)
    assert old in value
    return value.encode().replace(old.encode(), new if isinstance(new, bytes) else new.encode())


def further_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns that no sweep has, before its own."""
    for more in (
        pa.nulls(3),
        pa.array(["ü", None, ""]).dictionary_encode(),
        pa.array([b"\xff"] * 3),
        pa.array([True] * 3),
    ):
        batch = batch.add_column(0, f"more {more.type}", more)
    return batch


#: What no name holds.
HOSTILE = {
    "a line feed": "bro\nker", "a carriage return": "bro\rker", "a zero": "bro\0ker", "an escape": "\x1b[31mbroker",
    "a delete": "bro\x7fker", "a next line": "bro\x85ker", "a line separator": "bro\u2028ker",
    "a paragraph separator": "bro\u2029ker", "too much": "b" * 1025,
}  # fmt: skip


def named(name: str) -> dict[str, dict[str, Any]]:
    """Records with *name* in each of the places that have one."""
    return {
        "sweep's broker": broker_sweep(broker=name),
        "sweep's id": broker_sweep(sweepId=name),
        "bundle": sweep_of(bundle_stats(f"{name}/ns/0x00000000_0x80000000")),
        "load report": broker_load(broker=name),
        "report's host": report(webServiceUrl=f"http://{name}:8080"),
        "topic's broker": topic_stats(broker=name),
        "topic's bundle": topic_stats(bundle=f"{name}/ns/0x00000000_0x80000000"),
    }


def checked_frame(checksum: int) -> bytes:
    return lz4_frames.frame(lz4_frames.RATES[:5].tobytes(), flags=lz4_frames.VERSION_1 | checksum)


_TOTALS = bundle_stats()["totals"]
_SWEEP_TEXT = as_bytes(broker_sweep())

#: Names of two topics: of one kind, of the other, of both, of Pulsar 5.0, and those that only look like one.
KINDS = (
    ["non-persistent://tenant/ns/a", "non-persistent://tenant/ns/b"],
    ["persistent://tenant/ns/a", "non-persistent://tenant/ns/b"],
    ["segment://tenant/ns/a/0000-7fff-0", "topic://tenant/ns/a"],
    ["segment:/", "segments://tenant/ns/a"],
    ["NON-PERSISTENT://tenant/ns/a", "non-persistent:/"],
    ["non-persistent://", "persistent://tenant/ns/non-persistent://"],
)
SMALL, LARGE = bundle_stats()["totals"], bundle_stats()["totals"] | {"topics": 10**6}
NO_TOPICS: dict[str, Any] = {name: [] for name in ("topic", *RATES, "producerCount", "consumerCount")}
#: Values of a switch in a load report; only false switches anything off.
SWITCHES: tuple[Any, ...] = (False, True, None, 0, "false", [], {"a": False})
GOOD: dict[str, Any] = {
    **EVERY_TYPE,
    "sweep of many bundles": sweep_of(*(bundle_stats(f"t/n/0x{i:08x}_0x{i + 1:08x}", 1 + i % 8) for i in range(40))),
    "sweep of two bundles": sweep_of(bundle_stats(LEFT), bundle_stats(RIGHT)),
    "sweep of no bundles": sweep_of(),
    "sweep chunk": broker_sweep(chunk=2, chunks=3),
    "sweep with totals only": sweep_of({"bundle": LEFT, "totals": {**_TOTALS, "topics": 40, "producerCount": 12}}),
    "sweep with totals only, near": sweep_of({"bundle": LEFT, "totals": {**_TOTALS, "topics": 4000, "msgRateIn": 1e6}}),
    "sweep whose sums are not round": sweep_of(uneven(4)),
    "sweep near by topics": sweep_of(uneven(7), bundle_stats(RIGHT)),
    "sweep near by sessions": sweep_of(with_totals(producerCount=10, consumerCount=10)),
    "sweep near by message rate": sweep_of(with_totals(msgRateIn=999.5, msgRateOut=0.5)),
    "sweep near by throughput": sweep_of(with_totals(msgThroughputIn=1e6)),
    "sweep just below every limit": sweep_of(with_totals(producerCount=10, consumerCount=9, msgRateIn=978.9)),
    "sweep with many topics": sweep_of(uneven(300)),
    "sweep with totals last": sweep_of({**without(uneven(7), "totals"), "totals": uneven(7)["totals"]}),
    "sweep with rates first": sweep_of(dict(reversed(uneven(7).items()))),
    "sweep of whole numbers": sweep_of(with_totals(msgRateIn=3)),
    "sweep with the largest rate": sweep_of(with_totals(msgRateIn=1e12), bundle_stats(RIGHT, msgRateIn=[1e12, 1e12])),
    "sweep with the largest counts": sweep_of(
        with_totals(producerCount=10**12),
        bundle_stats(RIGHT, producerCount=[10**12] * 2),
    ),
    "sweep with a negative zero": sweep_of(bundle_stats(LEFT, 1, msgRateIn=[-0.0], totals={**_TOTALS, "topics": 1})),
    "sweep with unknown fields": broker_sweep(
        extra={"a": [1, None, {"b": "c"}]}, bundleStats=[{**bundle_stats(), "more": [[1], {}]}, with_totals(RIGHT, x=1)]
    ),
    "sweep with sizes, which nobody reads": sweep_of(
        bundle_stats(storageSize=[1, -1, 2**63], totals={**_TOTALS, "storageSize": None}),
        {**bundle_stats(RIGHT), "backlogSize": "x"},
    ),
    "topic with sizes, which nobody reads": topic_stats(storageSize=1.5, backlogSize=[]),
    "sweep with a report's address": broker_sweep(webServiceUrl="http://other:8080"),
    "sweep with a report's bundles": broker_sweep(lastStats={_IMPOSSIBLE: {}}),
    "sweep with escapes": text(broker_sweep(), "broker-1:8080", r"br\u00f6ker\ud83d\ude00\\ud800\/:8080"),
    "sweep in UTF-8": json.dumps(sweep_of(uneven(7)), ensure_ascii=False).encode(),
    "sweep with white space": json.dumps(broker_sweep(), indent=2).encode() + b" \r\n\t",
    "sweep with huge exponents where nobody looks": text(broker_sweep(extra=7), '"extra": 7', '"extra": 1e400'),
    "sweep given a bundle list twice": twice(broker_sweep(), "bundleStats", [bundle_stats(_IMPOSSIBLE)]),
    "sweep given a broker twice": twice(broker_sweep(), "broker", "broker-2:8080"),
    "sweep with the name of another type's field in another shape": broker_sweep(partitions=4, report=[], lastStats=7),
    "sweep given an interval twice, first in another shape": twice(broker_sweep(), "interval", "soon"),
    "sweep given an interval twice": twice(broker_sweep(), "interval", T - PERIOD),
    "sweep given an array twice": text(sweep_of("!"), '"!"', twice(bundle_stats(), "msgRateIn", [1.0, -1.0, 2.0])),
    "sweep given topics twice": text(sweep_of("!"), '"!"', twice(bundle_stats(), "topic", [None, "a", "b"])),
    "sweep given totals twice": text(sweep_of("!"), '"!"', twice(bundle_stats(), "totals", {"msgRateIn": -1.0})),
    "sweep given a total twice": text(
        sweep_of("!"), '"!"', as_bytes(with_totals(a=1)).replace(b'"a"', b'"msgRateIn": 7.0, "topics"')
    ),
    "sweep given a name twice": text(sweep_of("!"), '"!"', twice(bundle_stats(), "bundle", _IMPOSSIBLE)),
    **{
        f"sweep of topics {names}, near {near}": sweep_of(bundle_stats(topic=names, totals=LARGE if near else SMALL))
        for names in KINDS
        for near in (False, True)
    },
    **{f"topic named {name}": topic_stats(topic=name) for names in KINDS for name in names},
    **{f"Arrow of topics {names}": respun(with_column("topic", pa.array([*names, names[0]]))) for names in KINDS},
    "sweep with names in escapes": text(sweep_of(bundle_stats()), "persistent://", r"\u006eon-persistent:\/\/"),
    "sweep with topics last": sweep_of(dict(reversed(bundle_stats(topic=KINDS[0]).items()))),
    "sweep given topics of other kinds first": text(
        sweep_of("!"), '"!"', twice(bundle_stats(), "topic", ["non-persistent://a", "b"])
    ),
    "sweep of totals with topics and without": sweep_of(
        with_totals(topics=0) | NO_TOPICS, {**with_totals(RIGHT, topics=1), **NO_TOPICS}
    ),
    **{
        f"bare report with {name} {value}": report(**{name: value})
        for name in ("persistentTopicsEnabled", "nonPersistentTopicsEnabled")
        for value in SWITCHES
    },
    "bare report of a broker that serves nothing": report(
        persistentTopicsEnabled=False, nonPersistentTopicsEnabled=False
    ),
    "load report of a broker without one kind": broker_load(report=report(nonPersistentTopicsEnabled=False)),
    "sweep with a field of reports": broker_sweep(nonPersistentTopicsEnabled=False),
    "bare report": report(),
    "bare report of another broker": load_report(2),
    "bare report with the TLS address alone": report(webServiceUrl=None, webServiceUrlTls="https://broker-9:8443"),
    "bare report with an empty address": report(webServiceUrl="", webServiceUrlTls="https://broker-9:8443"),
    "bare report without its type's name": without(without(report(), "loadReportType"), "webServiceUrl")
    | {"webServiceUrlTls": "https://broker-9:8443/"},
    "bare report with unknown limits": report(cpu={"usage": 5.0, "limit": -1}, memory={"usage": 5.0, "limit": 0}),
    **{
        f"bare report of a usage {usage} of {limit}": report(cpu={"usage": usage, "limit": limit})
        for usage in (-1.0, -1600.0, -0.0, -5e-324, "NaN", 5.0)
        for limit in (-1.0, 0.0, -0.0)
    },
    **{
        f"bare report of a usage {usage}": report(cpu={"usage": usage, "limit": 1600.0})
        for usage in (-1600.0, -0.0, -5e-324)
    },
    "bare report of two bundles": report(lastStats={LEFT: last_stats(), RIGHT: last_stats(topics=0)}),
    "bare report of no bundles": report(lastStats={}),
    "bare report with fields of records of ours": report(v=7, broker="x", cluster="other", interval=7, sweepId="s"),
    "bare report whose address has a path": report(webServiceUrl="HTTP://Broker:80/path/?query"),
    "bare report given a bundle twice": text(
        report(lastStats={LEFT: last_stats(topics=1), RIGHT: last_stats(topics=2)}), RIGHT, LEFT
    ),
    "load report under another name": broker_load(broker="proxy:1"),
    "load report of two bundles": broker_load(report=report(lastStats={LEFT: last_stats(), RIGHT: last_stats()})),
    "topic of a bundle with a cluster": topic_stats(bundle="tenant/cluster/ns/0x00000000_0x80000000"),
    "topic with a unicode name": topic_stats(topic="persistent://tenant/ns/ünïcode-😀"),
    "topic with the largest rates": topic_stats(**dict.fromkeys(RATES, 1e12), producerCount=10**12),
    "topic of any characters": topic_stats(topic="persistent://tenant/ns/a\n\0\u2028\x85"),
    "sweep with topics of any characters": sweep_of(bundle_stats(topic=["a\nb", "\0\u2029\x7f" * 900])),
    "sweep with the longest name": broker_sweep(broker="ü" * 1024, sweepId="😀" * 1024),
    "sweep with the longest number": broker_sweep(extra=10**999, more=-(10**999)),
    "sweep with digits in a text": broker_sweep(extra="1" * 5000, **{"2" * 5000: 'a"' + "3" * 5000}),
    "sweep with a number of many signs": text(broker_sweep(extra=7), '"extra": 7', '"extra": -1.' + "0" * 990 + "1e-7"),
    "sweep with as many fields as fit": {**broker_sweep(), **{f"f{i}": i for i in range(5000)}},
    "sweep from the future": broker_sweep(lastUpdate=T + 2 * PERIOD),
    "sweep from the near future": broker_sweep(lastUpdate=T + PERIOD),
    "bare report from the future": report(lastUpdate=2**62),
    "load report from the future": broker_load(report=report(lastUpdate=2**62)),
    "namespace of this period": namespace_state(version=T + PERIOD),
    "tick of as many partitions as can be": tick(partitions={"metrics": 10_000, "results": 10_000}),
    "tick of many brokers": tick(roster=[{"broker": f"{i}"} for i in range(4000)]),
    "Arrow": respun(),
    "Arrow with further columns": respun(further_columns),
    "Arrow without its end mark": respun()[:-8],
    **{f"Arrow compressed by {codec}": packed(respun(), codec) for codec in ("lz4", "zstd")},
    "Arrow in LZ4 with a match behind its end": lz4_frames.with_frame(lz4_frames.MATCH_BEHIND_ITS_END, lz4_frames.FEW),
    "Arrow in LZ4 with a match that lies nowhere": lz4_frames.with_frame(lz4_frames.MATCH_NOWHERE, lz4_frames.FEW),
    "Arrow in LZ4 with a checksum": lz4_frames.with_frame(checked_frame(lz4_frames.CONTENT_CHECKSUM), lz4_frames.FEW),
    "topic whose rates are not round": topic_stats(msgRateIn=0.0005, msgRateOut=0.0015, msgThroughputIn=1 / 3),
    "tick without a roster": without(tick(), "roster"),
    "tick of a recording": tick(partitions={"metrics": 1, "results": 0}),
    "tick one interval ahead": tick(T + PERIOD),
}
_HALF = "\\ud83d"
BAD: dict[str, Any] = {
    **{
        f"{what} with {name} in its name": record
        for name, hostile in HOSTILE.items()
        for what, record in named(hostile).items()
    },
    "a number of too many digits": broker_sweep(extra=10**1000),
    "a fraction of too many digits": text(broker_sweep(extra=7), '"extra": 7', '"extra": 0.' + "1" * 1000),
    "an interval of 50,000 digits": text(broker_sweep(), f'"interval": {T}', '"interval": ' + "1" * 50_000),
    "an exponent of ten digits": text(broker_sweep(), '"usage": 25.0', '"usage": 1e999999999'),
    "more producers than there can be": sweep_of(with_totals(producerCount=10**12 + 1)),
    "more producers of a topic than there can be": sweep_of(bundle_stats(producerCount=[1, 10**12 + 1])),
    "more bundles than there can be": broker_sweep(numBundles=10**12 + 1),
    "more producers of one topic than there can be": topic_stats(producerCount=10**12 + 1),
    "tick of 2^62 partitions": tick(partitions={"metrics": 2**62, "results": 1}),
    "tick of 2^62 partitions of results": tick(partitions={"metrics": 1, "results": 2**62}),
    "tick of too many brokers": tick(roster=[0] * 10_001),
    "namespace of the far future": namespace_state(version=2**62),
    "broker state of the next period but one": broker_state(version=T + PERIOD + 1),
    "namespace of a negative version": namespace_state(version=-(2**62)),
    "broker state without a version": without(broker_state(), "version"),
    "Arrow of eight bytes": b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    "Arrow of a negative length": b"\xff" * 8,
    "Arrow of nothing": b"\xff\xff\xff\xff\0\0\0\0",
    "Arrow with a column whose name is not UTF-8": respun(with_column("topic", pa.array(TOPICS))).replace(
        b"consumerCount", b"consumerCou\xff\xfe"
    ),
    "Arrow with more behind its end": respun() + b"\0" * 8,
    "Arrow cut off": respun()[:-100],
    "Arrow twice": respun() * 2,
    "Arrow with a nested column": respun(lambda batch: batch.append_column("more", pa.array([[1]] * 3))),
    "Arrow with a column twice": respun(lambda batch: batch.append_column("topic", pa.array(TOPICS))),
    "Arrow whose rates are single": respun(with_column("msgRateIn", pa.array([1.0] * 3, pa.float32()))),
    "Arrow with a null": respun(with_column("msgRateIn", pa.array([1.0, None, 2.0]))),
    "Arrow with a line break in a bundle's name": respun(
        with_column("bundle", pa.array(["te\nnant/ns/0x00000000_0x80000000"] * 3).dictionary_encode())
    ),
    "Arrow with a line break in the broker's name": respun(broker="bro\nker"),
    "Arrow in LZ4 with checksums of blocks": lz4_frames.with_frame(
        checked_frame(lz4_frames.BLOCK_CHECKSUMS), lz4_frames.FEW
    ),
    "Arrow in LZ4 of another size": lz4_frames.with_frame(
        lz4_frames.frame(lz4_frames.RATES[:4].tobytes()), lz4_frames.FEW
    ),
    "Arrow that unpacks to too much": packed(respun(with_column("topic", pa.array(["a" * 10**6] * 3))), "zstd"),
    "nothing": b"",
    "not JSON": b"{not json",
    "half a sweep": _SWEEP_TEXT[:-20],
    "half a tick": as_bytes(tick())[:-20],
    "a number": b"5",
    "a string": b'"bundleStats"',
    "null": b"null",
    "an array": as_bytes([broker_sweep()]),
    "an array of a tick": as_bytes([tick()]),
    "garbage after a sweep": _SWEEP_TEXT + b" x",
    "garbage after a tick": as_bytes(tick()) + b"}",
    "two ticks in a record": as_bytes(tick()) * 2,
    "single quotes": as_bytes(topic_stats()).replace(b'"', b"'"),
    "a comment": b"/* */" + as_bytes(tick()),
    "a trailing comma": as_bytes(tick())[:-1] + b",}",
    "a byte order mark": b"\xef\xbb\xbf" + _SWEEP_TEXT,
    "a byte order mark before a tick": b"\xef\xbb\xbf" + as_bytes(tick()),
    "UTF-16": json.dumps(tick()).encode("utf-16"),
    "Latin-1": text(broker_sweep(), "broker-1:8080", b"br\xf6ker"),
    "Latin-1 in a topic": text(broker_sweep(), "topic-0", b"t\xf6pic"),
    "Latin-1 in a topic's record": text(topic_stats(), "topic-0", b"t\xf6pic"),
    "a surrogate in UTF-8": text(broker_sweep(), "topic-0", b"t\xed\xa0\x80"),
    "half a surrogate pair": text(broker_sweep(), "topic-0", _HALF),
    "half a surrogate pair in a topic's record": text(topic_stats(), "topic-0", _HALF),
    "surrogates the wrong way round": text(broker_sweep(), "topic-0", r"\ude00\ud83d"),
    "a control character": text(broker_sweep(), "topic-0", "to\npic"),
    "deeper than anybody reads": text(tick(extra=0), '"extra": 0', '"extra": ' + "[" * 300 + "]" * 300),
    "deeper than anybody reads in a sweep": text(
        broker_sweep(extra=0), '"extra": 0', '"extra": ' + "[" * 300 + "]" * 300
    ),
    "NaN where nobody looks": broker_sweep(extra=float("nan")),
    "infinity where nobody looks": tick(extra=float("-inf")),
    "too large": broker_sweep(extra="x" * _MAX_BYTES),
    "unknown type": broker_sweep(type="never_heard_of"),
    "no type": without(broker_sweep(), "type"),
    "type null": broker_sweep(type=None),
    "type a number": tick(type=1),
    "type a result's": result(),
    "no version": without(broker_sweep(), "v"),
    "version null": tick(v=None),
    "another version": tick(v=2),
    "version a fraction": tick(v=1.5),
    "version a string": broker_sweep(v="1"),
    "version true": tick(v=True),
    "no cluster": without(tick(), "cluster"),
    "cluster a number": tick(cluster=5),
    "cluster null": broker_sweep(cluster=None),
    "broker a number": {**broker_sweep(), "broker": 5},
    "broker an object": {**broker_sweep(), "broker": {"a": 1}},
    "broker empty": broker_sweep(broker=""),
    "sweep with an address in place of a broker": without(broker_sweep(webServiceUrl="http://other:8080"), "broker"),
    "sweep id a number": broker_sweep(sweepId=5),
    "sweep id empty": broker_sweep(sweepId=""),
    "sweep id missing": without(broker_sweep(), "sweepId"),
    "misaligned": broker_sweep(interval=T + 1),
    "far ahead": broker_sweep(interval=T + 2 * PERIOD),
    "before the epoch": broker_sweep(interval=-PERIOD),
    "interval a fraction": broker_sweep(interval=T + 0.5),
    "interval written as a fraction": text(broker_sweep(), f'"interval": {T}', f'"interval": {T}.0'),
    "interval a string": broker_sweep(interval=str(T)),
    "interval too large": broker_sweep(interval=2**63),
    "misaligned tick": tick(T + 1),
    "tick far ahead": tick(T + 2 * PERIOD),
    "tick without partitions": without(tick(), "partitions"),
    "chunk beyond the last": broker_sweep(chunk=1),
    "chunk negative": broker_sweep(chunk=-1),
    "chunks missing": without(broker_sweep(), "chunks"),
    "no last update": without(broker_sweep(), "lastUpdate"),
    "no resources": without(broker_sweep(), "cpu"),
    "resource without a limit": broker_sweep(cpu={"usage": 1.0}),
    "resource null": broker_sweep(memory=None),
    "resource a number": broker_sweep(memory=5),
    'reported usage "NaN" of a limit': report(cpu={"usage": "NaN", "limit": 1.0}),
    'reported usage "Infinity"': report(cpu={"usage": "Infinity", "limit": -1.0}),
    "reported usage a text": report(cpu={"usage": "1.0", "limit": -1.0}),
    "reported usage NaN": report(cpu={"usage": float("nan"), "limit": -1.0}),
    "reported usage beyond all brokers": report(cpu={"usage": -2e15, "limit": 1.0}),
    "usage NaN": broker_sweep(cpu={"usage": float("nan"), "limit": 1.0}),
    'usage "NaN"': broker_sweep(cpu={"usage": "NaN", "limit": 1.0}),
    'usage "Infinity"': broker_sweep(cpu={"usage": "Infinity", "limit": 1.0}),
    "usage negative": broker_sweep(cpu={"usage": -1.0, "limit": 1.0}),
    "usage beyond all brokers": broker_sweep(cpu={"usage": 2e15, "limit": 1.0}),
    "usage 1e400": text(broker_sweep(), '"usage": 25.0', '"usage": 1e400'),
    "limit unknown": broker_sweep(cpu={"usage": 1.0, "limit": -1.0}),
    "rate of the broker negative": broker_sweep(msgRateIn=-1.0),
    "rate of the broker too large": broker_sweep(msgRateIn=1e13),
    "rate of the broker a string": broker_sweep(msgRateIn="5"),
    "rate of the broker true": broker_sweep(msgRateIn=True),
    "count of the broker a fraction": broker_sweep(numTopics=1.5),
    "count of the broker negative": broker_sweep(numConsumers=-1),
    "no bundles": without(broker_sweep(), "bundleStats"),
    "bundles null": broker_sweep(bundleStats=None),
    "bundles an object": broker_sweep(bundleStats={}),
    "bundles a number": broker_sweep(bundleStats=1),
    "a bundle null": sweep_of(bundle_stats(), None),
    "a bundle an array": sweep_of([1]),
    "a bundle twice": sweep_of(bundle_stats(LEFT), bundle_stats(LEFT)),
    "bundle with a line end in its tenant": sweep_of(bundle_stats("ten\nant/ns/0x00000000_0x80000000")),
    "impossible bundle": sweep_of(bundle_stats(_IMPOSSIBLE)),
    "bundle without a tenant": sweep_of(bundle_stats("ns/0x00000000_0x80000000")),
    "bundle with capitals": sweep_of(bundle_stats("tenant/ns/0x00000000_0x8000000A")),
    "bundle with an empty part": sweep_of(bundle_stats("tenant//0x00000000_0x80000000")),
    "bundle with a line end": sweep_of(bundle_stats(LEFT + "\n")),
    "bundle without a name": sweep_of(without(bundle_stats(), "bundle")),
    "bundle's name a number": sweep_of(bundle_stats(bundle=5)),  # type: ignore[arg-type]
    "bundle's name spoilt the second time": text(
        sweep_of("!"), '"!"', twice({**bundle_stats(), "bundle": 5}, "bundle", LEFT)
    ),
    "no totals": sweep_of(without(bundle_stats(), "totals")),
    "totals null": sweep_of(bundle_stats(totals=None)),
    "totals an array": sweep_of(bundle_stats(totals=[])),
    "a total missing": sweep_of(bundle_stats(totals=without(_TOTALS, "topics"))),
    "a total missing, another in its place": sweep_of(
        bundle_stats(totals={**without(_TOTALS, "topics"), "storageSize": 1})
    ),
    "a total null": sweep_of(with_totals(topics=None)),
    "a total NaN": sweep_of(with_totals(msgRateIn=float("nan"))),
    'a total "NaN"': sweep_of(with_totals(msgRateIn="NaN")),
    "a total negative": sweep_of(with_totals(msgRateIn=-0.5)),
    "a total 1e300": sweep_of(with_totals(msgRateIn=1e300)),
    "a total count a fraction": sweep_of(with_totals(topics=2.0)),
    "a total count too large": sweep_of(with_totals(topics=2**63)),
    "a total spoilt the second time": text(sweep_of(with_totals(a=1)), '"a": 1', '"msgRateIn": -1.0'),
    "an array missing": sweep_of(without(bundle_stats(), "msgRateIn")),
    "an array of counts missing": sweep_of(without(bundle_stats(), "consumerCount")),
    "an array null": sweep_of(bundle_stats(msgRateIn=None)),
    "an array an object": sweep_of(bundle_stats(msgRateIn={})),
    "an array too short": sweep_of(bundle_stats(msgRateIn=[1.0])),
    "an array too long": sweep_of(bundle_stats(consumerCount=[1, 2, 3])),
    "arrays without topics": sweep_of(without(bundle_stats(), "topic")),
    "a topic null": sweep_of(bundle_stats(topic=["a", None])),
    "a topic a number": sweep_of(bundle_stats(topic=["a", 5])),
    "topics a string": sweep_of(bundle_stats(topic="ab")),
    "a topic's rate null": sweep_of(bundle_stats(msgRateIn=[1.0, None])),
    "a topic's rate NaN": sweep_of(bundle_stats(msgRateIn=[1.0, float("nan")])),
    "a topic's rate infinite": sweep_of(bundle_stats(msgRateIn=[1.0, float("inf")])),
    "a topic's rate negative": sweep_of(bundle_stats(msgRateIn=[1.0, -1.0])),
    "a topic's rate 1e300": sweep_of(bundle_stats(msgRateIn=[1.0, 1e300])),
    "a topic's rate a string": sweep_of(bundle_stats(msgRateIn=[1.0, "1"])),
    "a topic's rate an array": sweep_of(bundle_stats(msgRateIn=[1.0, [2.0]])),
    "a topic's count a fraction": sweep_of(bundle_stats(producerCount=[1, 1.5])),
    "a topic's count negative": sweep_of(bundle_stats(consumerCount=[1, -1])),
    "a topic's count too large": sweep_of(bundle_stats(consumerCount=[1, 2**63])),
    "report without an address": report(webServiceUrl=None, webServiceUrlTls=None),
    "report without a host": report(webServiceUrl="http:///path"),
    "report whose address is no text": report(webServiceUrl=5),
    "report's bundles null": report(lastStats=None),
    "report's bundles an array": report(lastStats=[]),
    "report's bundles missing": without(report(), "lastStats"),
    "report of an impossible bundle": report(lastStats={_IMPOSSIBLE: last_stats()}),
    "report's totals null": report(lastStats={LEFT: None}),
    "report's totals lack one": report(lastStats={LEFT: without(last_stats(), "topics")}),
    "report's total negative": report(lastStats={LEFT: last_stats(msgRateIn=-1.0)}),
    "report given a bundle twice, first spoilt": text(
        report(lastStats={LEFT: last_stats(topics=-1), RIGHT: last_stats(topics=2)}), RIGHT, LEFT
    ),
    "report whose usage is NaN": report(cpu={"usage": float("nan"), "limit": 1.0}),
    "report whose limit is beyond all brokers": report(cpu={"usage": 1.0, "limit": -1e16}),
    "report without last update": without(report(), "lastUpdate"),
    "load report without a report": without(broker_load(), "report"),
    "load report of null": broker_load(report=None),
    "load report of a number": broker_load(report=5),
    "load report under an empty name": broker_load(broker=""),
    "load report without an address": broker_load(
        broker="b:1", report=report(webServiceUrl=None, webServiceUrlTls=None)
    ),
    "load report whose address is no text": broker_load(report=report(webServiceUrl=5)),
    "load report with its bundles outside": broker_load(report=without(report(), "lastStats"), lastStats={}),
    "topic without a name": without(topic_stats(), "topic"),
    "topic with an empty name": topic_stats(topic=""),
    "topic's name a number": topic_stats(topic=5),
    "topic without a broker": without(topic_stats(), "broker"),
    "topic of an impossible bundle": topic_stats(bundle=_IMPOSSIBLE),
    "topic of a bundle with a line end": topic_stats(bundle=LEFT + "\n"),
    "topic's rate missing": without(topic_stats(), "msgRateIn"),
    "topic's rate null": topic_stats(msgRateIn=None),
    "topic's rate NaN": topic_stats(msgRateIn=float("nan")),
    'topic\'s rate "NaN"': topic_stats(msgRateIn="NaN"),
    "topic's rate negative": topic_stats(msgRateIn=-1.0),
    "topic's rate 1e300": topic_stats(msgRateIn=1e300),
    "topic's count negative": topic_stats(producerCount=-1),
    "topic's count missing": without(topic_stats(), "consumerCount"),
    "topic's count a fraction": topic_stats(consumerCount=1.0),
}
#: Facts and ticks that the query hands on, and controller.wire refuses.
SPOILT_FACTS: dict[str, Any] = {
    "tick of no partitions": tick(partitions={"metrics": 0, "results": 0}),
    "tick whose partitions are null": tick(partitions={"metrics": None, "results": 0}),
    "tick whose roster is no list": tick(roster=5),
    "tick that lists a broker twice": tick(roster=[{"broker": "b:1"}, {"broker": "b:1"}]),
    "namespace without boundaries": without(namespace_state(), "boundaries"),
    "namespace not cut whole": namespace_state(boundaries=["0x00000000", "0x80000000"]),
    "namespace with a line end in its name": namespace_state(namespace="ten\nant/ns"),
    "namespace with a line end in its group": namespace_state(antiAffinityGroup="a\u2028b"),
    "broker state with a line end in its domain": broker_state(failureDomain="a\nb"),
    "tick with a line end in its roster": tick(roster=[{"broker": "b:1", "sweepId": "a\nb"}]),
    "averages of an impossible bundle": bundle_data(bundle=_IMPOSSIBLE),
    "averages of nothing": without(bundle_data(), "bundleData"),
}
FOREIGN: dict[str, Any] = {
    f"another cluster's {what}": {**record, "cluster": "other"}
    for what, record in {
        **EVERY_TYPE,
        "unknown type": BAD["unknown type"],
        "other version": BAD["another version"],
        "misaligned sweep": BAD["misaligned"],
        "flawed bundle": BAD["impossible bundle"],
        "broker that is a negative": BAD["rate of the broker negative"],
    }.items()
}
#: In the result topic.
OTHER_TOPIC: dict[str, tuple[Any, bool]] = {
    "a result": (result(), True),
    "a tick": (tick(), True),
    "a sweep among the results": (broker_sweep(), False),
    "a bare report among the results": (report(), False),
    "a state among the results": (namespace_state(), False),
    "a result without a status": (without(result(), "status"), False),
    "another cluster's result": (result(cluster="other"), True),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    value: bytes
    source: int = METRICS


def cases() -> dict[str, Case]:
    found = {**GOOD, **BAD, **SPOILT_FACTS, **FOREIGN}
    values = {what: record if isinstance(record, bytes) else as_bytes(record) for what, record in found.items()}
    return {what: Case(value=value) for what, value in values.items()} | {
        what: Case(value=as_bytes(record), source=RESULTS) for what, (record, _) in OTHER_TOPIC.items()
    }


CASES = cases()
_OFFSETS = {what: offset for offset, what in enumerate(CASES)}
_APPENDED = T


def wire(case: Case) -> MetricRecord | Result | WireError | None:
    """What controller.wire makes of a case."""
    decode = decode_metric if case.source == METRICS else decode_result
    try:
        return decode(case.value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=_APPENDED, max_bytes=_MAX_BYTES)
    except WireError as error:
        return error


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the query says of all cases."""

    suspects: pd.DataFrame
    rows: pd.DataFrame
    #: Those rows as the fold gets them.
    unpacked: Rows


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    data = [(case.source, 0, offset, "", _APPENDED, case.value) for offset, case in enumerate(CASES.values())]
    return spark.createDataFrame(data, _SCHEMA).coalesce(1)


@pytest.fixture(scope="module")
def said(records: DataFrame) -> Said:
    found = rows(records, _OPTIONS).toPandas()
    columns = {str(name): found[name].to_numpy() for name in found.columns}
    unpacked = rows_from_columns(columns, cluster=CLUSTER, period_ms=PERIOD, files=False)
    return Said(suspects=suspects(records, _OPTIONS).toPandas(), rows=found, unpacked=unpacked)


def is_suspect(said: Said, what: str) -> bool:
    return bool((said.suspects["offset"] == _OFFSETS[what]).any())


def is_refused(said: Said, what: str) -> bool:
    return bool(said.suspects["refused"][said.suspects["offset"] == _OFFSETS[what]].any())


def of_the_query(said: Said, what: str) -> Rows:
    return chosen_rows(said.unpacked, np.flatnonzero(said.unpacked.offset == _OFFSETS[what]))


def plain(rows: Rows) -> list[tuple[Any, ...]]:
    """What *rows* mean, sorted: of each column what it means for the row's kind, a row for all shards once.

    Facts that do not decode are none, shard 0 alone has a report's numbers, a topic's name has another hash in Spark.
    """
    return sorted(set(_plain(rows)), key=repr)


def _plain(rows: Rows) -> Iterator[tuple[Any, ...]]:
    starts = np.cumsum([0, *rows.detail_size])
    for i, kind in enumerate(rows.kind.tolist()):
        if (kind in (TICK, FACT) and i not in rows.facts) or (kind == REPORT and i not in rows.numbers):
            continue
        detail = slice(starts[i], starts[i + 1])
        yield (
            kind,
            *(int(column[i]) for column in (rows.source, rows.partition, rows.offset)),
            int(rows.interval[i]) if kind in (TICK, SWEEP, BUNDLE) else None,
            rows.broker[i] if kind not in (TICK, FACT) else None,
            (rows.sweep[i], int(rows.chunk[i]), int(rows.chunks[i])) if kind in (SWEEP, BUNDLE) else None,
            int(rows.last_update[i]) if kind not in (TICK, FACT, TOPIC) else None,
            (rows.bundle[i], *rows.stats[i].tolist(), int(rows.kinds[i]))
            if kind in (BUNDLE, TOPIC, REPORT_BUNDLE)
            else None,
            tuple(rows.topic[i][1:].tolist()) if kind == TOPIC else None,
            (
                *(tuple(of[detail].tolist()) for of in (rows.detail_position, rows.detail_segment)),
                rows.detail_load[detail].tobytes(),
            )
            if kind == BUNDLE
            else None,
            rows.numbers[i].tobytes() if kind in (SWEEP, REPORT) else None,
            repr(rows.facts.get(i)),
        )


def in_python(what: str) -> Rows:
    case, record = CASES[what], wire(CASES[what])
    good = record is not None and not isinstance(record, WireError)
    located = Located(source=case.source, partition=0, offset=_OFFSETS[what], record=record)
    return rows_from_records([located] if good else [], _LIMITS)


@pytest.mark.parametrize("what", GOOD)
def test_a_good_record_becomes_the_same_rows(said: Said, what: str) -> None:
    assert not isinstance(wire(CASES[what]), WireError)
    assert plain(of_the_query(said, what)) == plain(in_python(what)) != []
    assert not is_refused(said, what)


def test_ticks_and_reports_go_to_every_shard_and_their_bundles_to_one(said: Said) -> None:
    for what, kind, shards, bundles in (
        ("tick", TICK, [0, 1, 2], 0),
        ("broker_load", REPORT, [0, 1, 2], len(report()["lastStats"])),
        ("a result", FACT, [0], 0),
        ("broker_sweep", SWEEP, [0], 1),
    ):
        found = said.rows[said.rows["offset"] == _OFFSETS[what]]
        assert sorted(found[found["kind"] == kind]["shard"]) == shards
        names = [name for names in found[found["kind"] != kind]["bundles"] for name in names.split("\n")]
        assert len(set(names)) == len(names) == bundles


def test_a_bundle_lies_in_the_shard_that_the_tests_without_spark_give_it(said: Said) -> None:
    loaded = said.rows[said.rows["kind"].isin((BUNDLE, TOPIC, REPORT_BUNDLE))]
    packed = zip(loaded["bundles"], loaded["shard"], strict=True)
    found = {(name, shard) for names, shard in packed for name in names.split("\n")}
    assert found == {(name, shard_of(name, cluster=CLUSTER, shards=_OPTIONS.shards)) for name, _ in found}
    assert {shard for _, shard in found} == {0, 1, 2}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_record_is_refused_by_both_and_becomes_no_row(said: Said, what: str) -> None:
    assert isinstance(wire(CASES[what]), WireError)
    assert is_refused(said, what)
    assert plain(of_the_query(said, what)) == []


@pytest.mark.parametrize("what", SPOILT_FACTS)
def test_a_spoilt_fact_is_a_suspect_and_becomes_no_row_that_means_anything(said: Said, what: str) -> None:
    assert isinstance(wire(CASES[what]), WireError)
    assert is_suspect(said, what)
    assert plain(of_the_query(said, what)) == []


@pytest.mark.parametrize("what", FOREIGN)
def test_another_clusters_record_is_ignored_whatever_it_holds(said: Said, what: str) -> None:
    assert wire(CASES[what]) is None
    assert not is_refused(said, what)
    assert plain(of_the_query(said, what)) == []


@pytest.mark.parametrize("what", OTHER_TOPIC)
def test_the_result_topic_has_results_and_ticks_alone(said: Said, what: str) -> None:
    _, good = OTHER_TOPIC[what]
    assert isinstance(wire(CASES[what]), WireError) is not good
    assert plain(of_the_query(said, what)) == plain(in_python(what))
    assert is_suspect(said, what) is (wire(CASES[what]) is not None)


def test_a_kafka_record_without_a_value_is_an_empty_one(spark: SparkSession) -> None:
    schema = "topic string, partition int, offset long, timestamp timestamp, key binary, value binary"
    tombstone = spark.createDataFrame([("metrics", 2, 7, datetime.fromtimestamp(T / 1000, UTC), None, None)], schema)
    kept = Kept()
    DeadLetters(kept, _OPTIONS, {}, lambda _: located(tombstone, "results")).store_suspects(EVERYWHERE, 0)
    (reason,) = kept.reasons
    assert reason.startswith("not_json: ")


def test_a_flood_of_bad_records_comes_to_the_driver_in_parts_and_none_is_lost(
    records: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, divided = Kept(), Kept()
    DeadLetters(whole, _OPTIONS, {}, lambda _: records).store_suspects(EVERYWHERE, 0)
    monkeypatch.setattr(dead_letters, "AT_ONCE", 50_000)
    DeadLetters(divided, _OPTIONS, {}, lambda _: records).store_suspects(EVERYWHERE, 0)
    assert whole.parts == 1 < divided.parts
    assert sorted(divided.reasons) == sorted(whole.reasons)
    assert len(whole.reasons) >= len(BAD)


class Kept(DeadLetterLog):
    """A dead letter log that remembers the reasons."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.parts = 0

    def write(self, batch: int, letters: Any, *, part: int = 0) -> None:
        self.parts = part + 1
        self.reasons += [f"{letter.reason}: {letter.detail}" for letter in letters]
