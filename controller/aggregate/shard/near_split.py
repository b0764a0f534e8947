"""Topics one by one in a snapshot: of the bundles near a split alone, and no more than the driver is to hold."""

import zlib

import numpy as np

from controller.aggregate.shard.shard_state import DetailLimits, FoldOptions
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.waiting.claims import Loads, ragged
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Bools, Floats, Ints

_INTERVAL_BYTES = 8


def topics_for_splits(loads: Loads, average: Floats, options: FoldOptions, interval: int) -> dict[str, np.ndarray]:
    """The columns of topic detail in the snapshot of *interval*; *average*: (bundles, 4) long-term load."""
    chosen = np.flatnonzero(near_split(loads, average, options.detail))
    if options.most_topics is not None:
        chosen = chosen[_in_turn(loads.detail_size[chosen], options.most_topics, interval)]
    size = np.zeros_like(loads.detail_size)
    size[chosen] = loads.detail_size[chosen]
    kept = ragged(loads.detail_size, chosen)
    return {
        "detail_size": size,
        "detail_position": loads.detail_position[kept],
        "detail_load": loads.detail_load[kept],
    }


def near_split(counts: Loads | Snapshot, load: Floats, limits: DetailLimits) -> Bools:
    """(bundles,) whose *counts*, or *load* (bundles, 4), now or on average, are near a split."""
    near: Bools = (
        (counts.topics >= limits.topics)
        | (counts.producers + counts.consumers >= limits.sessions)
        | (load[:, RATE_IN] + load[:, RATE_OUT] >= limits.msg_rate)
        | (load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT] >= limits.throughput)
    )
    return near


def _in_turn(sizes: Ints, most: int, interval: int) -> Bools:
    """(bundles,) which of them come in *interval*: all where they have *most* topics together, or fewer.

    Else those from a place on that differs from interval to interval, so that each bundle comes again and again, also
    where some can never be split.  The first one comes whatever its size.  Ascending order of rows stays.
    """
    comes = np.ones(len(sizes), np.bool_)
    if int(sizes.sum()) <= most:
        return comes
    first = zlib.crc32(interval.to_bytes(_INTERVAL_BYTES, "big", signed=True)) % len(sizes)
    order = np.roll(np.arange(len(sizes)), -first)
    fits = np.cumsum(sizes[order]) <= most
    fits[0] = True
    comes[order] = fits
    return comes
