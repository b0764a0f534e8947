"""``trimtab commands tail``: print the commands that the controller issued, and new ones, as rows or as JSON."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Annotated, Final, NamedTuple

import typer
from rich.cells import cell_len
from rich.console import Console

from controller.adapters.long_work import is_quiet, long_work
from controller.adapters.outages import Part
from controller.cli.shared import failures
from controller.cli.shared.arguments import FORMS, time_of
from controller.cli.shared.console import DEFAULT_CONF, Conf, console, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.reachable import outages_told, require
from controller.log.commands import CommandLog, IssuedEvent
from controller.log.factory import log_system
from controller.model.errors import WireError
from controller.settings.trimtab_toml import read_settings
from controller.wire.base import harmless_json
from controller.wire.commands import CommandEvent, EpochEvent, SplitEvent, UnloadEvent, own_event, to_command
from controller.wire.decision_texts import because, does
from controller.wire.readable import utc

app = typer.Typer(help="The command topic.", no_args_is_help=True)

_POLL_SECONDS: Final = 0.2
#: Heading of each column but the last, and its width; a longer value is printed whole.
_COLUMNS: Final = (("interval", 20), ("action", 6), ("bundle", 44), ("move or cut", 52), ("mode", 7), ("epoch", 5))
_LAST_COLUMN: Final = "reason"
#: On a narrower line a command is printed on several lines.
_ONE_LINE: Final = 170


@app.callback()
def _commands() -> None:
    """The command topic."""


@app.command()
def tail(
    conf: Conf = DEFAULT_CONF,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for new commands until Ctrl-C, or stop at the end.")
    ] = True,
    since: Annotated[str | None, typer.Option(help=f"From this time on: {FORMS}.", show_default=False)] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Of the events in the log, only this many of the newest.", show_default=False),
    ] = None,
    as_json: Annotated[bool, json_option("trimtab.{unload,split,epoch}", each="event, unchanged")] = False,
) -> None:
    """Print the cluster's commands in order of time.

    The oldest come first.  A line says where each epoch starts.  Commands of other clusters in the topic are left out.
    """
    begin = None if since is None else time_of(since, now_ms=time.time_ns() // 1_000_000, of="--since")
    settings = read_settings(conf)
    if not follow:
        require(settings, Part.LOG)
        there = _all_of(log_system(settings).commands(), settings.cluster.name, "")
        _print(iter([_newest(there, begin, limit)]), as_json=as_json)
        return
    with outages_told(settings, Part.LOG) as watch, suppress(KeyboardInterrupt):
        with long_work("waiting for the log"):
            watch.wait_for([Part.LOG])
        parts = _followed(log_system(settings).commands(), settings.cluster.name)
        _print(chain([_newest(next(parts), begin, limit)], parts), as_json=as_json)


def _print(parts: "Iterator[list[_Read]]", *, as_json: bool) -> None:
    events = _each_once(parts)
    if as_json:
        _print_json(events)
    else:
        _print_rows(events, console())


class _Read(NamedTuple):
    """An event of the log, as bytes and parsed; the error where it cannot be parsed."""

    issued: IssuedEvent
    event: CommandEvent | WireError


def _followed(log: CommandLog, cluster: str) -> Iterator[list[_Read]]:
    """What there is, then what came since; each part is read whole, because partitions are read in any order."""
    yield _all_of(log, cluster, "; waiting for new ones until Ctrl-C")
    while True:
        wait_for_more()
        yield _of_cluster(log.read(), cluster)


def _newest(part: "list[_Read]", since_ms: int | None, limit: int | None) -> "list[_Read]":
    """Those of *part* from *since_ms* on, epoch ms, and of these the *limit* newest.

    What cannot be parsed has no time of its own and is kept.
    """
    events = [
        read
        for read in _each_once([part])
        if since_ms is None or isinstance(read.event, WireError) or read.event.time_ms >= since_ms
    ]
    return events if limit is None else events[-limit:]


def _all_of(log: CommandLog, cluster: str, otherwise: str) -> list[_Read]:
    """All that the log holds now for *cluster*; where that is nothing, say so, and what happens *otherwise*."""
    with long_work("reading the commands"):
        issued = list(log.read())
    matching = _of_cluster(issued, cluster)
    if not matching and not is_quiet():
        of = f" for cluster {cluster}, only for others" if issued else ""
        failures.say(f"no command has been issued yet{of}{otherwise}")
    return matching


def _of_cluster(part: Iterable[IssuedEvent], cluster: str) -> list[_Read]:
    """The events of *part* for *cluster*, and what cannot be parsed: whose that is nobody knows."""
    events = list[_Read]()
    for issued in part:
        try:
            event = own_event(issued.value, cluster)
        except WireError as error:
            events.append(_Read(issued, error))
        else:
            events += [] if event is None else [_Read(issued, event)]
    return events


def _each_once(parts: Iterable[list[_Read]]) -> Iterator[_Read]:
    """The events of each part in order of time; an epoch, which is in every partition, only once."""
    epochs: set[int] = set()
    for part in parts:
        for read in _in_order(part):
            if isinstance(read.event, EpochEvent):
                if read.event.epoch in epochs:
                    continue
                epochs.add(read.event.epoch)
            yield read


def _in_order(part: list[_Read]) -> list[_Read]:
    """By time, an epoch before its commands; what cannot be parsed stays behind what it follows in its partition."""
    timed, last = [], dict[int, tuple[int, bool]]()
    for issued, event in part:
        if not isinstance(event, WireError):
            last[issued.partition] = (event.time_ms, not isinstance(event, EpochEvent))
        timed.append((last.get(issued.partition, (0, False)), _Read(issued, event)))
    return [read for _, read in sorted(timed, key=lambda each: each[0])]


def wait_for_more() -> None:
    """Wait before reading the log again; tests replace this function."""
    time.sleep(_POLL_SECONDS)


def _print_json(events: Iterator[_Read]) -> None:
    """Events to standard output; what is not an event to standard error, so that programs read only events."""
    for issued, event in events:
        if isinstance(event, WireError):
            typer.echo(_undecodable(issued, event), err=True)
        else:
            # JSON strings contain no line breaks; elsewhere a line break is white space.
            typer.echo(harmless_json(b" ".join(issued.value.splitlines()).decode()))


def _print_rows(events: Iterator[_Read], out: Console) -> None:
    wide = out.width >= _ONE_LINE
    if wide:
        out.print(_row([heading for heading, _ in _COLUMNS], _LAST_COLUMN), style="bold", markup=False, soft_wrap=True)
    for issued, event in events:
        if isinstance(event, WireError):
            print_line(out, _undecodable(issued, event), style="red")
        elif isinstance(event, EpochEvent):
            began = f"{utc(event.time_ms)}  epoch {event.epoch} of {event.data.cluster} starts"
            print_line(
                out, f"{began}: executors refuse commands of lower epochs from here on", rest="    ", style="cyan"
            )
        else:
            _print_command(event, out, wide=wide)


def _print_command(event: UnloadEvent | SplitEvent, out: Console, *, wide: bool) -> None:
    command = to_command(event)
    reason = because(command)
    when, way = utc(command.interval), does(command)
    if wide:
        cells = [when, command.action, command.bundle, way, command.mode, str(event.epoch)]
        out.print(_row(cells, reason), markup=False, soft_wrap=True)
        return
    print_line(out, f"{when}  {command.action} {command.bundle}", rest="    ")
    for line in (way, f"{command.mode}, epoch {event.epoch}", reason):
        print_line(out, line, first="    ", rest="      ")


def _row(cells: Sequence[str], last: str) -> str:
    """A line of a table whose columns have the same widths in every line, so each can be printed at once."""
    padded = (cell + " " * (width - cell_len(cell)) for cell, (_, width) in zip(cells, _COLUMNS, strict=True))
    return "  ".join([*padded, last])


def _undecodable(issued: IssuedEvent, error: WireError) -> str:
    return f"undecodable, {issued.place}: {error}"
