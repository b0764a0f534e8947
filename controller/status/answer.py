"""The answer of ``trimtab status`` about a cluster, for a program."""

from collections.abc import Sequence

from controller.status.cluster import ClusterStatus
from controller.status.guardrails import guardrail_answer
from controller.status.health import Problem
from controller.status.processes import process_answer
from controller.wire.answers.base import CommandAnswer, PulsarVersionAnswer
from controller.wire.answers.status import LastDecisionAnswer, LeaderAnswer, ProblemAnswer, StatusAnswer


def status_answer(found: ClusterStatus, problems: Sequence[Problem]) -> StatusAnswer:
    """What was *found*, and the *problems* in it."""
    last, leader = found.last, found.leader
    return StatusAnswer.from_object(
        found,
        problems=[ProblemAnswer.from_object(each) for each in problems],
        leader=leader and LeaderAnswer.from_object(leader),
        last=last
        and LastDecisionAnswer.from_object(
            last.controls,
            interval=last.interval,
            summary=last.decision.summary,
            samples=last.memory.samples,
            pulsar=PulsarVersionAnswer.of(last.decision.pulsar),
        ),
        commands=[CommandAnswer.of(command, result) for command, result in found.commands],
        guardrails=guardrail_answer(found.guardrails),
        processes=process_answer(found.processes),
    )
