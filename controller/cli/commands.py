"""``trimtab commands tail``: what the controller has issued, and goes on issuing, for people and for programs."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from controller.adapters.opened import log_system
from controller.cli.common import DEFAULT_CONF, Conf, console
from controller.model.decision import Command
from controller.model.errors import WireError
from controller.ports.log import CommandLog, IssuedEvent
from controller.settings.trimtab_toml import read_settings
from controller.wire.commands import CommandEvent, EpochEvent, parse_event, to_command
from controller.wire.dead_letter import Source

app = typer.Typer(help="The command topic.", no_args_is_help=True)

_POLL_SECONDS: Final = 0.2
#: Columns of a pipe or a file: none of them breaks a usual bundle's name.
#: Heading, and the width: fixed, or a share of what the fixed ones leave.
_COLUMNS: Final = (
    ("interval", 20, 0),
    ("action", 6, 0),
    ("bundle", 0, 4),
    ("move or cut", 0, 5),
    ("mode", 7, 0),
    ("epoch", 5, 0),
    ("reason", 0, 4),
)


@app.callback()
def _commands() -> None:
    """The command topic."""


@app.command()
def tail(
    conf: Conf = DEFAULT_CONF,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for new ones until Ctrl-C, or stop at the present end.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="The CloudEvents as they are, one a line.")] = False,
) -> None:
    """Print the commands, from the oldest one on."""
    log = log_system(read_settings(conf)).commands()
    events = _followed(log) if follow else log.read()
    try:
        if as_json:
            _print_json(events)
        else:
            _print_rows(events, console())
    except KeyboardInterrupt:
        return  # how following ends


def _followed(log: CommandLog) -> Iterator[IssuedEvent]:
    while True:
        yield from log.read()
        wait_for_more()


def wait_for_more() -> None:
    """Let some time pass before the log is read again; a test replaces it."""
    time.sleep(_POLL_SECONDS)


def _print_json(events: Iterator[IssuedEvent]) -> None:
    """What is no event of ours goes to standard error, so that a program reads nothing else."""
    for issued in events:
        try:
            parse_event(issued.value)
        except WireError as error:
            typer.echo(_undecodable(issued, error), err=True)
        else:
            # Outside of strings, where none can be, a line break is but a space.
            typer.echo(b" ".join(issued.value.splitlines()))


def _print_rows(events: Iterator[IssuedEvent], out: Console) -> None:
    out.print(_row([Text(heading, style="bold") for heading, _, _ in _COLUMNS]))
    for issued in events:
        try:
            event = parse_event(issued.value)
        except WireError as error:
            out.print(Text(_undecodable(issued, error), style="red"), soft_wrap=True)
        else:
            out.print(_shown(event))


def _shown(event: CommandEvent) -> Table | Text:
    if isinstance(event, EpochEvent):
        began = f"{_utc(event.time_ms)}  epoch {event.epoch} of {event.data.cluster} begins"
        return Text(f"{began}: lower epochs are refused from here on", style="cyan")
    command = to_command(event)
    cells = (
        _utc(command.interval),
        command.action,
        command.bundle,
        _DOES[command.action](command),
        command.mode,
        str(event.epoch),
        str(command.why).removeprefix(f"{command.why.subject}: "),
    )
    return _row([Text(cell) for cell in cells])


def _unload(command: Command) -> str:
    return f"{command.source} -> {command.destination or 'wherever the brokers put it'}"


def _split(command: Command) -> str:
    at = "".join(f" 0x{boundary:08x}" for boundary in command.boundaries)
    return f"{command.algorithm}{at}{', then unload' if command.unload_after_split else ''}"


_DOES: Final[dict[str, Callable[[Command], str]]] = {"unload": _unload, "split": _split}


def _row(cells: Sequence[Text]) -> Table:
    """A table of one row: all of them are as wide, so together they look like one, and none waits for the last."""
    row = Table.grid(expand=True, padding=(0, 2, 0, 0))
    for _, width, share in _COLUMNS:
        row.add_column(width=width or None, ratio=share or None, overflow="fold")
    row.add_row(*cells)
    return row


def _undecodable(issued: IssuedEvent, error: WireError) -> str:
    return f"undecodable, {_place(issued.source)}: {error}"


def _place(source: Source) -> str:
    if source.file is not None:
        return f"{source.file}, line {source.offset + 1}"
    return f"topic {source.topic}, partition {source.partition}, offset {source.offset}"


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
