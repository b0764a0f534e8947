"""The load of a sweep's bundles in columns, whichever form the sweep has.

A bundle's topics are added in their order, so every form of a sweep gives the same numbers, bit for bit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic.alias_generators import to_snake

from controller.aggregate.columns.rows import CONSUMERS, PRODUCERS, TOPICS, per_thousand
from controller.aggregate.columns.rows import RATES as RATE_COLUMNS
from controller.aggregate.shard.fold import DetailLimits
from controller.model.load import Bools, Floats, Ints, TopicDetail
from controller.model.names import topic_hash
from controller.model.segment_code import segment_code
from controller.model.topic_kinds import (
    NON_PERSISTENT,
    NON_PERSISTENT_DOMAIN,
    PERSISTENT,
    SEGMENT_DOMAIN,
    SEGMENTS,
    UNLISTED,
    KindFlags,
    kinds_of,
)
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.sweep import ArrowSweep, BrokerSweep, BundleTotals

#: Whole numbers end here, as those of 64 bits do in the JVM.
_LARGEST: Final = 2.0**63
#: The fields of a bundle, and of its totals.
_RATE_FIELDS, _COUNT_FIELDS = tuple(map(to_snake, RATES)), tuple(map(to_snake, COUNTS))


@dataclass(frozen=True, kw_only=True, eq=False)
class SweepLoad:
    """One row for each bundle of a sweep, in its order."""

    #: (bundles, 7): see controller.aggregate.columns.rows.STATS.
    stats: Floats
    #: (bundles,) flags of controller.model.topic_kinds; 0 without topics.
    kinds: KindFlags
    #: Topics that are kept one by one.
    detail: TopicDetail


def sweep_load(sweep: BrokerSweep | ArrowSweep, limits: DetailLimits) -> SweepLoad:
    """The load of *sweep*, with the topics of bundles at one of *limits*, and the segments of all."""
    return _arrow_load(sweep, limits) if isinstance(sweep, ArrowSweep) else _json_load(sweep, limits)


def totals_of(totals: BundleTotals) -> tuple[float, ...]:
    """The numbers of STATS in *totals*, rates as they are."""
    return tuple(getattr(totals, name) for name in (*_RATE_FIELDS, *_COUNT_FIELDS, "topics"))


def kinds_of_totals(totals: BundleTotals) -> int:
    """The kinds of topics of a bundle whose topics are not listed."""
    return UNLISTED if totals.topics > 0 else 0


def sums(bundle: Ints, topics: Ints, columns: Iterable[Floats | Ints]) -> Floats:
    """(bundles, 7) the numbers of STATS, rates as they are.

    *bundle*: (topics,) whose each topic is.  *topics*: (bundles,) how many each has.  *columns*: rates and counts.
    """
    # bincount adds one after the other in the order of rows, as reduceat and sum do not.
    return np.column_stack([*(np.bincount(bundle, column, len(topics)) for column in columns), topics])


def near_split(numbers: Floats, limits: DetailLimits) -> Bools:
    """(bundles,) whether each reaches one of *limits*; *numbers* (bundles, 7) as in :func:`sums`."""
    return limits.near_split(numbers[:, TOPICS], numbers[:, PRODUCERS] + numbers[:, CONSUMERS], numbers)


def in_stats(numbers: Floats) -> Floats:
    """*numbers* (..., 7), as in :func:`sums`, as STATS: whole, without a negative zero, cut off where 64 bits end."""
    rates, counts = numbers[..., : len(RATE_COLUMNS)], numbers[..., len(RATE_COLUMNS) :]
    stats: Floats = np.minimum(np.concatenate([per_thousand(rates), counts], axis=-1), _LARGEST) + 0.0
    return stats


def _json_load(sweep: BrokerSweep, limits: DetailLimits) -> SweepLoad:
    """Near a split by their totals; a bundle that lists no topics counts with them, too."""
    bundles = sweep.bundle_stats
    topics = np.array([len(each.topic) for each in bundles], np.int64)
    bundle = np.repeat(np.arange(len(bundles)), topics)
    columns = [_column(bundles, name) for name in (*_RATE_FIELDS, *_COUNT_FIELDS)]
    totals = np.array([totals_of(each.totals) for each in bundles], np.float64).reshape(-1, TOPICS + 1)
    near = near_split(totals, limits)
    kinds = [kinds_of(each.topic) if each.topic else kinds_of_totals(each.totals) for each in bundles]
    flags = np.array(kinds, np.uint8)
    names = [topic for each in bundles for topic in each.topic]
    rows = detailed_topics(near, flags, bundle, lambda some: [names[row] for row in some.tolist()])
    return SweepLoad(
        stats=in_stats(np.where((topics > 0)[:, None], sums(bundle, topics, columns), totals)),
        kinds=flags,
        detail=_detail(bundle, len(bundles), (names[row] for row in rows.tolist()), columns, rows),
    )


def detailed_topics(near: Bools, kinds: KindFlags, bundle: Ints, names_of: Callable[[Ints], Sequence[str]]) -> Ints:
    """The topics that come one by one: of bundles that are *near* a split (bundles,) all, of others the segments.

    *kinds*: (bundles,) flags of topic_kinds.  *bundle*: (topics,) whose each topic is.  *names_of* some of them.
    """
    detailed = near[bundle]
    maybe = np.flatnonzero(~detailed & (kinds & SEGMENTS != 0)[bundle])
    detailed[maybe] = [name.startswith(SEGMENT_DOMAIN) for name in names_of(maybe)]
    return np.flatnonzero(detailed)


def _column(bundles: Sequence[Any], name: str) -> Floats:
    return np.array([*chain.from_iterable(getattr(each, name) for each in bundles)], np.float64)


def _arrow_load(sweep: ArrowSweep, limits: DetailLimits) -> SweepLoad:
    """Topics of a bundle that this chunk has only a part of are kept as well: nobody here knows the rest."""
    batch, bundles = sweep.batch, len(sweep.bundles)
    names: Any = batch.column("bundle")
    bundle = names.indices.to_numpy()
    columns = [batch.column(name).to_numpy() for name in (*RATES, *COUNTS)]
    topics = np.bincount(bundle, minlength=bundles)
    numbers = sums(bundle, topics, columns)
    near = near_split(numbers, limits) | _cut(sweep, bundles)
    is_segment = _of_domain(batch, SEGMENT_DOMAIN)
    rows = np.flatnonzero(near[bundle] | is_segment)
    rows = rows[np.argsort(bundle[rows], kind="stable")]
    names_of_kept = batch.column("topic").take(pa.array(rows, pa.int64())).to_pylist()
    return SweepLoad(
        stats=in_stats(numbers),
        kinds=_kinds(batch, bundle, topics, is_segment),
        detail=_detail(bundle, bundles, map(str, names_of_kept), columns, rows),
    )


def _detail(bundle: Ints, bundles: int, names: Iterable[str], columns: Sequence[Floats], rows: Ints) -> TopicDetail:
    """The topics at *rows* of *columns*, with their *names*; *bundle*: (topics,) whose each is, of so many."""
    sizes = np.bincount(bundle[rows], minlength=bundles)
    place = np.array([(topic_hash(name), segment_code(name)) for name in names], np.int64).reshape(-1, 2)
    load = np.stack([column[rows] for column in columns[: len(RATES)]], axis=1)
    return TopicDetail.of(sizes, place[:, 0], load, place[:, 1])


def _kinds(batch: pa.RecordBatch, bundle: Ints, topics: Ints, is_segment: Bools) -> KindFlags:
    """(bundles,) the kinds of their topics; *bundle* and *topics* as in :func:`sums`, *is_segment*: (topics,)."""

    def count_of(domain: Bools) -> Ints:
        return np.bincount(bundle[domain], minlength=len(topics))

    non_persistent, segments = count_of(_of_domain(batch, NON_PERSISTENT_DOMAIN)), count_of(is_segment)
    flags = np.where(non_persistent > 0, NON_PERSISTENT, 0) | np.where(non_persistent < topics, PERSISTENT, 0)
    return (flags | np.where(segments > 0, SEGMENTS, 0)).astype(np.uint8)


def _of_domain(batch: pa.RecordBatch, domain: str) -> Bools:
    """(topics,) whether the name of each begins with *domain*."""
    starts: Any = pc.starts_with(batch.column("topic"), domain)
    if not starts.true_count:
        return np.zeros(len(starts), np.bool_)
    mask: Bools = starts.to_numpy(zero_copy_only=False)
    return mask


def _cut(sweep: ArrowSweep, bundles: int) -> Bools:
    """The bundles that other chunks may have topics of: see ArrowSweep."""
    cut = np.zeros(bundles, np.bool_)
    cut[:1] = sweep.chunk > 0
    cut[bundles - 1 :] |= sweep.chunk < sweep.chunks - 1
    return cut
