"""Bundles that Pulsar cannot tell apart, since it knows them by their data.

Pulsar: BundleData.equals
"""

from collections.abc import Sequence

import numpy as np

from controller.model.load import BundleTable


def data_keys(bundles: BundleTable, rows: Sequence[int]) -> list[bytes]:
    """A key for each of *rows*: the same for bundles of equal averages, numbers of samples and topics."""
    # How many samples there may be at most is the same for all.
    counts = (bundles.short_samples, bundles.long_samples, bundles.topics)
    data = np.column_stack([bundles.short_term[rows], bundles.long_term[rows], *(count[rows] for count in counts)])
    keys: list[bytes] = data.view(f"V{data.shape[1] * data.itemsize}").ravel().tolist()
    return keys
