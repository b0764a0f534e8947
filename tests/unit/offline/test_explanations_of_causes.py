"""What ``trimtab explain`` names as the cause: what decided, also where several guardrails and strategies said no."""

from dataclasses import replace

import pytest

from controller.cycle import decide
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Decision, Reason
from controller.offline.explanations.explanation import ExplainedDecision, explain
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.wire.answers.explain import ExplainAnswer
from tests.cluster import INTERVAL, broker, view
from tests.unit.cycle.test_cycle import POLICY, WARM

MINUTE = 60_000
SHED = replace(POLICY, shedder=ThresholdShedder())


def explained(found: Decision, subject: str, at: int = INTERVAL) -> ExplainAnswer:
    told = ExplainedDecision(
        cluster="lab",
        interval=at,
        source="journal",
        summary=found.summary,
        commands=tuple((command, None) for command in found.commands),
        verdicts=tuple(found.verdicts),
        policy=SHED,
    )
    return explain(told, subject, "broker")


def test_of_a_hot_broker_whose_bundles_were_all_moved_lately_that_is_the_cause() -> None:
    cluster = view(
        broker("hot:80", usage=0.9, big=60, small=40), broker("cold:80", usage=0.1), recently_unloaded=("big", "small")
    )
    found, _ = decide(cluster, [], WARM, Controls(mode="active"), SHED)
    assert found.commands == ()
    assert Reason.OVERLOADED in {each.reason for each in found.verdicts if each.subject == "hot:80"}
    assert "RecentlyUnloaded" in explained(found, "hot:80").because


def test_a_pause_is_the_cause_also_between_two_rounds() -> None:
    between = replace(SHED, balancer=replace(SHED.balancer, shedding_interval_seconds=0, shedding_interval_minutes=7))
    cluster = view(broker("hot:80", usage=0.9, big=60, small=40), broker("cold:80", usage=0.1))
    at = INTERVAL - INTERVAL % (7 * MINUTE) + MINUTE
    cluster = replace(cluster, as_of_ms=at)
    paused, _ = decide(
        cluster, [], replace(WARM, last_interval=at - MINUTE), Controls(mode="active", paused=True), between
    )
    assert {Reason.NOT_THIS_INTERVAL, Reason.PAUSED} <= {
        each.reason for each in paused.verdicts if each.subject == CLUSTER
    }
    told = ExplainedDecision(
        cluster="lab", interval=at, source="journal", summary="", commands=(), verdicts=tuple(paused.verdicts),
        policy=between,
    )  # fmt: skip
    assert "Paused" in explain(told, "hot:80", "broker").because


def test_between_two_rounds_the_time_of_the_next_one_is_told() -> None:
    between = replace(SHED, balancer=replace(SHED.balancer, shedding_interval_seconds=0, shedding_interval_minutes=7))
    cluster = view(broker("hot:80", usage=0.9, big=60, small=40), broker("cold:80", usage=0.1))
    at = INTERVAL - INTERVAL % (7 * MINUTE) + MINUTE
    memory = replace(WARM, last_interval=at - MINUTE)
    found, _ = decide(replace(cluster, as_of_ms=at), [], memory, Controls(mode="active"), between)
    told = ExplainedDecision(
        cluster="lab", interval=at, source="journal", summary="", commands=(), verdicts=tuple(found.verdicts),
        policy=between,
    )  # fmt: skip
    assert "the next round is at 20" in explain(told, "hot:80", "broker").because


@pytest.mark.parametrize(
    ("controls", "reason"),
    [(Controls(mode="approve"), "AwaitsApproval"), (Controls(mode="active", paused=True), "Paused")],
)
def test_what_holds_back_a_move_that_the_shedder_asks_for_is_the_cause(controls: Controls, reason: str) -> None:
    cluster = view(broker("hot:80", usage=0.9, big=40, mid=20, small=40), broker("cold:80", usage=0.1), broker("c:80"))
    found, _ = decide(cluster, [], WARM, controls, SHED)
    assert found.commands == ()
    assert reason in explained(found, "hot:80").because


def test_what_the_check_of_mode_approve_refuses_is_the_cause_for_its_bundle() -> None:
    cluster = view(broker("hot:80", usage=0.9, huge=100, tiny=2), broker("cold:80", usage=0.3, y=10))
    found, _ = decide(cluster, [], WARM, Controls(mode="approve"), SHED)
    [refused] = [each for each in found.verdicts if each.reason is Reason.CHECK_FAILED]
    told = ExplainedDecision(
        cluster="lab", interval=INTERVAL, source="journal", summary="", commands=(), verdicts=tuple(found.verdicts),
        policy=SHED,
    )  # fmt: skip
    assert "CheckFailed" in explain(told, refused.subject, "bundle").because
