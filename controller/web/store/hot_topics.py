"""The hot topics of an interval as they are stored: places on the hash ring and load, never names."""

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.blobs import names_from_bytes, names_to_bytes, pack, unpack
from controller.model.errors import StateError
from controller.model.summary import NO_PLACE, SummarizedBundles
from controller.web.store.values import HottestTopic

_VERSION: Final = 1
#: Level 1 takes 1 ms for 512 bundles; a higher one saves little of what is mostly numbers.
_LEVEL: Final = 1


def packed_hot_topics(bundles: SummarizedBundles) -> bytes | None:
    """The hot topics of those of *bundles* that have any; None: none has."""
    rows = np.flatnonzero(bundles.hot_place[:, 0] != NO_PLACE)
    if not len(rows):
        return None
    columns: dict[str, NDArray[Any]] = {
        "names": names_to_bytes([bundles.names[row] for row in rows.tolist()]),
        "place": bundles.hot_place[rows],
        "rate": bundles.hot_rate[rows],
        "throughput": bundles.hot_throughput[rows],
        "load": np.stack([bundles.load[rows, :2].sum(axis=1), bundles.load[rows, 2:].sum(axis=1)], axis=1),
    }
    return zlib.compress(pack(_VERSION, {}, columns), _LEVEL)


def hot_topics_in(packed: bytes, bundle: str) -> tuple[HottestTopic, ...]:
    """Those of *bundle*, the hottest first; none where *packed* has none of it, or is damaged."""
    try:
        arrays = unpack(zlib.decompress(packed), versions=(_VERSION,)).arrays
        names = names_from_bytes(arrays["names"])
        if bundle not in names:
            return ()
        columns = [arrays[name][names.index(bundle)].tolist() for name in ("place", "rate", "throughput", "load")]
    except (StateError, zlib.error, KeyError, IndexError):
        return ()
    return tuple(
        hottest_topic(place, rate, throughput, columns[3])
        for place, rate, throughput in zip(*columns[:3], strict=True)
        if place != NO_PLACE
    )


def hottest_topic(place: int, rate: float, throughput: float, load: tuple[float, float]) -> HottestTopic:
    """A topic of a bundle whose *load* is so many msg/s and bytes/s."""
    share = max(_share(rate, load[0]), _share(throughput, load[1]))
    return HottestTopic(place=place, rate=rate, throughput=throughput, share=share)


def _share(part: float, whole: float) -> float:
    # Both were rounded, and a record may say anything.
    return min(1.0, part / whole) if whole > 0 else 0.0
