"""What PeakShedder makes of a promise, in numbers worked out by hand."""

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from controller.planning.problem import PlannedMove
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory, Proven
from controller.strategies.shedding.peak_shedder.promises import BrokersNow, promised, verified
from controller.strategies.view_builder import Broker, Bundle, cluster_view

X: Final = Bundle(mbytes_in=1.0)
AT: Final = 7 * 60_000
PROMISE: Final = MovePromise(source="a", destination="b", rounds=1, promised=0.25, mean=0.5)


def now(owner: str, mean: float = 0.5, on_its_way: bool = False) -> BrokersNow:
    """Brokers at 0.625, 0.5 and 0.375, of which *owner* has x; "": none has."""
    brokers = [Broker(name, bundles={"x": X} if name == owner else {}) for name in "abc"]
    view = cluster_view(
        *brokers, unowned={} if owner else {"x": X}, on_their_way={"x": "b"} if on_its_way else {}, as_of_ms=AT
    )
    return BrokersNow(view=view, full=np.array([0.625, 0.5, 0.375]), mean=mean)


def looked_at(promise: MovePromise, at: BrokersNow, tolerated: float = 0.1, error: float = 0.0) -> PeakHistory:
    return verified(PeakHistory(promises={"x": promise}, proven=Proven(error=error)), at, tolerated)


def test_a_promise_is_looked_at_in_the_second_round() -> None:
    first = looked_at(replace(PROMISE, rounds=0), now("b"))
    assert (first.promises, first.proven) == ({"x": PROMISE}, Proven())
    second = looked_at(PROMISE, now("b"))
    assert (second.promises, second.proven.verified) == ({}, 1)


def test_a_bundle_on_its_way_is_waited_for_until_the_sixth_round() -> None:
    waits = looked_at(replace(PROMISE, rounds=4), now("a", on_its_way=True), error=0.5)
    assert waits.promises == {"x": replace(PROMISE, rounds=5)}
    late = looked_at(replace(PROMISE, rounds=5), now("a", on_its_way=True), error=0.5)
    assert (late.promises, late.proven) == ({}, Proven(error=0.495))


def test_of_a_destination_without_data_no_error_is_known() -> None:
    found = looked_at(replace(PROMISE, destination=""), now(""))
    assert (found.promises, found.broken) == ({}, ())
    assert (found.proven.verified, found.proven.broken) == (1, 0)


@pytest.mark.parametrize(("tolerated", "broken"), [(0.25, ()), (0.2, ("x",))])
def test_a_destination_that_is_fuller_than_promised_by_more_than_is_tolerated_breaks_it(
    tolerated: float, broken: tuple[str, ...]
) -> None:
    found = looked_at(PROMISE, now("b"), tolerated)
    assert found.broken == broken
    assert found.proven == Proven(verified=1, broken=len(broken), error=pytest.approx(0.3 * 0.25))  # type: ignore[arg-type]


def test_what_the_whole_cluster_has_more_counts_as_promised() -> None:
    # A promise of 0.25 at a mean of 0.5 is one of 0.4 at a mean of 0.8.
    assert looked_at(PROMISE, now("b", mean=0.8)).proven.error == pytest.approx(0.3 * 0.1)
    assert looked_at(replace(PROMISE, mean=0.0), now("b", mean=0.8)).proven.error == pytest.approx(0.3 * 0.25)


def test_the_typical_error_goes_3_tenths_of_the_way_to_the_mean_of_a_round_and_fades_without_one() -> None:
    other = replace(PROMISE, destination="c", promised=0.5)
    brokers = [Broker("a"), Broker("b", bundles={"x": X}), Broker("c", bundles={"y": X})]
    at = BrokersNow(view=cluster_view(*brokers, as_of_ms=AT), full=np.array([0.625, 0.5, 0.375]), mean=0.5)
    memory = PeakHistory(promises={"x": PROMISE, "y": other}, proven=Proven(error=0.05))
    # One is 0.25 above its promise, the other 0.125 below.
    assert verified(memory, at, 1.0).proven.error == pytest.approx(0.05 + 0.3 * (0.1875 - 0.05))
    assert verified(PeakHistory(proven=Proven(error=0.05)), at, 1.0).proven.error == pytest.approx(0.0495)


def test_a_bundle_of_another_broker_has_strayed_and_one_that_stayed_or_has_none_proves_nothing() -> None:
    strayed = looked_at(PROMISE, now("c"))
    assert (strayed.proven, strayed.broken) == (Proven(verified=1, broken=1, strayed=1), ("x",))
    for owner in ("a", ""):
        assert looked_at(PROMISE, now(owner)) == PeakHistory()


def test_a_bundle_that_is_not_there_has_no_owner_that_is_known() -> None:
    assert (now("b").owner("x"), now("").owner("x"), now("b").owner("y")) == ("b", "", None)
    assert now("b", on_its_way=True).owner("x") is None


def test_a_plan_promises_how_full_its_destinations_end_also_for_earlier_moves_to_them() -> None:
    earlier = {"y": PROMISE, "z": replace(PROMISE, destination="gone")}
    memory = PeakHistory(promises=earlier, proven=Proven(error=0.1, gap=0.9))
    found = promised(memory, now("a", mean=0.4), [("x", PlannedMove(5, 0, 2))], np.array([0.3, 0.35, 0.45]), 0.07)
    assert found.promises == {
        "y": replace(PROMISE, promised=0.35, mean=0.4),
        "z": replace(PROMISE, destination="gone"),
        "x": MovePromise(source="a", destination="c", promised=0.45, mean=0.4),
    }
    assert found.proven == Proven(error=0.1, gap=0.07)
