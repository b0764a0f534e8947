"""Orders bundles by load, as Pulsar does: in steps, so that small differences do not matter.

Stats are compared one after the other, in whole steps: throughput in, then throughput out, in steps of 100,000 bytes/s;
then message rate in steps of 100 msg/s; last stats also by connections in steps of 500 and by cache in steps of 100,000
bytes.  Two values in the same step are equal; two close values on either side of a step's edge are not.  Pulsar rounds
last stats to the nearest step but truncates averages, so the same numbers can be ordered differently.

Pulsar: NamespaceBundleStats.compareTo, TimeAverageMessageData.compareTo and BundleData.compareTo
"""

from typing import Final

import numpy as np

from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints

_THROUGHPUT_STEP: Final = 1e5
_RATE_STEP: Final = 100
_CONNECTIONS_STEP: Final = 500
_CACHE_STEP: Final = 100_000
#: The largest double that fits into a Java long.
_LONG_LIMIT: Final = np.nextafter(2.0**63, 0)


def average_keys(load: Floats) -> Ints:
    """(n, 3) keys of averages; *load* is (n, 4).  The first key that differs decides.

    No strategy here orders bundles so; one of your own may.  Pulsar: TimeAverageMessageData.compareTo.
    """
    return _as_longs(np.trunc(_in_steps(load)))


def stats_keys(load: Floats, connections: Ints, cache_bytes: Ints) -> Ints:
    """(n, 5) keys of last stats; *load* is (n, 4), the others are (n,).  The first key that differs decides.

    *connections*: topics, producers and consumers together.  Pulsar: NamespaceBundleStats.
    """
    steps = _in_steps(load)
    whole = np.floor(steps)
    # Halves are rounded up.  floor(x + 0.5) would also round up the largest number below a half.
    rounded = _as_longs(whole + (steps - whole >= 0.5))
    return np.column_stack([rounded, connection_keys(connections), cache_bytes // _CACHE_STEP])


def connection_keys(connections: Ints) -> Ints:
    """(n,) topics, producers and consumers together, in steps.  Pulsar: compareByTopicConnections."""
    return connections // _CONNECTIONS_STEP


def ascending(keys: Ints) -> Ints:
    """Rows in ascending order of their *keys* (n, k); equal ones keep their (name) order."""
    return np.lexsort(keys.T[::-1])


def _in_steps(load: Floats) -> Floats:
    rate = (load[:, RATE_IN] + load[:, RATE_OUT]) / _RATE_STEP
    throughput = load[:, [THROUGHPUT_IN, THROUGHPUT_OUT]] / _THROUGHPUT_STEP
    return np.column_stack([throughput, rate])


def _as_longs(whole: Floats) -> Ints:
    """As Java casts double to long: NaN is 0, values beyond the range of long become its ends."""
    return np.clip(np.nan_to_num(whole), -_LONG_LIMIT, _LONG_LIMIT).astype(np.int64)
