"""The shape of a sweep in JSON: which number of its text is which field, found by reading it twice.

First with the numbers 1, 2, 3 ... in the text's holes, then with others: where they differ is a number, and by as much
as they should; all else is the text's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np

from controller.model.errors import WireError
from controller.model.load import RESOURCE_FIELDS, Ints
from controller.model.topic_kinds import KindFlags, kinds_of
from controller.wire.metrics import decode_metric
from controller.wire.split_json import HOLE, filled
from controller.wire.sweep import BrokerSweep

HEADER_INTS: Final = (
    "interval", "chunk", "chunks", "last_update", "num_topics", "num_bundles", "num_producers", "num_consumers",
)  # fmt: skip
_RATES: Final = ("msg_rate_in", "msg_rate_out", "msg_throughput_in", "msg_throughput_out")
HEADER_FLOATS: Final = (*(f"{name}.{part}" for name in RESOURCE_FIELDS for part in ("usage", "limit")), *_RATES)
_TOTALS_INTS: Final = ("producer_count", "consumer_count", "topics")
_TOPIC_INTS: Final = ("producer_count", "consumer_count")
#: How much higher the numbers are when a text is read again.
_HIGHER: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepShape:
    """Names, and the number of the hole of each field.  The first hole is the version, which has to be 1."""

    broker: str
    bundles: tuple[str, ...]
    topics: tuple[str, ...]
    #: (bundles,)
    topics_of_bundle: Ints
    #: (bundles,) flags of controller.model.topic_kinds; 0 without topics.
    kinds: KindFlags
    #: (1, 8) and (1, 14)
    header_ints: Ints
    header_floats: Ints
    #: (bundles, 3) and (bundles, 4)
    totals_ints: Ints
    totals_floats: Ints
    #: (topics, 2) and (topics, 4)
    topic_ints: Ints
    topic_floats: Ints


def shape_of(text: bytes, cluster: str) -> SweepShape | None:
    """The shape of the sweep of *cluster* in *text*, which has holes; None where it is none, or an unusual one."""
    holes = text.count(HOLE)
    if not text.startswith(b'{"v":' + HOLE) or holes >= _HIGHER:
        return None
    first = _read(text, [1, *range(2, holes + 1)], cluster)
    again = _read(text, [1, *range(_HIGHER + 2, _HIGHER + holes + 1)], cluster)
    if first is None or again is None:
        return None
    one, other = _shape(first), _shape(again)
    same = all(getattr(one, name) == getattr(other, name) for name in ("broker", "bundles", "topics"))
    same &= bool(np.array_equal(one.topics_of_bundle, other.topics_of_bundle))
    same &= all(np.array_equal(getattr(one, name) + _HIGHER, getattr(other, name)) for name in _HOLES)
    return one if same else None


_HOLES: Final = ("header_ints", "header_floats", "totals_ints", "totals_floats", "topic_ints", "topic_floats")


def _read(text: bytes, numbers: Sequence[int], cluster: str) -> BrokerSweep | None:
    try:
        value = filled(text, numbers)
        record = decode_metric(value, cluster=cluster, period_ms=1, max_bytes=len(value))
    except WireError:
        return None
    return record if isinstance(record, BrokerSweep) else None


def _shape(sweep: BrokerSweep) -> SweepShape:
    stats = sweep.bundle_stats
    return SweepShape(
        broker=sweep.broker,
        bundles=tuple(each.bundle for each in stats),
        topics=tuple(topic for each in stats for topic in each.topic),
        topics_of_bundle=np.array([len(each.topic) for each in stats], np.int64),
        kinds=np.array([kinds_of(each.topic) for each in stats], np.uint8),
        header_ints=_holes([sweep], HEADER_INTS),
        header_floats=_holes([sweep], HEADER_FLOATS),
        totals_ints=_holes([each.totals for each in stats], _TOTALS_INTS),
        totals_floats=_holes([each.totals for each in stats], _RATES),
        topic_ints=_topic_holes(stats, _TOPIC_INTS),
        topic_floats=_topic_holes(stats, _RATES),
    )


def _holes(things: Sequence[Any], names: Sequence[str]) -> Ints:
    """(things, names) the holes of these fields; the first hole of all has the number 0."""
    fields = attrgetter(*names)
    return _numbered([fields(thing) for thing in things], len(names))


def _topic_holes(stats: Sequence[Any], names: Sequence[str]) -> Ints:
    columns = [[number for each in stats for number in getattr(each, name)] for name in names]
    return _numbered(list(zip(*columns, strict=True)), len(names))


def _numbered(numbers: Sequence[Sequence[float]], width: int) -> Ints:
    """Holes from what was read in them; of a number that the text has itself, whatever it is, it is no hole."""
    read = np.array(numbers, np.float64).reshape(-1, width)
    return np.minimum(read, 1e18).astype(np.int64) - 1
