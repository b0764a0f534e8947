"""Verdicts on many brokers or namespaces name five of them, and say how many more there are."""

from dataclasses import replace

import numpy as np
import pytest

from controller.cycle.guardrails.freeze import watched_roster
from controller.cycle.guardrails.undescribed import about_undescribed, undescribed
from controller.cycle.limits import Limits
from controller.model.decision import Reason
from controller.model.memory import Roster
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.pure_controller import POLICY

MINUTE = 60_000


@pytest.mark.parametrize(
    ("number", "told"), [(5, "a, b, c, d, e"), (6, "a, b, c, d, e and 1 more"), (8, "a, b, c, d, e and 3 more")]
)
def test_five_brokers_that_came_or_went_are_named(number: int, told: str) -> None:
    view = cluster_view(*map(Broker, "abcdefgh"[:number]), as_of_ms=10 * MINUTE)
    limits = Limits(freeze_intervals=3)
    roster, verdict = watched_roster(
        Roster(brokers=("x",), went={"w": 8 * MINUTE, "v": 7 * MINUTE}), view, MINUTE, limits
    )
    assert verdict is not None
    assert verdict.detail == f"came: {told}; went: w, x"
    assert (verdict.reason, verdict.observed, verdict.limit, verdict.unit, verdict.by) == (
        Reason.FROZEN, 0, 3, "intervals since then", "guardrails.freeze_intervals",
    )  # fmt: skip
    assert roster.went == {"w": 8 * MINUTE, "x": 10 * MINUTE}
    later = replace(view, as_of_ms=12 * MINUTE)
    _, verdict = watched_roster(roster, later, MINUTE, limits)
    assert verdict is not None
    assert (verdict.detail, verdict.observed) == (f"came: {told}; went: x", 2)
    assert watched_roster(roster, replace(view, as_of_ms=13 * MINUTE), MINUTE, limits)[1] is None


@pytest.mark.parametrize(("number", "more"), [(5, ""), (6, " and 1 more"), (9, " and 4 more")])
def test_five_namespaces_without_a_state_are_named_and_pulsars_own_are_not(number: int, more: str) -> None:
    bundles = {f"acme/n{space}/{part}": Bundle() for space in range(number) for part in range(2)}
    known = {"acme/known/0": Bundle(), "pulsar/system/0": Bundle()}
    view = cluster_view(
        Broker("a", bundles=bundles | known), bundle_count={f"acme/n{space}": -1 for space in range(number)}
    )
    careful = replace(POLICY, limits=replace(POLICY.limits, move_undescribed=False))
    stay = undescribed(view, careful.limits)
    assert not undescribed(view, replace(careful.limits, move_undescribed=True)).any()
    assert np.count_nonzero(stay) == 2 * number
    stay[view.bundles.code_of["pulsar/system/0"]] = True
    [verdict] = about_undescribed(view, stay)
    assert verdict.detail == (
        f"no namespace_state of acme/n0, acme/n1, acme/n2, acme/n3, acme/n4{more}: their bundles stay where they are"
    )
    assert (verdict.observed, verdict.unit, verdict.by) == (number, "namespaces", "guardrails.move_undescribed")
    assert about_undescribed(view, np.zeros(len(stay), np.bool_)) == []
    assert undescribed(cluster_view(Broker("a")), careful.limits).tolist() == []
