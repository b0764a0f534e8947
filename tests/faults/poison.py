"""Records that must become dead letters, each of which has once stopped something, or could."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from controller.simulator.cluster import ModelledSweep
from controller.simulator.encode import arrow_records, json_records

#: Beyond every bound of a count.
_HUGE = 2**62

#: The name of a column; in the header, which is JSON, it stands in quotes.
_COLUMN = re.compile(rb'msgRateIn(?!")')


class Poison(NamedTuple):
    """A record that nobody can use."""

    name: str
    value: bytes


def poison(cluster: str, sweep: ModelledSweep) -> Iterator[Poison]:
    """Every kind, made of a good *sweep* where that is needed; those that name a cluster are *cluster*'s."""
    text = next(json_records(sweep))[1]
    arrow = next(arrow_records(sweep))[1]
    fields = json.loads(text)
    yield Poison("length-of-arrow", b"\xff\xff\xff\xff\xff\xff\xff\x7f")
    yield Poison("arrow-cut-off", arrow[: len(arrow) // 2])
    yield Poison("arrow-column-not-utf8", _COLUMN.sub(b"msg\xff\xfeteIn", arrow))
    yield Poison("arrow-lengths-huge", arrow[:4] + b"\xff\xff\xff\x7f" + arrow[8:])
    yield Poison("tick-of-huge-counts", _tick(cluster, sweep.interval, _HUGE))
    yield Poison("tick-of-no-partitions", _tick(cluster, sweep.interval, 0))
    yield Poison("broker-with-line-break", _json(fields | {"broker": f"{sweep.broker}\nx:1"}))
    yield Poison("sweep-id-with-line-break", _json(fields | {"sweepId": "a\nb"}))
    yield Poison("topics-of-unequal-length", text.replace(b'"topic":[', b'"topic":["extra",', 1))
    yield Poison("rate-not-a-number", text.replace(b'"msgRateIn":', b'"msgRateIn":"NaN","x":', 1))
    yield Poison("rate-infinite", text.replace(b'"msgRateIn":', b'"msgRateIn":1e999,"x":', 1))
    yield Poison("interval-misaligned", _json(fields | {"interval": sweep.interval + 1}))
    yield Poison("nested", b'{"v":1,"type":' + b"[" * 100_000)
    yield Poison("digits", b'{"v":' + b"1" * 100_000 + b"}")
    yield Poison("lone-surrogate", b'{"v":1,"type":"tick","cluster":"\\ud800"}')
    yield Poison("not-utf8", b'{"v":1,"type":"\xff\xfe"}')
    yield Poison("not-json", b"{not json")
    yield Poison("empty", b"")
    yield Poison("zeros", bytes(64))


def _tick(cluster: str, interval: int, partitions: int) -> bytes:
    counts = {"metrics": partitions, "results": partitions}
    return _json({"v": 1, "type": "tick", "cluster": cluster, "interval": interval, "partitions": counts})


def _json(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
