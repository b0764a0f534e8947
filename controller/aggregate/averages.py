"""Running averages over a capped number of samples, in columns.

Pulsar: org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData.update
"""

from typing import Final

import numpy as np

from controller.model.load import Floats, Ints

#: Samples in a bundle's averages.  Pulsar: ModularLoadManagerImpl.NUM_SHORT_SAMPLES and NUM_LONG_SAMPLES.
SHORT_TERM_SAMPLES: Final = 10
LONG_TERM_SAMPLES: Final = 1000


def advance(samples: Ints, average: Floats, x: Floats, max_samples: int) -> tuple[Ints, Floats]:
    """Move every average by one sample: ``((n - 1) * average + x) / n``, n counted up to *max_samples*.

    ``samples`` (n,), ``average`` and ``x`` (n, 4) in msg/s and bytes/s; returns both moved.  The first sample
    replaces whatever the average was, as in Pulsar.
    """
    count = np.minimum(samples + 1, max_samples)
    n = count[:, None].astype(np.float64)
    moved = (n - 1) * average
    # In place: writing three arrays of this size takes longer than the arithmetic.
    moved += x
    moved /= n
    return count, moved
