"""The answer of ``trimtab status`` about a cluster, for a program."""

from collections.abc import Sequence

from controller.status.cluster import ClusterStatus
from controller.status.guardrails import guardrail_answer
from controller.status.health import Problem
from controller.status.processes import process_answer
from controller.wire.answers.base import CommandAnswer, PulsarVersionAnswer
from controller.wire.answers.status import LastDecisionAnswer, LeaderAnswer, ProblemAnswer, StatusAnswer


def status_answer(status: ClusterStatus, problems: Sequence[Problem]) -> StatusAnswer:
    """The answer about *status*, with the *problems* in it."""
    last, leader = status.last, status.leader
    return StatusAnswer.from_object(
        status,
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
        commands=[CommandAnswer.of(command, result) for command, result in status.commands],
        guardrails=guardrail_answer(status.guardrails),
        processes=process_answer(status.processes),
    )
