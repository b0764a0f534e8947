"""Figures of several moves, added by hand."""

from dataclasses import replace
from typing import Final

import pytest

from controller.audit.auditor import MAX_FOLLOWED
from controller.audit.moves import AuditedMove, AuditedSide, MoveOutcome, MoveSums, PredictedBy, StraightPlan
from controller.audit.seen_load import BrokerFigures, CarriedLoad

CARRIED: Final = CarriedLoad(
    rate_in=100.0, rate_out=300.0, throughput_in=5.0, throughput_out=6.0, topics=7, producers=8, consumers=9
)


def figures(usage: float | None) -> BrokerFigures | None:
    return BrokerFigures(usage=usage, rate=1.0, throughput=2.0)


def side(
    before: float | None, predicted: float | None, actual: float | None, by: PredictedBy = "computed"
) -> AuditedSide:
    return AuditedSide(
        broker="b", before=figures(before), predicted=figures(predicted), predicted_by=by, actual=figures(actual),
        presence="there",
    )  # fmt: skip


#: The source falls from 0.75 to 0.5, as predicted; the destination was promised 0.5, and is at 0.625.
ARRIVED: Final = AuditedMove(
    id="1",
    interval=0,
    bundle="x",
    namespace="n",
    strategy="s",
    reason="r",
    source=side(0.75, 0.5, 0.5),
    destination=side(0.25, 0.5, 0.625, by="promise"),
    result="done",
    outcome=MoveOutcome.ARRIVED,
    came_to="b",
    came_at=60_000,
    carried=CARRIED,
    clients=17,
    producers_back_at=60_000,
    drift=1.0,
    later=0,
    undone=False,
    undone_at=None,
    undone_by="",
    shorter=False,
)


def summed(*moves: AuditedMove) -> MoveSums:
    sums = MoveSums()
    for each in moves:
        sums.add(each)
    return sums


def test_a_move_that_arrived_adds_its_predictions_and_whether_it_helped() -> None:
    assert summed() == MoveSums()
    assert (MoveSums().moves, MoveSums().helped, MoveSums().rate, MoveSums().error) == (0, 0, 0, 0)
    once = MoveSums(
        moves=1, arrived=1, judged=1, helped=1, clients=17, had_producers=1, producers_back=1, producers_back_at_once=1,
        rate=400.0, predictions=2, promises=1, error=0.125, error_without_drift=0.125,
    )  # fmt: skip
    assert summed(ARRIVED) == once
    assert summed(ARRIVED, ARRIVED) == replace(
        once, moves=2, arrived=2, judged=2, helped=2, clients=34, had_producers=2, producers_back=2,
        producers_back_at_once=2, rate=800.0, predictions=4, promises=2, error=0.25, error_without_drift=0.25,
    )  # fmt: skip


def test_without_what_the_whole_cluster_has_more_the_error_is_another_one() -> None:
    found = summed(replace(ARRIVED, drift=1.25))
    # 0.625 and 0.625 were to be expected.
    assert (found.error, found.error_without_drift) == (0.125, 0.125)
    assert ARRIVED.destination.error_without(1.25) == 0
    assert ARRIVED.source.error_without(1.25) == -0.125
    assert ARRIVED.destination.error_without(None) == 0.125


_NOWHERE = {"stayed": 1, "rate": 0.0, "had_producers": 0, "producers_back": 0, "producers_back_at_once": 0}


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"outcome": MoveOutcome.ELSEWHERE}, {"elsewhere": 1}),
        ({"outcome": MoveOutcome.STAYED}, {"stayed": 1, "late": 1}),
        ({"outcome": MoveOutcome.STAYED, "result": "failed"}, {"stayed": 1}),
        ({"outcome": MoveOutcome.STAYED, "came_to": ""}, _NOWHERE),
        ({"outcome": MoveOutcome.SPLIT}, {"gone": 1}),
        ({"outcome": MoveOutcome.MERGED}, {"gone": 1}),
        ({"outcome": MoveOutcome.UNLISTED}, {"gone": 1}),
        ({"outcome": MoveOutcome.NOT_RECORDED}, {"unknown": 1}),
        ({"outcome": MoveOutcome.NOT_YET}, {"unknown": 1}),
        ({"outcome": MoveOutcome.TOO_MANY}, {"unknown": 1}),
    ],
)
def test_a_move_that_did_not_arrive_adds_no_prediction(changed: dict[str, object], wanted: dict[str, float]) -> None:
    found = summed(replace(ARRIVED, **changed))  # type: ignore[arg-type]
    sums = MoveSums(moves=1, clients=17, had_producers=1, producers_back=1, producers_back_at_once=1, rate=400.0)
    assert found == replace(sums, **wanted)  # type: ignore[arg-type]


def test_what_is_not_known_is_counted_apart() -> None:
    odd = replace(ARRIVED, outcome=MoveOutcome.NOT_YET, undone=None, shorter=True, clients=None, carried=None)
    assert summed(odd) == MoveSums(moves=1, unknown=1, undone_unknown=1, shorter=1, clients_unknown=1)
    undone = replace(ARRIVED, outcome=MoveOutcome.NOT_YET, undone=True)
    assert summed(undone, undone).undone == 2
    unpredicted = replace(ARRIVED, source=side(0.75, None, 0.5), destination=side(0.25, None, 0.5))
    found = summed(unpredicted, unpredicted)
    assert (found.unpredicted, found.predictions, found.error) == (4, 0, 0)


@pytest.mark.parametrize(
    ("source", "destination", "drift", "helped"),
    [
        (0.5, 0.625, 1.0, True),
        (0.5, 0.75, 1.0, False),
        (0.75, 0.5, 1.0, False),
        (0.5, 0.9, 1.25, True),
        (0.5, 0.9375, 1.25, False),
        (0.5, 0.625, None, None),
        (None, 0.625, 1.0, None),
    ],
)
def test_a_move_helped_where_the_fuller_of_its_brokers_is_emptier_than_before(
    source: float | None, destination: float, drift: float | None, helped: bool | None
) -> None:
    one = replace(ARRIVED, source=side(0.75, 0.5, source), destination=side(0.25, 0.5, destination), drift=drift)
    assert one.helped is helped
    assert summed(one).judged == (helped is not None)
    assert summed(one).helped == bool(helped)


def test_a_straight_plan_takes_each_bundle_from_its_first_broker_to_its_last() -> None:
    plan = StraightPlan()
    for bundle, source, to in (("x", "a", "b"), ("x", "b", "c"), ("y", "a", "b"), ("y", "b", "a"), ("z", "a", "c")):
        plan.add(bundle, source, to)
    assert plan.not_needed == 1 + 2


def test_a_hundred_thousand_moves_are_followed() -> None:
    assert MAX_FOLLOWED == 100_000


def test_producers_that_are_back_later_or_never_are_counted_apart() -> None:
    late, never = replace(ARRIVED, producers_back_at=180_000), replace(ARRIVED, producers_back_at=None)
    found = summed(ARRIVED, late, never)
    assert (found.had_producers, found.producers_back, found.producers_back_at_once) == (3, 2, 1)
    assert [each.producers_back_ms for each in (ARRIVED, late, never)] == [0, 120_000, None]


def test_without_producers_in_the_records_nothing_is_known_of_them() -> None:
    none = replace(ARRIVED, carried=replace(CARRIED, producers=0))
    found = summed(none, replace(ARRIVED, carried=None))
    assert (found.had_producers, found.producers_back, found.producers_back_at_once) == (0, 0, 0)
