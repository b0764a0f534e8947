"""Settles the claims of an interval: of several rows about the same bundle, one counts as its load."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from controller.aggregate.columns.rows import (
    BUNDLE,
    CONSUMERS,
    PER_UNIT,
    PRODUCERS,
    REPORT_BUNDLE,
    TOPIC,
    TOPICS,
)
from controller.aggregate.waiting.waiting_rows import WaitingClaims
from controller.model.load import Bools, Floats, Ints, TopicDetail
from controller.model.topic_kinds import KindFlags

#: An odd number without a pattern: the golden ratio in 64 bits.
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


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
    detail: TopicDetail
    #: Claims of other brokers: rows of the columns above and of the roster.  Of a bundle's, the strongest is last.
    contested: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    claimant: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


def settle(claims: WaitingClaims, interval: int, rank: Ints, sweeps: Ints, reports: Ints) -> Loads:
    """Decide which of the *claims* due by *interval* count, and add them up.  O(n log n); their order does not matter.

    ``rank``: position in the pool -> row of the roster, or -1.  ``sweeps``: row of the roster -> position in the pool
    of the sweep that counts, or -1.  ``reports``: (roster, 3) source, partition and offset of the broker's last
    report, or -1.  Both have a row more, of -1, for brokers that are not listed.
    """
    owner = rank[claims.broker]
    listed = owner >= 0
    sweep = np.where(listed, sweeps[owner], -1)
    place = claims.place
    swept = (claims.kind == BUNDLE) & listed & (claims.due == interval) & (claims.sweep == sweep)
    loose = listed & (sweep < 0)
    reported = (claims.kind == REPORT_BUNDLE) & loose & (place == reports[owner]).all(axis=1)
    by_topic = (claims.kind == TOPIC) & loose

    swept &= _first_of(swept, claims.bundle, owner, claims.chunk, place)
    by_topic &= _last_of(by_topic, claims.bundle, owner, claims.topic, place)
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
    return _owned(claims, rows, owner[rows], group[rows])


def _first_of(mask: Bools, bundle: Ints, owner: Ints, chunk: Ints, place: Ints) -> Bools:
    """The first of the rows with the same chunk (its record was delivered twice)."""
    return edge_of(mask, (chunk, owner, bundle), place, first=True)


def _last_of(mask: Bools, bundle: Ints, owner: Ints, topic: Ints, place: Ints) -> Bools:
    """The last of the rows about the same topic."""
    return edge_of(mask, (topic[:, 0], topic[:, 1], owner, bundle), place, first=False)


def _owned(claims: WaitingClaims, rows: Ints, owner: Ints, group: Ints) -> Loads:
    """Sum *rows* of *claims*, sorted by (bundle, owner), both in *group*.

    Of two owners of a bundle the later claim wins, then the later name.
    """
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    stats = np.add.reduceat(claims.stats[rows], starts)
    kinds = np.bitwise_or.reduceat(claims.kinds[rows], starts)
    latest = np.maximum.reduceat(claims.last_update[rows], starts)
    bundle, claimant = claims.bundle[rows[starts]], owner[starts]
    order = np.lexsort((claimant, latest, bundle))
    winner = np.ones(len(order), np.bool_)
    winner[:-1] = bundle[order[1:]] != bundle[order[:-1]]
    won, lost = np.sort(order[winner]), order[~winner]

    detail = _detail(claims, rows)
    of_group = TopicDetail.of(np.add.reduceat(detail.sizes, starts), detail.position, detail.load, detail.segment)
    counts = stats[won].astype(np.int64)
    return Loads(
        bundle=bundle[won],
        owner=claimant[won],
        load=stats[won, :4] / PER_UNIT,
        kinds=kinds[won],
        topics=counts[:, TOPICS],
        producers=counts[:, PRODUCERS],
        consumers=counts[:, CONSUMERS],
        detail=of_group.take(won),
        contested=np.searchsorted(bundle[won], bundle[lost]),
        claimant=claimant[lost],
    )


def _detail(claims: WaitingClaims, rows: Ints) -> TopicDetail:
    """The topics of *rows* of *claims*; a TOPIC row is its own topic."""
    columns = claims.detail_size, claims.detail_position, claims.detail_load, claims.detail_segment
    detail = TopicDetail.of(*columns).take(rows)
    single = claims.kind[rows] == TOPIC
    if not single.any():
        return detail
    sizes = np.where(single, 1, detail.sizes)
    ends = np.cumsum(sizes)
    own = ends[single] - 1
    place, load = np.empty((int(ends[-1]), 2), np.int64), np.empty((int(ends[-1]), 4))
    place[own], load[own] = claims.topic[rows[single], 1:], claims.stats[rows[single], :4] / PER_UNIT
    others = np.ones(len(place), np.bool_)
    others[own] = False
    place[others], load[others] = np.stack([detail.position, detail.segment], axis=1), detail.load
    return TopicDetail.of(sizes, place[:, 0], load, place[:, 1])


def edge_of(mask: Bools, keys: tuple[Ints, ...], place: Ints, *, first: bool) -> Bools:
    """A mask with one row of each group of rows in *mask* with equal *keys*: the *first* by *place*, or the last."""
    rows = np.flatnonzero(mask)
    mix = mixed(keys)
    order = lexsorted(rows, [place[:, 2], place[:, 1], place[:, 0], *keys, mix])
    differs = mix[order[1:]] != mix[order[:-1]]
    alike = np.flatnonzero(~differs)
    for key in keys:
        differs[alike] |= key[order[alike + 1]] != key[order[alike]]
    edge = np.ones(len(order), np.bool_)
    if len(order):
        edge[1 if first else 0 : None if first else -1] = differs
    chosen = np.zeros(len(mask), np.bool_)
    chosen[order[edge]] = True
    return chosen


def lexsorted(rows: Ints, keys: Sequence[Ints]) -> Ints:
    """*rows*, ascending numbers, in the order that ``np.lexsort`` gives them by *keys*.

    All are sorted by the last key alone, and the others only order its ties: O(n log n) with one comparison for most.
    """
    first = keys[-1][rows]
    order = np.argsort(first)
    ordered = rows[order]
    tied = _tied(first[order])
    if tied.any():
        among = np.sort(ordered[tied])  # in their own order, which breaks the last ties
        ordered[tied] = among[np.lexsort(tuple(key[among] for key in keys))]
    return ordered


def mixed(keys: Sequence[Ints]) -> Ints:
    """(n,) one number for each row: the same for rows whose *keys* are the same, and mostly another one for others."""
    mix = np.zeros(len(keys[0]), np.uint64)
    for key in keys:
        mix = (mix ^ (mix >> np.uint64(32)) ^ key.astype(np.uint64)) * _FACTOR
    return mix.astype(np.int64)


def _tied(ascending: Ints) -> Bools:
    """The elements that are equal to the one before or behind them."""
    equal = ascending[1:] == ascending[:-1]
    tied = np.zeros(len(ascending), np.bool_)
    tied[1:] |= equal
    tied[:-1] |= equal
    return tied
