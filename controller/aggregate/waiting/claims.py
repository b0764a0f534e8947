"""Claims: records' statements that a broker serves a bundle with some load.  They wait for their interval to close."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np

from controller.aggregate.columns.ordering import lexsorted, mixed
from controller.aggregate.columns.rows import (
    BUNDLE,
    CONSUMERS,
    PER_UNIT,
    PRODUCERS,
    REPORT_BUNDLE,
    STATS,
    TOPIC,
    TOPICS,
)
from controller.aggregate.waiting.waiting_rows import WaitingRows
from controller.model.load import Bools, Floats, Ints
from controller.model.topic_kinds import KindFlags


class PlacedRows(Protocol):
    """Rows with their places in the log, (n,) each."""

    @property
    def source(self) -> Ints:
        """METRICS or RESULTS."""

    @property
    def partition(self) -> Ints:
        """Partition of that topic."""

    @property
    def offset(self) -> Ints:
        """Offset in that partition."""


_DETAIL = ("detail_position", "detail_load")


@dataclass(frozen=True, kw_only=True, eq=False)
class Claims(WaitingRows):
    """One row for each bundle and record (TOPIC: for each topic and record), in any order.

    ``broker`` and ``sweep`` are positions in the shard's pool of names, ``bundle`` is a row of its known bundles.
    ``kind`` is one of rows' kinds.
    """

    WIDE: ClassVar[Mapping[str, int]] = {"stats": len(STATS), "topic": 2, "detail_load": 4}
    FLOATS: ClassVar[frozenset[str]] = frozenset({"stats", "detail_load"})
    FLAGS: ClassVar[frozenset[str]] = frozenset({"kinds"})

    kind: Ints
    source: Ints
    partition: Ints
    offset: Ints
    #: Bytes that had arrived in its partition up to and including its record: see limits.
    upto: Ints
    broker: Ints
    sweep: Ints
    chunk: Ints
    last_update: Ints
    bundle: Ints
    #: (n, 7): see rows.STATS.
    stats: Floats
    #: (n,) flags of topic_kinds.
    kinds: KindFlags
    #: (n, 2) hash of the topic's name and its ring position, TOPIC only.
    topic: Ints
    #: (n,) number of topics in the two columns below, which hold the topics of row 0, then of row 1, and so on.
    detail_size: Ints
    detail_position: Ints
    detail_load: Floats

    def take(self, rows: Ints | Bools) -> Self:
        """The given rows (numbers or a mask), in this order, with their topics."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        chosen: Ints = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        topics = ragged(self.detail_size, chosen)
        columns = {name: array[topics] if name in _DETAIL else array[chosen] for name, array in self.columns().items()}
        return type(self)(**columns)


def ragged(sizes: Ints, rows: Ints) -> Ints:
    """Positions of the elements of *rows* in a column that holds ``sizes[i]`` elements for each row i."""
    starts = np.cumsum(sizes) - sizes
    wanted = sizes[rows]
    ends = np.cumsum(wanted)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts[rows] - (ends - wanted), wanted) + np.arange(total)


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """The settled claims of one interval: one row for each bundle, ascending."""

    #: Row of the shard's known bundles.
    bundle: Ints
    #: Row of the roster: the broker that owns the bundle.
    owner: Ints
    #: (n, 4) msg/s and bytes/s.
    load: Floats
    #: Flags of topic_kinds; 0 where no topic is loaded.
    kinds: KindFlags
    topics: Ints
    producers: Ints
    consumers: Ints
    detail_size: Ints
    detail_position: Ints
    detail_load: Floats
    #: Claims of other brokers: rows of the columns above and of the roster.  Of a bundle's, the strongest is last.
    contested: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    claimant: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


