"""``scripts/measure frontier``: moves against evenness, with bounds."""

import pytest

from tests.measure.frontier import frontier

pytestmark = pytest.mark.slow


def test_with_more_moves_a_plan_is_no_worse_and_its_bound_no_higher() -> None:
    points = list(frontier(3, 14, 4, seed=2, uneven=False, exact=False))
    assert [point.max_moves for point in points] == list(range(5))
    reached, bounds = [point.reached for point in points], [point.bound for point in points]
    assert bounds == sorted(bounds, reverse=True)
    assert reached[-1] < reached[0]
    assert all(point.bound <= point.reached and point.moves <= point.max_moves for point in points)
    assert points[0].gap == pytest.approx(0.0, abs=1e-6)


def test_the_best_plan_lies_between_bound_and_reached() -> None:
    pytest.importorskip("highspy")
    for point in frontier(3, 12, 3, seed=2, uneven=True, exact=True):
        assert point.best_found is not None
        assert point.bound <= point.best_found * (1 + 1e-6)
        assert point.best_found <= point.reached * (1 + 1e-6)
