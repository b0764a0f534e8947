"""The answer of a plan: what it does to each broker, its waves, whom it disturbs, and what is proved of it."""

from controller.offline.plans.planner import PlannedCluster
from controller.planning.plans.plan import Plan, broker_changes, disturbed
from controller.planning.problem import PRICES, PlannedMove
from controller.planning.solving.bounds import mean_level
from controller.wire.answers.plan import (
    BrokerChangeAnswer,
    DisturbedAnswer,
    FrontierLevelAnswer,
    PlanAnswer,
    PlannedMoveAnswer,
    PlanStepAnswer,
    WaveTimeAnswer,
)
from controller.wire.plan import hash_of


def plan_answer(planned: PlannedCluster, *, file: str, now_ms: int, deadline_ms: int | None) -> PlanAnswer:
    """*planned* as an answer. It is in *file* ("": in none), with the end that it has to meet, epoch ms.

    *now_ms*: when it would begin.
    """
    plan, changes = planned.plan, broker_changes(planned.plan)
    moves = plan.moves
    return PlanAnswer(
        cluster=plan.cluster,
        interval=plan.interval,
        kind=plan.kind,
        sha256=hash_of(plan),
        file=file,
        moves=len(moves),
        fewest_moves=planned.fewest_moves,
        waves=sum(len(step.waves) for step in plan.steps),
        seconds=planned.time.seconds,
        slowed=planned.time.slowed,
        never_issued=list(planned.time.never),
        connections=int(sum(plan.problem.connections[move.bundle] for move in moves)),
        connections_at_once=max(
            (
                int(sum(plan.problem.connections[move.bundle] for move in wave))
                for step in plan.steps
                for wave in step.waves
            ),
            default=0,
        ),
        deadline_ms=deadline_ms,
        in_time=None if deadline_ms is None else _in_time(planned, now_ms, deadline_ms),
        before=max((change.before for change in changes), default=0.0),
        after=max((change.after for change in changes), default=0.0),
        brokers=[BrokerChangeAnswer.from_object(change) for change in changes],
        steps=[_step(planned, number) for number in range(len(plan.steps))],
        disturbed=[DisturbedAnswer.from_object(each, connections=int(each.connections)) for each in disturbed(plan)],
        frontier=_frontier_levels(planned),
        stays=planned.stays,
        by_hand=planned.by_hand,
        notes=list(planned.notes),
    )


def _frontier_levels(planned: PlannedCluster) -> list[FrontierLevelAnswer]:
    problem = planned.plan.problem
    mean = mean_level(problem)
    return [
        FrontierLevelAnswer(
            max_moves=each.certificate.max_moves,
            moves=len(each.moves),
            connections=int(sum(problem.connections[move.bundle] for move in each.moves)),
            reached=each.certificate.reached,
            times_mean=each.certificate.reached / mean if mean > 0 else 1.0,
            bound=each.certificate.bound,
            bound_kind=each.certificate.kind,
        )
        for each in planned.frontier
    ]


def _in_time(planned: PlannedCluster, now_ms: int, deadline_ms: int) -> bool:
    return now_ms + planned.time.seconds * 1000 <= deadline_ms and not planned.stays and not planned.time.never


def _step(planned: PlannedCluster, number: int) -> PlanStepAnswer:
    plan, times = planned.plan, planned.time.waves[number]
    step = plan.steps[number]
    certificate, resources = step.certificate, plan.problem.resources
    of_all = certificate.kind == PRICES or certificate.resource < 0 or not resources
    return PlanStepAnswer(
        task=step.task,
        brokers=[plan.brokers[row] for row in step.brokers],
        seconds=planned.time.steps[number],
        reached=certificate.reached,
        bound=certificate.bound,
        bound_kind=certificate.kind,
        bound_resource="" if of_all else resources[certificate.resource],
        max_moves=certificate.max_moves,
        waves=[[_move(plan, move) for move in wave] for wave in step.waves],
        wave_times=[WaveTimeAnswer.from_object(each) for each in times],
    )


def _move(plan: Plan, move: PlannedMove) -> PlannedMoveAnswer:
    """*move* by name."""
    return PlannedMoveAnswer(
        bundle=plan.bundles[move.bundle],
        source=plan.brokers[move.source],
        destination=plan.brokers[move.destination],
        connections=int(plan.problem.connections[move.bundle]),
        msg_rate=float(plan.msg_rate[move.bundle]),
    )
