"""Which of two bundles is the busier one, by stats too coarse to let small differences decide.

Stats are compared one after the other, in steps: throughput in, throughput out, by 100,000 bytes/s; message rate by
100 msg/s; and of last stats also connections by 500 and cache by 100,000 bytes.  Two values within one step count as
equal, so values a hair apart still differ where a step begins between them.  Pulsar rounds last stats to the nearest
step and cuts averages off, so the same numbers can compare otherwise as averages.

Pulsar: NamespaceBundleStats.compareTo, TimeAverageMessageData.compareTo and BundleData.compareTo
"""

from typing import Final

import numpy as np

from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints

_THROUGHPUT_STEP: Final = 1e5
_RATE_STEP: Final = 100
_CONNECTIONS_STEP: Final = 500
_CACHE_STEP: Final = 100_000
#: The largest double that is still a long.
_LONG_LIMIT: Final = np.nextafter(2.0**63, 0)


def average_keys(load: Floats) -> Ints:
    """(n, 3) keys of averages, (n, 4) *load*; the first key that differs decides.  Pulsar: TimeAverageMessageData."""
    return _as_longs(np.trunc(_in_steps(load)))


def stats_keys(load: Floats, topics: Ints, producers: Ints, consumers: Ints, cache_bytes: Ints) -> Ints:
    """(n, 5) keys of last stats, (n, 4) *load* and (n,) counts.  Pulsar: NamespaceBundleStats."""
    steps = _in_steps(load)
    whole = np.floor(steps)
    # Halves go up.  Adding 0.5 before the floor would take the number just below a half up as well.
    rounded = _as_longs(whole + (steps - whole >= 0.5))
    connections = connection_keys(topics, producers, consumers)
    return np.column_stack([rounded, connections, cache_bytes // _CACHE_STEP])


def connection_keys(topics: Ints, producers: Ints, consumers: Ints) -> Ints:
    """(n,) topics, producers and consumers in steps.  Pulsar: NamespaceBundleStats.compareByTopicConnections."""
    return (topics + producers + consumers) // _CONNECTIONS_STEP


def rate_key(keys: Ints) -> Ints:
    """(n,) the key of the message rate among those of averages or last stats.  Pulsar: compareByMsgRate."""
    return keys[:, 2]


def compare(a: Ints, b: Ints) -> Ints:
    """(n,) -1, 0 or 1 as the keys (n, k) of *a* are below, equal to or above those of *b*."""
    signs = (a > b).astype(np.int64) - (a < b)
    decides = (signs != 0).argmax(axis=1)
    return np.take_along_axis(signs, decides[:, None], axis=1)[:, 0]


def ascending(keys: Ints) -> Ints:
    """Rows in ascending order of their *keys* (n, k); equal ones keep their (name) order."""
    return np.lexsort(keys.T[::-1])


def _in_steps(load: Floats) -> Floats:
    rate = (load[:, RATE_IN] + load[:, RATE_OUT]) / _RATE_STEP
    throughput = load[:, [THROUGHPUT_IN, THROUGHPUT_OUT]] / _THROUGHPUT_STEP
    return np.column_stack([throughput, rate])


def _as_longs(whole: Floats) -> Ints:
    """No further than long reaches, and NaN as 0, as Java casts a double."""
    return np.clip(np.nan_to_num(whole), -_LONG_LIMIT, _LONG_LIMIT).astype(np.int64)
