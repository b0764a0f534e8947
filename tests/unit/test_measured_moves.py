"""``scripts/measure moves``: where its topics lie, and how its figures are made."""

import pytest

from tests.measure.moves import stall


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.1], (100.0, 100.0, 100.0)),
        ([-0.02, -0.01, 0.3], (0.0, 300.0, 300.0)),
        ([i / 1000 for i in range(1, 201)], (100.0, 198.0, 200.0)),
    ],
)
def test_a_stall_is_a_value_that_was_measured_and_none_is_below_0(
    seconds: list[float], expected: tuple[float, float, float]
) -> None:
    found = stall(seconds)
    assert (found.p50, found.p99, found.max) == expected
