"""A broker that no move can relieve: the others are balanced all the same, and none of them gets fuller than it may."""

from dataclasses import replace

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.objective import ceilings, highest, load_after, loads
from controller.planning.plans.plan import PlanStep
from controller.planning.plans.plan_steps import PlanLimits, spread_step
from controller.planning.problem import BalanceProblem, PlannedMove
from tests.balance_problems import problem, seeded
from tests.plans import plan_of

LIMITS = PlanLimits(effort=200_000)
TO = 1.05


def pinned(seed: int, mean: float = 0.6) -> BalanceProblem:
    """The first of six brokers is half as much again above its capacity, by load that does not move."""
    one = seeded(6, 80, 2, seed, mean=mean)
    owner, fixed = np.maximum(one.owner, 1), one.fixed.copy()
    fixed[0] = 1.5 * one.capacity[0]
    return replace(one, owner=owner, fixed=fixed)


def everywhere(_bundle: int, _moves: object) -> Bools:
    return np.ones(6, np.bool_)


def usage(one: BalanceProblem, *steps: PlanStep) -> list[float]:
    moves = [move for step in steps for move in step.moves]
    return sorted(highest(load_after(one, moves), one.capacity).tolist(), reverse=True)


@pytest.mark.slow
def test_the_others_are_balanced_under_filters_as_without() -> None:
    for seed in range(8):
        one = pinned(seed)
        fullest, second, *_ = usage(one, spread_step(one, LIMITS, TO, everywhere))
        assert fullest == pytest.approx(1.5)
        assert second <= usage(one, spread_step(one, LIMITS, TO))[1] + 1e-9
        assert second < usage(one)[1] - 0.05


def test_no_other_broker_gets_above_its_capacity_on_the_way_unless_it_was_or_is_to_be() -> None:
    for seed in range(12):
        one = pinned(seed, mean=(0.6, 0.75)[seed % 2])
        step = spread_step(one, LIMITS, TO, (None, everywhere)[seed // 2 % 2])
        most = np.maximum(1.0, np.maximum(highest(load_after(one, ()), one.capacity), usage_of(one, step)))
        during = loads(one, one.owner)
        for wave in step.waves:
            for move in wave:
                during[move.destination] += one.size[move.bundle]
            assert (highest(during, one.capacity)[1:] <= most[1:] + 1e-9).all()
            for move in wave:
                during[move.source] -= one.size[move.bundle]
        assert plan_flaws(plan_of(one, [step], "balance")) == []


def usage_of(one: BalanceProblem, step: PlanStep) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return highest(load_after(one, step.moves), one.capacity)


def test_a_plan_that_fills_a_broker_for_a_while_because_another_one_is_full_is_refused() -> None:
    """Two bundles change places in one wave, so that the second broker has both: 1.2 of its capacity."""
    one = problem([[10.0]] * 3, [(1, [6.0]), (2, [6.0])], fixed=[[15.0], [0.0], [0.0]], connections=[1.0, 1.0])
    step = spread_step(one, LIMITS, TO)
    swap = (PlannedMove(0, 1, 2), PlannedMove(1, 2, 1))
    forged = replace(step, waves=(swap,), certificate=replace(step.certificate, max_moves=2))
    assert any(
        "broker 2 is at 1.2 of its capacity, 1 is allowed" in flaw for flaw in plan_flaws(plan_of(one, [forged]))
    )
    assert ceilings(one, swap) == pytest.approx([1.5 + 1e-9, 1.0, 1.0], rel=0, abs=1e-12)
