"""Does anybody execute the commands, and each command once?"""

from collections import defaultdict
from collections.abc import Iterator

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, fine, listed
from controller.model.controls import MOVING_MODES
from controller.wire.readable import counted


def nobody_executes(facts: Facts) -> Iterator[Finding]:
    """nobody-executes."""
    registered = facts.execution.processes.of("executor")
    if registered:
        names = sorted(f"{each.host}, process {each.process}" for each in registered)
        yield fine("executors", names, f"{counted(len(names), 'executor')} registered")
    waiting = facts.execution.unanswered
    if waiting is None or facts.execution.mode not in MOVING_MODES:
        return
    if not waiting.nobody_executes(facts.now_ms, executors=len(registered), settings=facts.settings):
        return
    yield error(
        "nobody-executes",
        facts.settings.log.commands,
        observed=f"{waiting}; {counted(len(registered), 'executor') if registered else 'no executor'} registered",
        expected="an executor that answers each command",
        advice="look at the executors' logs: they may not reach the log or the brokers"
        if registered
        else "start `trimtab execute`",
    )


def executor_groups(facts: Facts) -> Iterator[Finding]:
    """executor-groups-differ: each group gets every command, so each would carry it out."""
    commands = facts.settings.log.commands
    members: dict[str, list[str]] = defaultdict(list)
    for each in facts.execution.processes.of("executor"):
        if each.group and each.commands == commands:
            members[each.group].append(f"{each.host}, process {each.process}")
    unregistered = [group for group in facts.execution.command_groups if group not in members]
    if len(members) + len(unregistered) < 2:
        return
    ours = f"{facts.settings.executor.group}-{facts.settings.cluster.name}"
    names = [f"{group} ({listed(sorted(who))})" for group, who in sorted(members.items())]
    names += [f"{group} (not in the registry)" for group in sorted(unregistered)]
    is_sure = len(members) > 1
    cluster = facts.settings.cluster.name
    of_another = "" if is_sure else f"; unless a group belongs to another cluster whose name ends in -{cluster}"
    yield Finding(
        code="executor-groups-differ",
        severity="error" if is_sure else "warning",
        objects=tuple(sorted([*members, *unregistered])),
        observed=f"groups with executors on {commands}: {'; '.join(names)}",
        expected=f"one: each group carries out every command{of_another}",
        advice=f"the same group in [executor] of all executors (it gives {ours} here), then restart the others",
    )
