"""``trimtab rebalance``: play what a rebalance protocol does to a group, from a file that describes it."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from controller.cli.common import console
from controller.model.errors import SettingsError, TrimtabError
from controller.offline.connect_group import Change, Rebalance, play
from controller.offline.rebalance_example import ExampleRow, example_rows, summary_rows
from controller.settings.rebalance_group import RebalanceGroup, read_rebalance_group
from controller.strategies.common.worker_group import ConnectorsAndTasks

#: Columns of a pipe or a file.


class Protocol(StrEnum):
    """What a group rebalances by."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    COOPERATIVE_2_6_3 = "cooperative-2.6.3"
    COOPERATIVE_3_9 = "cooperative-3.9"
    COOPERATIVE_TRIMTAB = "cooperative-trimtab"


class NotBalancedError(TrimtabError):
    """The group that was asked to be balanced is not."""


_Group: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
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
    Protocol | None, typer.Option(help="In place of the file's; with --example, the one to compare with eager.")
]
_RequireBalance: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--require-balance",
        help="Fail unless in the end everything runs once, and members differ by one connector and one task at most.",
    ),
]


def rebalance(
    group: _Group = None,
    example: _Example = False,
    protocol: _Protocol = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a rebalance, one a line.")] = False,
    require_balance: _RequireBalance = False,
) -> None:
    """Play membership changes of a group: who starts and who stops what, rebalance by rebalance.

    Exit codes: 0 played; 1 with --require-balance, not balanced in the end; 2 the file or an option means nothing.
    """
    if (group is None) is not example:
        raise typer.BadParameter("name one file, or --example without one", param_hint="FILE")
    if example and protocol is Protocol.EAGER:
        raise typer.BadParameter("eager is compared with: name a cooperative one", param_hint="--protocol")
    if group is None:
        _print_example(protocol, as_json=as_json)
        return
    described = read_rebalance_group(group)
    by = protocol.value if protocol is not None else described.protocol
    rebalances = _play(described, by)
    if not rebalances:
        raise SettingsError(f"{group}: changes = []: nothing happens; name at least one, {{}} if need be")
    if as_json:
        for one in rebalances:
            typer.echo(json.dumps(_as_json(one, by)))
    else:
        _print_rebalances(rebalances, by)
    if require_balance and not rebalances[-1].is_balanced():
        raise NotBalancedError(f"{group}: not balanced after the last rebalance: {_uneven(rebalances[-1])}")


def _play(group: RebalanceGroup, protocol: str) -> list[Rebalance]:
    return play(
        {member.name: member.held() for member in group.members},
        group.connectors,
        [Change(**change.model_dump()) for change in group.changes],
        protocol=protocol,
        max_delay_ms=group.scheduled_rebalance_max_delay_ms,
    )


def _print_rebalances(rebalances: Sequence[Rebalance], protocol: str) -> None:
    table = Table(title=f"{protocol}: connectors + tasks", title_justify="left")
    for heading in ("rebalance", "at", "because", "member", "starts", "stops", "runs then"):
        table.add_column(heading, no_wrap=heading in ("rebalance", "at"))
    for one in rebalances:
        label, at, why = f"{one.change}.{one.step}", f"{one.at_ms / 1000:g} s", one.why
        for name, held in one.members.items():
            done = one.assignments[name]
            cells = (label, at, why, name, _counts(done.start), _counts(done.stop), _counts(held))
            table.add_row(*map(Text, cells))
            label = at = why = ""
        rest = []
        if one.missing:
            rest.append(f"{_counts(one.missing)} run nowhere")
        if one.delay_ms:
            rest.append(f"all join again after {one.delay_ms / 1000:g} s")
        if rest:
            table.add_row("", "", Text(", ".join(rest)))
        table.add_section()
    out = console()
    out.print(table)
    stopped, started = sum(one.stopped for one in rebalances), sum(one.started for one in rebalances)
    out.print(f"{len(rebalances)} rebalances: {stopped} stopped, {started} started", markup=False, highlight=False)


def _print_example(protocol: Protocol | None, *, as_json: bool) -> None:
    against = (protocol or Protocol.COOPERATIVE_2_6_3).value
    rows = example_rows(against)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(_example_json(row, against)))
        return
    table = Table(title="Tasks stopped, 3 workers", title_justify="left")
    for heading in ("change", "tasks then", "eager", against):
        table.add_column(heading, justify="left" if heading == "change" else "right")
    summary = summary_rows(rows)
    for row in summary:
        table.add_row(row.what, *(f"{n:,}" for n in (row.tasks, row.eager, row.cooperative)))
    console().print(table)


def _example_json(row: ExampleRow, against: str) -> dict[str, Any]:
    return {"change": row.what, "tasks": row.tasks, "stopped": {"eager": row.eager, against: row.cooperative}}


def _as_json(one: Rebalance, protocol: str) -> dict[str, Any]:
    return {
        "protocol": protocol,
        "change": one.change,
        "step": one.step,
        "atMs": one.at_ms,
        "generation": one.generation,
        "leader": one.leader,
        "because": one.why,
        "delayMs": one.delay_ms,
        "balanced": one.is_balanced(),
        "missing": _names(one.missing),
        "members": {
            name: {
                "starts": _names(one.assignments[name].start),
                "stops": _names(one.assignments[name].stop),
                "runs": _names(held),
            }
            for name, held in one.members.items()
        },
    }


def _names(work: ConnectorsAndTasks) -> dict[str, list[str]]:
    return {"connectors": list(work.connectors), "tasks": [str(task) for task in work.tasks]}


def _counts(work: ConnectorsAndTasks) -> str:
    return f"{len(work.connectors)} + {len(work.tasks)}" if work else "-"


def _uneven(one: Rebalance) -> str:
    each = ", ".join(f"{name} runs {_counts(held)}" for name, held in one.members.items())
    return f"{each}; {_counts(one.missing)} run nowhere" if one.missing else each
