"""Results from the log to the decision: the cycle uses the executor's answers in the result topic."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest

from controller.cycle import BalancerOptions
from controller.model.decision import Command, Decision, Reason
from controller.wire.results import Result
from tests.logs import PERIOD, START, Shape, answer, located, log
from tests.pure_controller import POLICY, Controller

#: Without a grace period every bundle that stays put does so for what its result says.
RESTLESS = replace(POLICY, balancer=BalancerOptions(grace_period_minutes=0))
#: Seeds of logs whose first command, of this kind, is wanted again in every interval in which nothing forbids it.
LOGS = {"split": 3, "unload": 13}
KINDS = pytest.mark.parametrize("action", sorted(LOGS))


def played(action: str, answers: Mapping[int, Sequence[Result]], intervals: int = 14) -> Controller:
    controller = Controller(policy=RESTLESS, shards=2)
    shape = Shape(seed=LOGS[action], intervals=intervals, calm=True, results_partitions=2)
    controller.feed([*located(log(shape, answers))])
    return controller


@cache
def unanswered(action: str) -> Sequence[Decision]:
    """The decisions when nobody answers a command."""
    return played(action, {}).decisions


def first(action: str) -> Command:
    """The first command of the log, when nobody has answered any."""
    return next(command for decision in unanswered(action) for command in decision.commands)


def told(command: Command, decisions: Sequence[Decision], reason: Reason) -> list[int]:
    """For how many intervals *command* had been issued when *reason* was said about its bundle."""
    found = [d.interval for d in decisions for v in d.verdicts if (v.subject, v.reason) == (command.bundle, reason)]
    return [(interval - command.interval) // PERIOD for interval in found]


def repeated(command: Command, decisions: Sequence[Decision]) -> int:
    """The number of intervals until there was a command about the same bundle again."""
    found = [decision.interval for decision in decisions for each in decision.commands if each.bundle == command.bundle]
    return (found[1] - command.interval) // PERIOD


@pytest.mark.slow
@KINDS
def test_a_command_without_a_result_is_in_flight_until_it_is_lost(action: str) -> None:
    command, decisions = first(action), unanswered(action)
    assert command.action == action
    # It expires after five minutes; its executor may take one more, and its result two.
    assert told(command, decisions, Reason.LOST)[0] == 9
    assert repeated(command, decisions) == 9


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize(
    ("status", "reason", "again"),
    [
        ("done", Reason.SETTLED, 1),
        ("obsolete", Reason.SETTLED, 1),
        ("fenced", Reason.FAILED, 1),
        ("failed", Reason.FAILED, 6),
        ("unknown", Reason.FAILED, 6),
    ],
)
def test_a_result_settles_its_command_with_the_tick_that_follows_it_and_failures_rest_for_five_minutes(
    action: str, status: str, reason: Reason, again: int
) -> None:
    command = first(action)
    until = (command.interval - START) // PERIOD + again + 1
    controller = played(action, {command.interval + PERIOD: [answer(command.id, status)]}, until)
    assert told(command, controller.decisions, reason)[0] == 1
    assert repeated(command, controller.decisions) == again
    assert command.id not in controller.memory.in_flight
