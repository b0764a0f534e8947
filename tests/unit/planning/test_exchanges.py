"""The best exchange of two bundles: what may lie on a broker in between."""

import numpy as np
import pytest

from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.steps import best_exchange
from tests.balance_problems import problem

#: Either bundle fills its new broker, to the last bit, while the one that it changes places with is still there; the
#: other one would be too much.
MINE_FILLS = problem([[8.0]] * 2, [(0, [4.0]), (1, [3.0])], fixed=[[3.0], [1.0]])
THEIRS_FILLS = problem([[8.0], [4.0]], [(0, [2.25]), (1, [1.0])], fixed=[[4.75], [1.0]])


@pytest.mark.parametrize("one", [MINE_FILLS, THEIRS_FILLS])
def test_a_broker_may_be_as_full_as_the_ceiling_while_two_bundles_change_places(one: BalanceProblem) -> None:
    def exchanged(ceiling: float) -> tuple[PlannedMove, PlannedMove] | None:
        return best_exchange(Assignment(one), 0, lambda _bundle: np.ones(2, np.bool_), ceiling)

    assert exchanged(1.0) == (PlannedMove(0, 0, 1), PlannedMove(1, 1, 0))
    assert exchanged(0.999) is None
