"""``trimtab rebalance``: simulate a rebalance protocol on a group of workers that a file describes."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from controller.cli.shared.answers import show
from controller.cli.shared.console import json_option
from controller.cli.shared.layout import columns, print_line, print_table
from controller.model.errors import SettingsError, TrimtabError
from controller.offline.connect_group import Change, Rebalance, example_rows, play, summary_rows
from controller.settings.rebalance_group import RebalanceGroup, read_rebalance_group
from controller.strategies.common.worker_group import ConnectorsAndTasks
from controller.wire.answers.offline import MemberAnswer, RebalanceAnswer, RebalanceExampleAnswer, WorkAnswer
from controller.wire.readable import counted


class Protocol(StrEnum):
    """The protocol by which a group rebalances."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    COOPERATIVE_2_6_3 = "cooperative-2.6.3"
    COOPERATIVE_3_9 = "cooperative-3.9"
    COOPERATIVE_TRIMTAB = "cooperative-trimtab"


class NotBalancedError(TrimtabError):
    """--require-balance is set, and the group is not balanced after the last rebalance."""


_Group: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="TOML or JSON: protocol, delay, connectors, members with what they run, changes. See docs/rebalance.md"
        " and conf/scenarios/rebalance.toml.",
        show_default=False,
    ),
]
_Example: TypeAlias = Annotated[
    bool,
    typer.Option("--example", help="Without FILE: 90 connectors and 900 tasks, started and stopped one by one."),
]
_Protocol: TypeAlias = Annotated[
    Protocol | None,
    typer.Option(
        metavar="<protocol>",
        help=f"{', '.join(Protocol)}.  Overrides the file's; with --example, the protocol to compare with eager.",
    ),
]
_RequireBalance: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--require-balance",
        help="Fail unless in the end exactly what is configured runs, each connector and task once, and members differ"
        " by at most one connector and one task.",
    ),
]


def rebalance(
    group: _Group = None,
    example: _Example = False,
    protocol: _Protocol = None,
    as_json: Annotated[bool, json_option("answer.{rebalance,rebalance_example}", each="rebalance")] = False,
    require_balance: _RequireBalance = False,
) -> None:
    """Simulate changes of a group, and print what each member starts and stops in each rebalance.

    Exit codes: 0 simulated; 1 with --require-balance, not balanced in the end; 2 the file or an option is invalid.
    """
    if (group is None) is not example:
        raise typer.BadParameter("give either a file or --example", param_hint="FILE")
    if example and protocol is Protocol.EAGER:
        raise typer.BadParameter(
            "--example compares a protocol with eager: give a cooperative one", param_hint="--protocol"
        )
    if group is None:
        _print_example(protocol, as_json=as_json)
        return
    described = read_rebalance_group(group)
    by = protocol.value if protocol is not None else described.protocol
    rebalances = _play(described, by)
    if not rebalances:
        raise SettingsError(f"{group}: changes = [] causes no rebalance; give at least one change, which may be {{}}")
    answers = (_answer(one, by) for one in rebalances)
    show(answers, lambda out: _print_rebalances(out, rebalances, by), as_json=as_json)
    if require_balance and not rebalances[-1].is_balanced():
        raise NotBalancedError(f"{group}: not balanced after the last rebalance: {_uneven(rebalances[-1])}")


def _play(group: RebalanceGroup, protocol: str) -> list[Rebalance]:
    return play(
        {member.name: member.running() for member in group.members},
        group.connectors,
        [Change(**change.model_dump()) for change in group.changes],
        protocol=protocol,
        max_delay_ms=group.scheduled_rebalance_max_delay_ms,
        rebalance_ms=group.rebalance_ms,
    )


def _print_rebalances(out: Console, rebalances: Sequence[Rebalance], protocol: str) -> None:
    rows: list[tuple[str, ...]] = []
    for one in rebalances:
        which, why = (f"{one.change}.{one.step}", f"{one.at_ms / 1000:g} s"), one.why
        for name, parts in one.members.items():
            done = one.assignments[name]
            rows.append((*which, why, name, _counts(done.start), _counts(done.stop), _counts(parts)))
            why = ""
        nowhere = f"{_counts(one.missing)} run nowhere" if one.missing else ""
        again = f"all rejoin after {one.delay_ms / 1000:g} s" if one.delay_ms else ""
        removed = f"{_counts(one.unconfigured)} run and are not configured" if one.unconfigured else ""
        if nowhere or removed or again:
            rows.append((*which, ", ".join(filter(None, (nowhere, removed, again))), "", "", "", ""))
    header = columns("rebalance", "at", "because", "member", "starts", "stops", "then runs", prose=("because",))
    print_table(out, header, rows, title=f"{protocol}: connectors + tasks", head=4, shared=2)
    stopped, started = sum(one.stopped for one in rebalances), sum(one.started for one in rebalances)
    print_line(out, f"{counted(len(rebalances), 'rebalance')}: {stopped:,} stopped, {started:,} started")


def _print_example(protocol: Protocol | None, *, as_json: bool) -> None:
    against = (protocol or Protocol.COOPERATIVE_2_6_3).value
    rows = example_rows(against)
    answers = (
        RebalanceExampleAnswer(change=row.what, tasks=row.tasks, stopped={"eager": row.eager, against: row.cooperative})
        for row in rows
    )
    header = columns("change", "tasks after", "eager", against, numbers=("tasks after", "eager", against))
    cells = [(row.what, *(f"{n:,}" for n in (row.tasks, row.eager, row.cooperative))) for row in summary_rows(rows)]
    show(answers, lambda out: print_table(out, header, cells, title="Tasks stopped, 3 workers"), as_json=as_json)


def _answer(one: Rebalance, protocol: str) -> RebalanceAnswer:
    return RebalanceAnswer.from_object(
        one,
        protocol=protocol,
        because=one.why,
        balanced=one.is_balanced(),
        missing=_work(one.missing),
        unconfigured=_work(one.unconfigured),
        members={
            name: MemberAnswer(
                starts=_work(one.assignments[name].start), stops=_work(one.assignments[name].stop), runs=_work(parts)
            )
            for name, parts in one.members.items()
        },
    )


def _work(work: ConnectorsAndTasks) -> WorkAnswer:
    return WorkAnswer(connectors=list(work.connectors), tasks=[str(task) for task in work.tasks])


def _counts(work: ConnectorsAndTasks) -> str:
    return f"{len(work.connectors)} + {len(work.tasks)}" if work else "-"


def _uneven(one: Rebalance) -> str:
    each = ", ".join(f"{name} runs {_counts(parts)}" for name, parts in one.members.items())
    nowhere = f"; {_counts(one.missing)} run nowhere" if one.missing else ""
    removed = f"; {_counts(one.unconfigured)} run and are not configured" if one.unconfigured else ""
    return f"{each}{nowhere}{removed}"
