"""The checker refuses every forged plan and certificate, and verifies many honest ones."""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from controller.planning.checking import checker
from controller.planning.checking.checker import flaws
from controller.planning.problem import (
    FIXED,
    MEAN,
    PIGEONHOLE,
    PRICES,
    BalanceProblem,
    Certificate,
    CertifiedPlan,
    PlannedMove,
)
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.balance_problems import problem, seeded
from tests.effort import tries

SMALL: Final = seeded(6, 60, 2, 4)
PLAN: Final = planned(SMALL, SearchLimits(max_moves=6, effort=100_000))


def refused(plan: CertifiedPlan, said: str, of: BalanceProblem = SMALL) -> None:
    found = flaws(of, plan.moves, plan.certificate)
    assert any(said in flaw for flaw in found), found


def forged(**changes: object) -> CertifiedPlan:
    return replace(PLAN, certificate=replace(PLAN.certificate, **changes))  # type: ignore[arg-type]


def test_the_honest_plan_is_verified() -> None:
    assert len(PLAN.moves) == 6
    assert flaws(SMALL, PLAN.moves, PLAN.certificate) == []


def test_a_utilisation_that_no_number_can_hold_is_refused() -> None:
    tiny = replace(SMALL, capacity=np.full_like(SMALL.capacity, 5e-324))
    refused(PLAN, "the plan reaches inf", tiny)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (forged(reached=PLAN.certificate.reached * 0.99), "the plan reaches"),
        (forged(before=PLAN.certificate.before * 1.01), "the highest utilisation is"),
        (forged(max_moves=5), "6 moves, and 5 are allowed"),
        (forged(bound=PLAN.certificate.bound * 1.001), "is not proved by removal"),
        (forged(bound=PLAN.certificate.reached * 1.1), "is above what the plan reaches"),
        (forged(bound=float("nan")), "not finite"),
        (forged(reached=float("inf")), "not finite"),
        (forged(bound=-1.0), "below 0"),
        (forged(resource=2), "is not proved"),
        (forged(resource=-1), "is not proved"),
        (forged(kind="trust me"), "is not proved by trust me"),
        (forged(kind=MEAN), "is not proved by mean"),
        (forged(kind=FIXED), "is not proved by fixed"),
        (forged(kind=PIGEONHOLE, size=1e-6), "is not proved by pigeonhole"),
        (forged(kind=PIGEONHOLE, size=0.0), "is not proved by pigeonhole"),
        (forged(kind=PRICES), "is not proved by prices"),
        (forged(kind=PRICES, prices=np.ones((6, 2))), "is not proved by prices"),
        (forged(kind=PRICES, prices=np.full((6, 2), -1.0)), "is not proved by prices"),
        (forged(kind=PRICES, prices=np.full((6, 2), np.nan)), "is not proved by prices"),
        (forged(kind=PRICES, prices=np.ones((1, 2)) / 2), "is not proved by prices"),
    ],
)
def test_a_forged_certificate_is_refused(plan: CertifiedPlan, said: str) -> None:
    refused(plan, said)


def _with(change: Callable[[PlannedMove], PlannedMove]) -> CertifiedPlan:
    return replace(PLAN, moves=(change(PLAN.moves[0]), *PLAN.moves[1:]))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (_with(lambda move: move._replace(bundle=60)), "cannot move"),
        (_with(lambda move: move._replace(bundle=-1)), "cannot move"),
        (_with(lambda move: move._replace(destination=6)), "cannot move"),
        (_with(lambda move: move._replace(destination=-1)), "cannot move"),
        (_with(lambda move: move._replace(destination=move.source)), "cannot move"),
        (_with(lambda move: move._replace(source=(move.source + 1) % 6)), "cannot move"),
        (replace(PLAN, moves=(*PLAN.moves[:5], PLAN.moves[0])), "a bundle moves twice"),
        (replace(PLAN, moves=PLAN.moves[:-1]), "the plan reaches"),
    ],
)
def test_forged_moves_are_refused(plan: CertifiedPlan, said: str) -> None:
    refused(plan, said)


def test_a_broker_that_is_too_full_on_the_way_is_refused() -> None:
    two = problem([[10.0], [10.0]], [(0, [6.0]), (1, [5.0]), (1, [4.0])])
    there, back = PlannedMove(0, 0, 1), PlannedMove(1, 1, 0)
    exchange = Certificate(max_moves=2, before=0.9, reached=1.0, bound=0.0, kind=MEAN)
    honest = CertifiedPlan(moves=(back, there), certificate=exchange)
    refused(honest, "broker 0 is at 1.1 of its capacity", two)


@pytest.mark.parametrize("change", ["capacity", "fixed", "size"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_snapshot_that_is_no_snapshot_is_refused(change: str, value: float) -> None:
    column = getattr(SMALL, change).copy()
    column[0, 0] = value
    refused(PLAN, "a number of the problem", replace(SMALL, **{change: column}))


def test_a_broker_without_capacity_is_refused() -> None:
    refused(PLAN, "or a capacity is 0", replace(SMALL, capacity=SMALL.capacity * [1.0, 0.0]))


@pytest.mark.slow
def test_many_plans_are_verified() -> None:
    for seed in range(tries(plain=100, thorough=1000)):
        one = seeded(
            2 + seed % 5, 4 + seed % 17, 1 + seed % 3, seed, uneven=seed % 2 == 0, mean=(0.3, 0.6, 1.4)[seed % 3]
        )
        plan = planned(one, SearchLimits(max_moves=seed % 9, effort=0))
        assert flaws(one, plan.moves, plan.certificate) == []


def test_any_of_many_certificates_is_refused_where_its_bound_is_raised() -> None:
    for seed in range(tries(plain=20, thorough=200)):
        one = seeded(2 + seed % 5, 4 + seed % 17, 1 + seed % 3, seed, uneven=seed % 2 == 0)
        plan = planned(one, SearchLimits(max_moves=seed % 9, effort=0))
        raised = replace(plan.certificate, bound=plan.certificate.bound * 1.01)
        assert flaws(one, plan.moves, raised)


def test_the_checker_is_short_and_shares_no_code_with_what_it_checks() -> None:
    source = Path(checker.__file__).read_text(encoding="utf-8")
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    nouns = {"controller.model.load", "controller.planning", "controller.planning.problem"}
    assert imported == {"collections.abc", "typing", *nouns}
    assert len(source.splitlines()) <= 100
