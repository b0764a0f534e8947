"""What the search finds for some problems, move by move: so a change of any step of it is seen, and is meant.

Where a plan changes because the search got better, the table is written anew; ``reached`` says whether it did.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.balance_problems import problem, whole_numbers

PLANS: Final = (
    ((5, 30, 2, 3), {"max_moves": 8}, 0.55, "11:4 17:3 10:4 27:4 26:3 4:3 12:3 3:4"),
    (
        (6, 40, 3, 5),
        {"max_moves": 30, "goal": 1.05, "begin": 1.1},
        0.47,
        "10:5 35:4 17:4 33:5 15:4 32:5 22:4 39:2 26:5 9:3 31:3 13:0 20:0 12:3 14:1",
    ),
    (
        (8, 60, 2, 8),
        {"max_moves": 40, "goal": 1.02, "effort": 0},
        0.46,
        "38:7 46:6 22:7 41:4 11:6 10:7 21:4 12:7 20:6 42:4 36:7 53:4 50:7 52:6 6:4 1:5 4:6 24:4 14:3",
    ),
    (
        (40, 200, 1, 10),
        {"max_moves": 15},
        0.605,
        "138:31 139:34 85:35 82:39 84:24 34:28 42:38 161:36 177:15 113:33 27:34 23:32 26:31 60:37 165:35",
    ),
)


def found(
    shape: tuple[int, int, int, int], limits: dict[str, Any], allowed: Allowed | None = None
) -> tuple[float, str]:
    """The highest usage after the plan, and its moves, each as bundle:destination; goals are times the mean."""
    one = whole_numbers(*shape)
    mean = mean_level(one)
    given = {name: value * mean if name in ("begin", "goal") else value for name, value in limits.items()}
    given.setdefault("effort", 30_000)
    plan = planned(one, SearchLimits(**given), allowed)
    return round(plan.certificate.reached, 4), " ".join(f"{bundle}:{to}" for bundle, _, to in plan.moves)


@pytest.mark.parametrize(("shape", "limits", "reached", "moves"), PLANS)
def test_every_machine_finds_this_plan(
    shape: tuple[int, int, int, int], limits: dict[str, Any], reached: float, moves: str
) -> None:
    assert found(shape, limits) == (reached, moves)


def by_number(bundle: int, _moves: Sequence[PlannedMove]) -> Bools:
    """Bundle 0 may go to broker 0 and 1, bundle 1 to 1 and 2, ..., of five."""
    return np.isin(np.arange(5), (bundle % 5, (bundle + 1) % 5))


def one_after_the_other(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
    """The last two brokers take turns."""
    may = np.ones(5, np.bool_)
    may[3 + len(moves) % 2] = bundle % 3 == 0
    return may


FILTERED: Final = (
    (by_number, {"max_moves": 8}, 0.62, "27:3 15:1 12:3 21:1 34:4 18:4 33:4 35:1"),
    (
        one_after_the_other,
        {"max_moves": 40, "goal": 1.05, "begin": 1.1},
        0.52,
        "15:4 12:4 21:4 37:3 34:4 6:3 20:4 14:2 27:1 33:4 4:1",
    ),
)


@pytest.mark.parametrize(("allowed", "limits", "reached", "moves"), FILTERED)
def test_every_machine_finds_this_plan_under_filters(
    allowed: Allowed, limits: dict[str, Any], reached: float, moves: str
) -> None:
    assert found((5, 40, 2, 12), limits, allowed) == (reached, moves)


def test_moves_are_put_in_an_order_in_which_no_broker_is_above_the_ceiling() -> None:
    standing = Assignment(problem([[10.0]] * 2, [(0, [6.0]), (1, [5.0]), (1, [4.0])]))
    there, back = PlannedMove(0, 0, 1), PlannedMove(2, 1, 0)
    standing.back_to([there, back])
    assert standing.ordered(np.full(2, 1.1)) == (back, there)
    assert standing.ordered(np.full(2, 1.0)) == (back,)
    assert standing.ordered(np.full(2, 1.5)) == (there, back)
    assert standing.ordered(np.full(2, 0.9)) == ()
