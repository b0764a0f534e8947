"""Single steps of the search: what is compared, and how often filters are asked before a step gives up."""

import numpy as np

from controller.planning.solving.assignment import Assignment
from controller.planning.solving.excess import Excess
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.partial_plan import PartialPlan
from controller.planning.solving.steps import best_exchange, best_move
from controller.planning.solving.tidying import disturb_less
from tests.balance_problems import problem


def test_a_broker_may_be_filled_to_its_ceiling_and_no_further() -> None:
    standing = Assignment(problem([[8.0]] * 2, [(0, [2.0]), (1, [4.0])]))
    fuller = Assignment(problem([[8.0]] * 2, [(0, [3.0]), (0, [4.0]), (1, [2.0]), (1, [1.0])]))
    exchanged = Assignment(problem([[8.0]] * 2, [(0, [4.0]), (1, [2.0])], fixed=[[2.0], [0.0]]))

    def ways(ceiling: float) -> list[bool]:
        """Whether each part of the search fills a broker to three quarters, an exchange for a while."""
        excess, other = Excess(standing, 0.5, ceiling), np.array([False, True])
        return [
            bool(np.isfinite(excess.best_place(0, other)[1])),
            bool(np.isfinite(excess.added(np.array([0]), np.array([1]))[0, 0])),
            best_move(fuller, 0, lambda _bundle: other.copy(), ceiling) is not None,
            best_exchange(exchanged, 0, lambda _bundle: np.ones(2, np.bool_), ceiling) is not None,
        ]

    assert ways(0.75) == [True] * 4
    assert ways(0.74) == [False] * 4


def test_a_bundle_takes_the_place_of_one_that_disturbs_more_where_neither_broker_gets_fuller() -> None:
    def moved(size: float) -> int:
        """Which bundle moves where, beside the one that is planned, there is one of *size* that disturbs less."""
        one = problem([[20.0]] * 2, [(0, [5.0]), (0, [size]), (0, [11.0 - size])], fixed=[[0.0], [9.0]],
                      disturbance=[50.0, 10.0, 99.0])  # fmt: skip
        draft = PartialPlan(one, SearchLimits(max_moves=1, begin=0.6), None)
        draft.assignment.move(0, 0, 1)
        disturb_less(draft)
        return draft.assignment.moves[0].bundle

    assert [moved(size) for size in (2.0, 5.0, 9.0)] == [0, 1, 0]
