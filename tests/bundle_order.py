"""What the order of bundles says of two of them."""

import numpy as np

from controller.model.load import Ints


def compare(a: Ints, b: Ints) -> Ints:
    """(n,) -1, 0 or 1 as the keys (n, k) of *a* are below, equal to or above those of *b*."""
    signs = (a > b).astype(np.int64) - (a < b)
    decides = (signs != 0).argmax(axis=1)
    return np.take_along_axis(signs, decides[:, None], axis=1)[:, 0]
