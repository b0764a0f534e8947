"""Moves one after the other: how full brokers are in between."""

from collections.abc import Sequence

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.certificate_text import describe_certificate
from controller.planning.objective import disturbance, score
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, PRICES, REMOVAL, Certificate, PlannedMove
from controller.planning.sequence import MoveSequence
from tests.balance_problems import problem

THERE, BACK = PlannedMove(0, 0, 1), PlannedMove(1, 1, 0)


def test_a_move_that_was_taken_changes_both_of_its_brokers_for_the_next_one() -> None:
    two = problem([[10.0, 20.0], [20.0, 10.0]], [(0, [6.0, 1.0]), (1, [5.0, 4.0])])
    sequence = MoveSequence(two, [THERE, BACK])
    assert (sequence.full(THERE), sequence.full(BACK)) == (0.55, 1.1)
    assert sequence.take_first(sequence.waiting)
    assert (sequence.waiting, sequence.taken) == ([BACK], [THERE])
    assert sequence.load.tolist() == [[0, 0], [11, 5]]
    assert sequence.full(BACK) == 0.5
    assert sequence.take_first([BACK])
    assert not sequence.take_first(sequence.waiting)
    assert sequence.load.tolist() == [[5, 4], [6, 1]]


def test_filters_are_asked_with_the_moves_that_were_taken() -> None:
    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        return np.array([False, len(moves) == 1 or bundle == 7])

    sequence = MoveSequence(problem([[10.0]] * 2, [(0, [1.0]), (1, [1.0])]), [THERE, BACK], allowed)
    assert (sequence.may_follow(THERE), sequence.may_follow(BACK)) == (False, False)
    sequence.take_first([BACK])
    assert sequence.may_follow(THERE)


def test_a_move_without_room_is_weighed_again_only_once_a_bundle_has_left_where_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weighed, full = list[PlannedMove](), MoveSequence.full

    def count(sequence: MoveSequence, move: PlannedMove) -> float:
        weighed.append(move)
        return full(sequence, move)

    monkeypatch.setattr(MoveSequence, "full", count)
    # Ten brokers are full but for the last one, and each gives its bundle to the next: only from the end on.
    chain = problem([[1.0]] * 11, [(each, [1.0]) for each in range(10)])
    moves = [PlannedMove(each, each, each + 1) for each in range(10)]
    assert MoveSequence(chain, moves).take_all(np.ones(11)) == tuple(moves[::-1])
    assert len(weighed) == 10 + 9


def test_a_move_disturbs_its_connections_a_thousandth_of_its_messages_and_ten() -> None:
    assert disturbance(np.array([5.0, 0.0]), np.array([2000.0, 0.0])).tolist() == [17, 10]


def test_a_cluster_without_brokers_has_a_score_of_0() -> None:
    nothing = problem([[1.0]], [])
    none = type(nothing)(
        resources=("cpu",), capacity=np.ones((0, 1)), fixed=np.ones((0, 1)), size=np.ones((0, 1)),
        owner=np.zeros(0, np.int64), connections=np.zeros(0), disturbance=np.zeros(0),
    )  # fmt: skip
    assert score(none, ()) == (0, 0, 0, 0)


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
