"""Sweeps in JSON as rows of the fold, many at once: no object for a bundle or a topic.

A sweep comes split into its text and its numbers (controller.wire.split_json).  A text is parsed once, with the numbers
0, 1, 2 ... in its holes: so it says which hole is which field.  From then on a sweep with this text is a few columns.
The rows are those of ``controller.wire.rows.rows_from_records``, bit for bit.  Sweeps with anything unusual in them are
left to that, those that have to be refused among them.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from controller.aggregate.columns.name_column import NameColumn
from controller.aggregate.columns.rows import BUNDLE, STATS, SWEEP, Rows
from controller.aggregate.shard.fold import DetailLimits
from controller.model.load import Bools, Floats, Ints, TopicDetail
from controller.model.names import is_name, topic_hash
from controller.model.segment_code import segment_code
from controller.model.topic_kinds import UNLISTED, KindFlags
from controller.wire.base import MAX_COUNT, MAX_QUANTITY, MAX_RATE
from controller.wire.split_json import SplitJson, floats, joined, split
from controller.wire.sweep_load import detailed_topics, in_stats, near_split, sums
from controller.wire.sweep_shape import HEADER_FLOATS, HEADER_INTS, SweepShape, shape_of

#: Columns of rows that are arrays.
_ARRAYS: Final = (
    "kind",
    "source",
    "partition",
    "offset",
    "interval",
    "chunk",
    "chunks",
    "last_update",
    "stats",
    "kinds",
    "topic",
    "detail_size",
    "detail_position",
    "detail_load",
    "detail_segment",
)
#: Texts whose shape is remembered: those of a few thousand brokers.
_MOST_SHAPES: Final = 10_000
_SWEEP_ID: Final = re.compile(rb'"sweepId":"([^"\\\\]*)"')
_LARGEST: Final = np.iinfo(np.int64).max
#: The greatest value of each whole number of a header.
_HEADER_MOST: Final = np.array([_LARGEST] * 4 + [MAX_COUNT] * 4)
_INTERVAL, _CHUNK, _CHUNKS, _LAST_UPDATE = range(4)


class RecordText(NamedTuple):
    """A record that is not decoded yet, and where it lies."""

    #: METRICS or RESULTS.
    source: int
    partition: int
    offset: int
    #: Epoch ms; None where the log does not say.
    append_time_ms: int | None
    value: bytes | SplitJson

    @property
    def whole(self) -> bytes:
        """The value in one piece."""
        return self.value if isinstance(self.value, bytes) else joined(self.value)


class _ShapedSweep(NamedTuple):
    """A sweep whose text has a known shape."""

    text: RecordText
    parts: SplitJson
    shape: SweepShape
    sweep_id: str


class JsonSweeps:
    """Reads sweeps of one cluster."""

    def __init__(self, *, cluster: str, period_ms: int, max_bytes: int, detail: DetailLimits) -> None:
        self._cluster, self._period_ms, self._max_bytes, self._detail = cluster, period_ms, max_bytes, detail
        #: By text without the sweep's id, which is another one every time; None of a text that cannot be taken.
        self._shapes: OrderedDict[bytes, SweepShape | None] = OrderedDict()

    def rows(self, texts: Sequence[RecordText]) -> tuple[Rows, list[RecordText]]:
        """The rows of those of *texts* that can be taken, and the others."""
        shaped, others = list[_ShapedSweep](), list[RecordText]()
        for text in texts:
            sweep = self._shaped(text)
            if sweep is None:
                others.append(text)
            else:
                shaped.append(sweep)
        good = _Batch(shaped, self._period_ms).good()
        others += [shaped[i].text for i in np.flatnonzero(~good).tolist()]
        return self._rows(_Batch([shaped[i] for i in np.flatnonzero(good).tolist()], self._period_ms)), others

    def _shaped(self, text: RecordText) -> _ShapedSweep | None:
        """*text* with its shape; None where it is no sweep of this cluster as collectors write it."""
        parts = split(text.value) if isinstance(text.value, bytes) else text.value
        match = None if parts is None else _SWEEP_ID.search(parts.text)
        # Each number has 42 bytes at most.
        if parts is None or match is None or len(parts.text) + 42 * len(parts.digits) > self._max_bytes:
            return None
        key = parts.text[: match.start(1)] + parts.text[match.end(1) :]
        shape = self._shape(key, match.start(1))
        try:
            sweep_id = match[1].decode()
        except UnicodeDecodeError:
            return None
        return None if shape is None or not is_name(sweep_id) else _ShapedSweep(text, parts, shape, sweep_id)

    def _shape(self, text: bytes, at: int) -> SweepShape | None:
        known = self._shapes
        if text in known:
            known.move_to_end(text)
            return known[text]
        known[text] = shape = shape_of(text[:at] + b"id" + text[at:], self._cluster)
        if len(known) > _MOST_SHAPES:
            known.popitem(last=False)
        return shape

    def _rows(self, batch: "_Batch") -> Rows:
        """The SWEEP rows of all sweeps, and behind them their BUNDLE rows."""
        n, of = len(batch.sweeps), batch.sweep_of_bundle
        at, none = np.concatenate([np.arange(n), of]), np.zeros(n, np.int64)
        near = batch.near(self._detail)
        topics = batch.detail(near)
        header = batch.header
        place = np.array([each.text[:3] for each in batch.sweeps], np.int64).reshape(-1, 3)
        names = list(chain([""], *(each.shape.bundles for each in batch.sweeps)))
        return Rows(
            kind=np.repeat([SWEEP, BUNDLE], [n, len(of)]),
            source=place[at, 0],
            partition=place[at, 1],
            offset=place[at, 2],
            file=None,
            interval=header[at, _INTERVAL],
            broker=NameColumn(names=[each.shape.broker for each in batch.sweeps], codes=at),
            sweep=NameColumn(names=[each.sweep_id for each in batch.sweeps], codes=at),
            chunk=header[at, _CHUNK],
            chunks=header[at, _CHUNKS],
            last_update=np.where(header[:, _LAST_UPDATE] > batch.latest, 0, header[:, _LAST_UPDATE])[at],
            bundle=NameColumn(names=names, codes=np.concatenate([none, 1 + np.arange(len(of))])),
            stats=np.concatenate([np.zeros((n, len(STATS))), batch.stats()]),
            kinds=np.concatenate([none.astype(np.uint8), batch.kinds()]),
            topic=np.zeros((len(at), 3), np.int64),
            detail_size=np.concatenate([none, topics.sizes]),
            detail_position=topics.position,
            detail_load=topics.load,
            detail_segment=topics.segment,
            numbers=dict(enumerate(batch.broker_numbers())),
            facts={},
        )


class _Batch:
    """The columns of some sweeps."""

    def __init__(self, sweeps: Sequence[_ShapedSweep], period_ms: int) -> None:
        self.sweeps, self._period_ms = sweeps, period_ms
        shapes = [each.shape for each in sweeps]
        digits = _joined([each.parts.digits for each in sweeps], 0)
        decimals = _joined([each.parts.decimals for each in sweeps], 0).astype(np.uint8)
        numbers, self._whole = floats(digits, decimals), decimals == 0
        starts = np.cumsum([0, *(len(each.parts.digits) for each in sweeps)])[:-1]

        #: (sweeps,) the version is the first number.
        self._is_version_1 = (digits[starts] == 1) & self._whole[starts]

        def holes(name: str, width: int) -> Ints:
            positions: Ints = _joined(
                [getattr(shape, name) + at for shape, at in zip(shapes, starts, strict=True)], width
            )
            return positions

        self._int_holes = holes("header_ints", len(HEADER_INTS)), holes("totals_ints", 3), holes("topic_ints", 2)
        #: (sweeps, 8), (bundles, 3), (topics, 2)
        self.header, self._totals_ints, self._topic_ints = (digits[each] for each in self._int_holes)
        #: (sweeps, 14), (bundles, 4), (topics, 4)
        self._header_floats = numbers[holes("header_floats", len(HEADER_FLOATS))]
        self._totals, self._load = numbers[holes("totals_floats", 4)], numbers[holes("topic_floats", 4)]
        self.topics_of_bundle = _joined([shape.topics_of_bundle for shape in shapes], 0)
        self._kinds = _joined([shape.kinds for shape in shapes], 0).astype(np.uint8)
        #: (bundles,) and (topics,)
        self.sweep_of_bundle = np.repeat(np.arange(len(sweeps)), [len(shape.bundles) for shape in shapes])
        self._bundle_of_topic = np.repeat(np.arange(len(self.topics_of_bundle)), self.topics_of_bundle)
        ahead = [_LARGEST if (at := each.text.append_time_ms) is None else at + period_ms for each in sweeps]
        #: (sweeps,) the latest time that each may speak of: a period beyond its append time.
        self.latest = np.array(ahead, np.int64)

    def good(self) -> Bools:
        """(sweeps,) whether decode_metric would take each."""
        ok, interval = np.ones(len(self.sweeps), np.bool_), self.header[:, _INTERVAL]
        ok &= (interval % self._period_ms == 0) & (interval <= self.latest)
        ok &= self.header[:, _CHUNK] < self.header[:, _CHUNKS]
        of_bundle, of_topic = self.sweep_of_bundle, self.sweep_of_bundle[self._bundle_of_topic]
        for holes, of in zip(self._int_holes, (np.arange(len(ok)), of_bundle, of_topic), strict=True):
            ok[of[~self._whole[holes].all(axis=1)]] = False
        ok &= (self.header <= _HEADER_MOST).all(axis=1) & self._is_version_1
        ok &= (self._header_floats <= MAX_QUANTITY).all(axis=1)
        ok &= (self._header_floats[:, 10:] <= MAX_RATE).all(axis=1)
        ok[of_bundle[(self._totals > MAX_RATE).any(axis=1) | (self._totals_ints > MAX_COUNT).any(axis=1)]] = False
        ok[of_topic[(self._load > MAX_RATE).any(axis=1) | (self._topic_ints > MAX_COUNT).any(axis=1)]] = False
        return ok

    def stats(self) -> Floats:
        """(bundles, 7) as STATS of columns.rows names them: topics added one after the other, or else the totals."""
        columns = [*self._load.T, *self._topic_ints.T]
        summed = sums(self._bundle_of_topic, self.topics_of_bundle, columns)
        return in_stats(np.where((self.topics_of_bundle > 0)[:, None], summed, self._all_totals))

    @property
    def _all_totals(self) -> Floats:
        """(bundles, 7) the numbers of STATS in the totals, rates as they are."""
        return np.hstack([self._totals, self._totals_ints.astype(np.float64)])

    def kinds(self) -> KindFlags:
        """(bundles,) flags of controller.model.topic_kinds; 0 without topics."""
        unlisted = (self.topics_of_bundle == 0) & (self._totals_ints[:, 2] > 0)
        return np.where(unlisted, np.uint8(UNLISTED), self._kinds)

    def near(self, limits: DetailLimits) -> Bools:
        """(bundles,) those whose topics are kept one by one, by their totals."""
        return near_split(self._all_totals, limits)

    def detail(self, near: Bools) -> TopicDetail:
        """The topics of bundles that are *near*, and the segments of the others."""
        rows = detailed_topics(near, self._kinds, self._bundle_of_topic, self._names)
        place = np.array([_place(name) for name in self._names(rows)], np.int64).reshape(-1, 2)
        sizes = np.bincount(self._bundle_of_topic[rows], minlength=len(near))
        return TopicDetail.of(sizes, place[:, 0], self._load[rows], place[:, 1])

    def _names(self, topics: Ints) -> list[str]:
        """The names of some *topics*."""
        starts = np.cumsum([0, *(len(each.shape.topics) for each in self.sweeps)])
        at = np.searchsorted(starts, topics, side="right") - 1
        pairs = zip(at.tolist(), (topics - starts[at]).tolist(), strict=True)
        return [self.sweeps[i].shape.topics[j] for i, j in pairs]

    def broker_numbers(self) -> Floats:
        """(sweeps, NUMBERS) see controller.aggregate.columns.rows."""
        kinds_off = np.zeros((len(self.header), 1))
        return np.hstack([self._header_floats, self.header[:, 4:6].astype(np.float64), kinds_off])


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """The rows of all *parts*, none of which is of a folder's files, one after the other."""
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
    for name in ("broker", "sweep", "bundle"):
        columns[name] = _joined_names([getattr(part, name) for part in parts])
    for name in ("numbers", "facts"):
        pairs = zip(parts, starts, strict=False)
        columns[name] = {row + first: each for part, first in pairs for row, each in getattr(part, name).items()}
    return Rows(file=None, **columns)


def _joined_names(columns: Sequence[NameColumn]) -> NameColumn:
    starts = np.cumsum([0, *(len(column.names) for column in columns)]).tolist()
    return NameColumn(
        names=[name for column in columns for name in column.names],
        codes=np.concatenate([column.codes + first for column, first in zip(columns, starts, strict=False)]),
    )


def _joined(parts: Sequence[Any], width: int) -> Any:
    """*parts* one after the other; (0, width), or (0,) without a width, where there are none."""
    return np.concatenate(parts) if parts else np.zeros((0, width) if width else 0, np.int64)


@lru_cache(maxsize=200_000)
def _place(topic: str) -> tuple[int, int]:
    return topic_hash(topic), segment_code(topic)
