"""The doctor's findings about who executes the commands."""

from dataclasses import replace
from typing import Any

import pytest

from controller.adapters.registration import RegisteredProcesses, SeenProcess
from controller.doctor.checks import judge
from controller.doctor.facts import ExecutionFacts
from controller.doctor.finding import Finding
from controller.log.unanswered import Unanswered
from controller.wire.process import RunningProcess
from tests.doctor import NOW, facts, only, problems

GROUP = "trimtab-executor-demo"


def executor(number: int, **changed: Any) -> SeenProcess:
    values = {"host": "here", "process": number, "role": "executor", "version": "1", "started_at": 0, "ready": True}
    values |= {"group": GROUP, "commands": "trimtab-commands"}
    return SeenProcess(process=RunningProcess(**{**values, **changed}), seen_ms=NOW)


def execution(*executors: SeenProcess, **changed: Any) -> ExecutionFacts:
    return replace(ExecutionFacts(mode="active", processes=RegisteredProcesses(running=executors)), **changed)


def waiting(seconds: float, *, answered_since: bool = False, answered_before: bool = False) -> Unanswered:
    return Unanswered(
        commands=3,
        since_ms=NOW - int(seconds * 1000),
        answered_since=answered_since,
        answered_before=answered_before,
    )


def about(found: ExecutionFacts) -> list[Finding]:
    return problems(execution=found)


def test_commands_without_an_answer_and_no_executor_are_an_error() -> None:
    found = only(execution=execution(unanswered=waiting(5)))
    assert (found.code, found.severity, found.objects) == ("nobody-executes", "error", ("trimtab-commands",))
    assert found.observed.startswith("3 commands without an answer since 20")
    assert found.advice == "start `trimtab execute`"


@pytest.mark.parametrize(
    "found",
    [
        execution(),
        execution(executor(1)),
        execution(executor(1), unanswered=waiting(100)),
        execution(unanswered=waiting(100, answered_before=True)),
        execution(unanswered=waiting(1_000, answered_since=True, answered_before=True)),
        execution(unanswered=waiting(1_000), mode="dry_run"),
    ],
    ids=["none", "idle", "at work", "unregistered at work", "one lost", "dry run"],
)
def test_executors_at_work_and_dry_runs_are_no_problem(found: ExecutionFacts) -> None:
    assert not about(found)


@pytest.mark.parametrize(
    "found",
    [execution(executor(1), unanswered=waiting(1_000)), execution(unanswered=waiting(1_000, answered_before=True))],
)
def test_an_executor_that_no_longer_answers_is_an_error(found: ExecutionFacts) -> None:
    assert [each.code for each in about(found)] == ["nobody-executes"]


def test_executors_of_one_group_are_counted() -> None:
    found = judge(facts(execution=execution(executor(1), executor(2))))
    assert [each.observed for each in found if each.code == "executors"] == ["2 executors registered"]


def test_registered_executors_of_different_groups_on_one_topic_are_an_error_that_names_both() -> None:
    found = only(execution=execution(executor(1), executor(2, group="blue-demo")))
    assert (found.code, found.severity) == ("executor-groups-differ", "error")
    assert found.objects == ("blue-demo", GROUP)
    assert "blue-demo (here, process 2)" in found.observed


def test_an_unregistered_group_is_seen_in_kafka_and_may_be_another_cluster_s() -> None:
    found = only(execution=execution(executor(1), command_groups=(GROUP, "trimtab-executor-west-demo")))
    assert (found.code, found.severity) == ("executor-groups-differ", "warning")
    assert "trimtab-executor-west-demo (not in the registry)" in found.observed
    assert "another cluster whose name ends in -demo" in found.expected


def test_two_groups_of_executors_that_do_not_register_are_seen_in_kafka() -> None:
    found = only(execution=execution(command_groups=(GROUP, "blue-demo")))
    assert (found.code, found.severity) == ("executor-groups-differ", "warning")


@pytest.mark.parametrize(
    "found",
    [
        execution(command_groups=(GROUP,)),
        execution(executor(1), command_groups=(GROUP,)),
        execution(executor(1), executor(2, group="blue-demo", commands="other-commands")),
        execution(executor(1, group=""), executor(2, group="")),
    ],
    ids=["unregistered", "the same", "another topic", "a folder"],
)
def test_one_group_on_the_topic_is_no_problem(found: ExecutionFacts) -> None:
    assert not about(found)
