import numpy as np

from controller.model.resource_usage import mean_usage


def test_the_mean_adds_from_left_to_right() -> None:
    usage = np.full(1000, 0.1)
    total = 0.0
    for value in usage.tolist():
        total += value
    assert mean_usage(usage) == total / 1000
    assert mean_usage(usage) != float(usage.mean())  # so the order does matter
