"""Moves one after the other: how full brokers are in between."""

import pytest

from controller.planning.certificate_text import describe_certificate
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, PRICES, REMOVAL, Certificate, PlannedMove

THERE, BACK = PlannedMove(0, 0, 1), PlannedMove(1, 1, 0)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (MEAN, "mean: that is the mean usage, by bandwidth in"),
        (FIXED, "fixed: that is load of one broker that cannot move, by bandwidth in"),
        (PIGEONHOLE, "pigeonhole: so many large bundles fit nowhere below it, by bandwidth in"),
        (REMOVAL, "removal: more bundles than that have to leave brokers above it, by bandwidth in"),
        (PRICES, "prices: proved by prices of the linear program"),
    ],
)
def test_a_certificate_says_what_is_reached_and_why_nothing_is_below_its_bound(kind: str, said: str) -> None:
    one = Certificate(max_moves=5, before=0.91234, reached=0.61234, bound=0.51234, kind=kind, resource=1)
    assert describe_certificate(one, ("cpu", "bandwidth in")) == (
        f"0.912 before, 0.612 after; no plan of at most 5 moves ends below 0.512 ({said}); gap 19.5%"
    )


@pytest.mark.parametrize(("reached", "bound", "gap"), [(0.6, 0.5, 0.2), (0.5, 0.5, 0), (0.4, 0.5, 0), (0.4, 0, 0)])
def test_the_gap_is_the_share_of_the_bound_by_which_a_plan_ends_above_it(
    reached: float, bound: float, gap: float
) -> None:
    one = Certificate(max_moves=1, before=0.9, reached=reached, bound=bound, kind=MEAN)
    assert one.gap == pytest.approx(gap)
