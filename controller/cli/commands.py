"""``trimtab commands tail``: print the commands that the controller issued, and new ones, as rows or as JSON."""

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
#: Heading, fixed width or 0, and share of the width that the fixed columns leave.
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
        bool, typer.Option("--follow/--no-follow", help="Wait for new commands until Ctrl-C, or stop at the end.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the CloudEvents unchanged, one per line.")] = False,
) -> None:
    """Print the commands, oldest first."""
    log = log_system(read_settings(conf)).commands()
    events = _followed(log) if follow else log.read()
    try:
        if as_json:
            _print_json(events)
        else:
            _print_rows(events, console())
    except KeyboardInterrupt:
        return  # Ctrl-C ends --follow


def _followed(log: CommandLog) -> Iterator[IssuedEvent]:
    while True:
        yield from log.read()
        wait_for_more()


def wait_for_more() -> None:
    """Wait before reading the log again; tests replace this function."""
    time.sleep(_POLL_SECONDS)


def _print_json(events: Iterator[IssuedEvent]) -> None:
    """Events to standard output; what is not an event to standard error, so that programs read only events."""
    for issued in events:
        try:
            parse_event(issued.value)
        except WireError as error:
            typer.echo(_undecodable(issued, error), err=True)
        else:
            # JSON strings contain no line breaks; elsewhere a line break is white space.
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
        began = f"{_utc(event.time_ms)}  epoch {event.epoch} of {event.data.cluster} starts"
        return Text(f"{began}: executors refuse commands of lower epochs from here on", style="cyan")
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
    return f"{command.source} -> {command.destination or 'chosen by the brokers'}"


def _split(command: Command) -> str:
    at = "".join(f" 0x{boundary:08x}" for boundary in command.boundaries)
    return f"{command.algorithm}{at}{', then unload' if command.unload_after_split else ''}"


_DOES: Final[dict[str, Callable[[Command], str]]] = {"unload": _unload, "split": _split}


def _row(cells: Sequence[Text]) -> Table:
    """A table of one row.  All have the same widths, so they look like one table, and each is printed at once."""
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
