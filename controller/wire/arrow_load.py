"""The load of an Arrow sweep's bundles, from its columns: no object a topic.

The same numbers as those of the sweep's JSON form, bit for bit: a bundle's topics are added in their order.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controller.aggregate.columns.rows import RATES as RATE_COLUMNS
from controller.aggregate.columns.rows import per_thousand
from controller.aggregate.shard.fold import DetailLimits
from controller.model.load import Bools, Floats, Ints
from controller.model.names import topic_hash
from controller.model.topic_kinds import (
    NON_PERSISTENT,
    NON_PERSISTENT_DOMAIN,
    PERSISTENT,
    SEGMENT_DOMAIN,
    SEGMENTS,
    KindFlags,
)
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.sweep import ArrowSweep

#: Whole numbers end here, as those of 64 bits do in the JVM.
LARGEST = 2.0**63


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrowLoad:
    """One row a bundle of the sweep's dictionary, in its order."""

    #: (bundles, 7): see controller.aggregate.columns.rows.STATS.
    stats: Floats
    #: (bundles,) flags of controller.model.topic_kinds; 0 without topics.
    kinds: KindFlags
    #: (bundles,) topics that are kept one by one; the columns below lie one bundle's after another.
    detail_size: Ints
    #: (topics,) places on the hash ring.
    detail_position: Ints
    #: (topics, 4) msg/s and bytes/s.
    detail_load: Floats


def arrow_load(sweep: ArrowSweep, limits: DetailLimits) -> ArrowLoad:
    """The load of *sweep*, with the topics of bundles at one of *limits*.

    Those of a bundle that this chunk has only a part of are kept as well: nobody here knows the rest.
    """
    batch, bundles = sweep.batch, len(sweep.bundles)
    bundle: Any = batch.column("bundle")
    codes = bundle.indices.to_numpy()
    columns = [batch.column(name).to_numpy() for name in (*RATES, *COUNTS)]
    # bincount adds one after the other in the order of rows, as reduceat and sum do not.
    sums = np.array([np.bincount(codes, column, bundles) for column in columns]).T
    topics = np.bincount(codes, minlength=bundles)
    near = limits.near_split(topics, sums[:, 4] + sums[:, 5], sums[:, :4]) | _cut(sweep, bundles)
    rows = np.flatnonzero(near[codes])
    rows = rows[np.argsort(codes[rows], kind="stable")]
    names = batch.column("topic").take(pa.array(rows, pa.int64())).to_pylist()
    return ArrowLoad(
        stats=in_stats(sums[:, : len(RATE_COLUMNS)], np.column_stack([sums[:, len(RATE_COLUMNS) :], topics])),
        kinds=_kinds(batch, codes, topics),
        detail_size=np.where(near, topics, 0),
        detail_position=np.array([topic_hash(str(name)) for name in names], np.int64),
        detail_load=np.stack([column[rows] for column in columns[: len(RATE_COLUMNS)]], axis=1),
    )


def in_stats(rates: Floats, counts: Floats) -> Floats:
    """(..., 4) *rates* and (..., 3) *counts* as STATS: whole, without a negative zero, cut off where 64 bits end."""
    stats: Floats = np.minimum(np.concatenate([per_thousand(rates), counts], axis=-1), LARGEST) + 0.0
    return stats


def _kinds(batch: pa.RecordBatch, codes: Ints, topics: Ints) -> KindFlags:
    """(bundles,) the kinds of their topics; *codes* (topics,) say whose they are, *topics* (bundles,) how many."""

    def found(domain: str) -> Ints:
        starts: Any = pc.starts_with(batch.column("topic"), domain)
        if not starts.true_count:
            return np.zeros(len(topics), np.int64)
        return np.bincount(codes[starts.to_numpy(zero_copy_only=False)], minlength=len(topics))

    non_persistent, segments = found(NON_PERSISTENT_DOMAIN), found(SEGMENT_DOMAIN)
    flags = np.where(non_persistent > 0, NON_PERSISTENT, 0) | np.where(non_persistent < topics, PERSISTENT, 0)
    return (flags | np.where(segments > 0, SEGMENTS, 0)).astype(np.uint8)


def _cut(sweep: ArrowSweep, bundles: int) -> Bools:
    """The bundles that other chunks may have topics of: see ArrowSweep."""
    cut = np.zeros(bundles, np.bool_)
    cut[:1] = sweep.chunk > 0
    cut[bundles - 1 :] |= sweep.chunk < sweep.chunks - 1
    return cut
