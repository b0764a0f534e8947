"""Claims: the load that records put down to bundles, waiting in columns for their interval to close."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.rows import (
    BUNDLE,
    CONSUMERS,
    PER_UNIT,
    PRODUCERS,
    REPORT_BUNDLE,
    STATS,
    TOPIC,
    TOPICS,
)
from controller.model.load import Bools, Floats, Ints


class Located(Protocol):
    """Rows that say where in the log they lie, (n,) each."""

    @property
    def source(self) -> Ints:
        """METRICS or RESULTS."""

    @property
    def partition(self) -> Ints:
        """Of that topic."""

    @property
    def offset(self) -> Ints:
        """Within it."""


_DETAIL = ("detail_position", "detail_load")


@dataclass(frozen=True, kw_only=True, eq=False)
class Claims:
    """One row a bundle and record (a topic and record, for TOPIC), in any order.

    ``broker`` and ``sweep`` are codes of the shard's string pool, ``bundle`` a row of its known bundles.
    """

    due: Ints
    kind: Ints
    source: Ints
    partition: Ints
    offset: Ints
    #: Bytes that had come in its partition with it: see limits.
    upto: Ints
    broker: Ints
    sweep: Ints
    chunk: Ints
    last_update: Ints
    bundle: Ints
    #: (n, 7): see rows.STATS.
    stats: Floats
    #: (n, 2) hash of the topic's name and its ring position, TOPIC only.
    topic: Ints
    detail_size: Ints
    #: Ragged, one row's topics after another's.
    detail_position: Ints
    detail_load: Floats

    def __len__(self) -> int:
        return len(self.due)

    @classmethod
    def empty(cls) -> Self:
        """No claims."""
        widths = {"stats": len(STATS), "topic": 2, "detail_load": 4}
        columns: dict[str, Any] = {}
        for f in fields(cls):
            kind = np.float64 if f.name in ("stats", "detail_load") else np.int64
            columns[f.name] = np.empty((0, widths[f.name]) if f.name in widths else 0, kind)
        return cls(**columns)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Name -> array, for packing."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def take(self, rows: Ints | Bools) -> Self:
        """These rows, in this order, with their detail."""
        chosen: Ints = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        topics = ragged(self.detail_size, chosen)
        columns = {name: array[topics] if name in _DETAIL else array[chosen] for name, array in self.columns().items()}
        return type(self)(**columns)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """All rows of *parts*."""
        return cls(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)})


def ragged(sizes: Ints, rows: Ints) -> Ints:
    """Positions of the ragged elements that belong to *rows*, in their order."""
    starts = np.cumsum(sizes) - sizes
    wanted = sizes[rows]
    ends = np.cumsum(wanted)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts[rows] - (ends - wanted), wanted) + np.arange(total)


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """What the claims of one interval come to: one row a bundle, ascending."""

    bundle: Ints
    #: Row of the roster: the broker that serves the bundle.
    owner: Ints
    #: (n, 4) msg/s and bytes/s.
    load: Floats
    topics: Ints
    producers: Ints
    consumers: Ints
    detail_size: Ints
    detail_position: Ints
    detail_load: Floats


def settle(claims: Claims, interval: int, rank: Ints, sweeps: Ints, reports: Ints) -> Loads:
    """Settle the *claims* due by *interval*, in O(n log n), the same in whatever order they came.

    ``rank``: pool code -> row of the roster, or -1.  ``sweeps``: roster row -> pool code of the sweep that counts, or
    -1.  ``reports``: (roster, 3) source, partition and offset of the broker's last report, or -1.
    """
    owner = rank[claims.broker]
    listed = owner >= 0
    sweep = np.where(listed, sweeps[owner], -1)
    position = positions(claims)
    swept = (claims.kind == BUNDLE) & listed & (claims.due == interval) & (claims.sweep == sweep)
    loose = listed & (sweep < 0)
    reported = (claims.kind == REPORT_BUNDLE) & loose & (position == reports[owner]).all(axis=1)
    by_topic = (claims.kind == TOPIC) & loose

    swept &= _first_of(swept, claims.bundle, owner, claims.chunk, position)
    by_topic &= _last_of(by_topic, claims.bundle, owner, claims.topic, position)
    group = claims.bundle * (len(sweeps) + 1) + owner
    reported &= ~np.isin(group, group[by_topic])

    rows = np.flatnonzero(swept | reported | by_topic)
    # The chunk before the position: detail of a bundle is listed in the same order wherever its chunks lie.
    keys = (
        claims.offset,
        claims.partition,
        claims.source,
        claims.chunk,
        claims.topic[:, 0],
        claims.topic[:, 1],
    )
    rows = rows[np.lexsort(tuple(key[rows] for key in (*keys, group)))]
    return _owned(_topics_as_detail(claims.take(rows)), owner[rows], group[rows])


def _first_of(mask: Bools, bundle: Ints, owner: Ints, chunk: Ints, position: Ints) -> Bools:
    """Of rows that repeat a chunk (a record delivered twice), only the first."""
    return edge_of(mask, (chunk, owner, bundle), position, first=True)


def _last_of(mask: Bools, bundle: Ints, owner: Ints, topic: Ints, position: Ints) -> Bools:
    """Of rows about the same topic, only the last."""
    return edge_of(mask, (topic[:, 0], topic[:, 1], owner, bundle), position, first=False)


def positions(rows: Located) -> Ints:
    """(n, 3) source, partition and offset of *rows*."""
    return np.stack([rows.source, rows.partition, rows.offset], axis=1)


def edge_of(mask: Bools, keys: tuple[Ints, ...], position: Ints, *, first: bool) -> Bools:
    """Of the rows in *mask* that have the same *keys*, the *first* by *position*, or the last."""
    rows = np.flatnonzero(mask)
    order = rows[np.lexsort((position[rows, 2], position[rows, 1], position[rows, 0], *(k[rows] for k in keys)))]
    differs = np.zeros(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        differs |= key[order[1:]] != key[order[:-1]]
    edge = np.ones(len(order), np.bool_)
    if len(order):
        edge[1 if first else 0 : None if first else -1] = differs
    kept = np.zeros(len(mask), np.bool_)
    kept[order[edge]] = True
    return kept


def _topics_as_detail(claims: Claims) -> Claims:
    """TOPIC rows are their own detail."""
    if not (claims.kind == TOPIC).any():
        return claims
    single = claims.kind == TOPIC
    size = np.where(single, 1, claims.detail_size)
    ends = np.cumsum(size)
    position, load = np.empty(int(ends[-1]), np.int64), np.empty((int(ends[-1]), 4))
    own = ends[single] - 1
    position[own], load[own] = claims.topic[single, 1], claims.stats[single, :4] / PER_UNIT
    others = np.ones(len(position), np.bool_)
    others[own] = False
    position[others], load[others] = claims.detail_position, claims.detail_load
    columns = claims.columns() | {"detail_size": size, "detail_position": position, "detail_load": load}
    return Claims(**columns)


def _owned(claims: Claims, owner: Ints, group: Ints) -> Loads:
    """Sum rows sorted by (bundle, owner); a bundle claimed twice goes to the later claim, then the later name."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    if len(starts) == 0:
        no, nothing = np.empty(0, np.int64), np.empty((0, 4))
        return Loads(
            bundle=no, owner=no, load=nothing, topics=no, producers=no, consumers=no,
            detail_size=no, detail_position=no, detail_load=nothing,
        )  # fmt: skip
    stats = np.add.reduceat(claims.stats, starts)
    latest = np.maximum.reduceat(claims.last_update, starts)
    bundle, claimant = claims.bundle[starts], owner[starts]
    order = np.lexsort((claimant, latest, bundle))
    winner = np.ones(len(order), np.bool_)
    winner[:-1] = bundle[order[1:]] != bundle[order[:-1]]
    won = np.sort(order[winner])

    size = np.add.reduceat(claims.detail_size, starts)
    chosen = ragged(size, won)
    counts = stats[won].astype(np.int64)
    return Loads(
        bundle=bundle[won],
        owner=claimant[won],
        load=stats[won, :4] / PER_UNIT,
        topics=counts[:, TOPICS],
        producers=counts[:, PRODUCERS],
        consumers=counts[:, CONSUMERS],
        detail_size=size[won],
        detail_position=claims.detail_position[chosen],
        detail_load=claims.detail_load[chosen],
    )