def settle(claims: Claims, interval: int, rank: Ints, sweeps: Ints, reports: Ints) -> Loads:
    """Decide which of the *claims* due by *interval* count, and add them up.  O(n log n); their order does not matter.

    ``rank``: position in the pool -> row of the roster, or -1.  ``sweeps``: row of the roster -> position in the pool
    of the sweep that counts, or -1.  ``reports``: (roster, 3) source, partition and offset of the broker's last
    report, or -1.  Both have a row more, of -1, for brokers that are not listed.
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
    group = claims.bundle * len(sweeps) + owner
    reported &= ~np.isin(group, group[by_topic])

    rows = np.flatnonzero(swept | reported | by_topic)
    # By chunk before position: a bundle's topics have the same order wherever its chunks lie in the log.
    keys = [
        claims.offset,
        claims.partition,
        claims.source,
        claims.chunk,
        claims.topic[:, 0],
        claims.topic[:, 1],
        group,
    ]
    if len(rows) and group[rows].max() < 1 << 31:
        keys.append((group << 32) + claims.topic[:, 1])  # the last two in one number: a place on the ring has 32 bits
    rows = lexsorted(rows, keys)
    return _owned(_topics_as_detail(claims.take(rows)), owner[rows], group[rows])


def _first_of(mask: Bools, bundle: Ints, owner: Ints, chunk: Ints, position: Ints) -> Bools:
    """The first of the rows with the same chunk (its record was delivered twice)."""
    return edge_of(mask, (chunk, owner, bundle), position, first=True)


def _last_of(mask: Bools, bundle: Ints, owner: Ints, topic: Ints, position: Ints) -> Bools:
    """The last of the rows about the same topic."""
    return edge_of(mask, (topic[:, 0], topic[:, 1], owner, bundle), position, first=False)


def positions(rows: PlacedRows) -> Ints:
    """(n, 3) source, partition and offset of *rows*."""
    return np.stack([rows.source, rows.partition, rows.offset], axis=1)


def edge_of(mask: Bools, keys: tuple[Ints, ...], position: Ints, *, first: bool) -> Bools:
    """A mask with one row of each group of rows in *mask* with equal *keys*: the *first* by *position*, or the last."""
    rows = np.flatnonzero(mask)
    mix = mixed(keys)
    order = lexsorted(rows, [position[:, 2], position[:, 1], position[:, 0], *keys, mix])
    differs = mix[order[1:]] != mix[order[:-1]]
    alike = np.flatnonzero(~differs)
    for key in keys:
        differs[alike] |= key[order[alike + 1]] != key[order[alike]]
    edge = np.ones(len(order), np.bool_)
    if len(order):
        edge[1 if first else 0 : None if first else -1] = differs
    kept = np.zeros(len(mask), np.bool_)
    kept[order[edge]] = True
    return kept


def _topics_as_detail(claims: Claims) -> Claims:
    """*claims* with every TOPIC row as its own topic detail."""
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
    """Sum rows sorted by (bundle, owner); of two owners of a bundle the later claim wins, then the later name."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    if len(starts) == 0:
        no, nothing = np.empty(0, np.int64), np.empty((0, 4))
        return Loads(
            bundle=no, owner=no, load=nothing, kinds=np.empty(0, np.uint8), topics=no, producers=no, consumers=no,
            detail_size=no, detail_position=no, detail_load=nothing,
        )  # fmt: skip
    stats = np.add.reduceat(claims.stats, starts)
    kinds = np.bitwise_or.reduceat(claims.kinds, starts)
    latest = np.maximum.reduceat(claims.last_update, starts)
    bundle, claimant = claims.bundle[starts], owner[starts]
    order = np.lexsort((claimant, latest, bundle))
    winner = np.ones(len(order), np.bool_)
    winner[:-1] = bundle[order[1:]] != bundle[order[:-1]]
    won, lost = np.sort(order[winner]), order[~winner]

    size = np.add.reduceat(claims.detail_size, starts)
    chosen = ragged(size, won)
    counts = stats[won].astype(np.int64)
    return Loads(
        bundle=bundle[won],
        owner=claimant[won],
        load=stats[won, :4] / PER_UNIT,
        kinds=kinds[won],
        topics=counts[:, TOPICS],
        producers=counts[:, PRODUCERS],
        consumers=counts[:, CONSUMERS],
        detail_size=size[won],
        detail_position=claims.detail_position[chosen],
        detail_load=claims.detail_load[chosen],
        contested=np.searchsorted(bundle[won], bundle[lost]),
        claimant=claimant[lost],
    )
