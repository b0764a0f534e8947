"""The rest of a plan goes on where it still leads about as far as it was to lead."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from controller.planning.problem import PlannedMove
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.rest_of_plan import leads_as_far

MOVES = (PlannedMove(0, 0, 1),)


def ends_at(highest: float) -> Any:
    """A round in which the fullest broker is at *highest* after any moves."""
    return SimpleNamespace(ends_of=lambda _: np.array([0.25, highest]))


def test_five_percent_above_the_end_it_was_to_reach_is_as_far_and_more_is_not() -> None:
    memory = PeakHistory(plan_end=1.0)
    assert leads_as_far(ends_at(1.05), memory, MOVES)
    assert not leads_as_far(ends_at(np.nextafter(1.05, 2)), memory, MOVES)
    assert not leads_as_far(ends_at(0.5), memory, ())
