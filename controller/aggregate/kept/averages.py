"""Running averages of bundles, over a capped number of samples, in columns.

Pulsar: org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData.update
"""

from typing import Final

import numpy as np

from controller.model.load import Floats, Ints

#: Samples in a bundle's averages.  Pulsar: ModularLoadManagerImpl.NUM_SHORT_SAMPLES and NUM_LONG_SAMPLES.
SHORT_TERM_SAMPLES: Final = 10
LONG_TERM_SAMPLES: Final = 1000


def advance(samples: Ints, average: Floats, x: Floats, max_samples: int) -> tuple[Ints, Floats]:
    """Add one sample to every average: ``((n - 1) * average + x) / n``, where n is at most *max_samples*.

    ``samples`` is (n,); ``average`` and ``x`` are (n, 4) in msg/s and bytes/s.  Returns the new samples and averages.
    The first sample replaces the initial average, as in Pulsar.
    """
    count = np.minimum(samples + 1, max_samples)
    n = count[:, None].astype(np.float64)
    moved = (n - 1) * average
    # In place: writing three arrays of this size takes longer than the arithmetic.
    moved += x
    moved /= n
    return count, moved
