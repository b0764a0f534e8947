"""The commands of ``trimtab``: the visible table.  Each is loaded when it is called.  controller.cli.main is the entry.

A new command is a function in a file beside this one, with its options in the signature, and a line in the table.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from controller.model.errors import TrimtabError


class Listed(NamedTuple):
    """Where a command lies, and what ``trimtab --help`` says of it without loading it."""

    #: Of controller.cli.
    module: str
    #: A function, or a typer.Typer with commands of its own.
    name: str
    help: str


COMMANDS: Final[Mapping[str, Listed]] = {
    "demo": Listed("demo", "demo", "Balance a modelled cluster, or a real one, with the real controller, and watch."),
    "run": Listed("run", "run", "Run the controller until SIGTERM or Ctrl-C."),
    "collect": Listed("collect", "collect", "Sweep the brokers every interval until SIGTERM or Ctrl-C."),
    "execute": Listed("execute", "execute", "Carry out the commands on Pulsar until SIGTERM or Ctrl-C."),
    "commands": Listed("commands", "app", "Print the command topic."),
    "status": Listed("status", "status", "Show who leads, the last decision and its commands; or one bundle."),
    "doctor": Listed("doctor", "doctor", "Check the cluster, the log and the election before trimtab acts."),
    "pause": Listed("controls", "pause", "Issue no more commands until `trimtab resume`."),
    "resume": Listed("controls", "resume", "Let commands be issued again, and reset the breaker."),
    "mode": Listed("controls", "mode", "Set the mode of every controller of the cluster."),
    "stop-all": Listed(
        "controls", "stop_all", "Pause, and make executors refuse every command that they have not begun."
    ),
    "decide": Listed("decide", "decide", "Decide once on recorded load, and say why.  Nothing is moved."),
    "lookup": Listed("lookup", "lookup", "Find the hash, the bundle and the owner of a topic."),
    "rebalance": Listed("rebalance", "rebalance", "Play a rebalance protocol of Kafka Connect on a described group."),
    "ticks": Listed("ticks", "ticks", "Copy a recording and add the ticks that a replay needs."),
    "options": Listed("options", "options", "Print every option of broker.conf and trimtab.toml that trimtab reads."),
    "strategies": Listed(
        "strategies", "app", "Check a strategy, also one of your own, against the laws of all of them."
    ),
    "bench": Listed("bench", "app", "Measure how fast trimtab is on this machine."),
}


class CommandTable(TyperGroup):
    """Lists all commands, and loads only the one that is called: some import Spark, pandas and Kafka's client."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=listed.help) for name, listed in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that *args* begin with, loaded; an error that names the nearest one where there is none."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, loaded(name) if command is not None and name is not None else None, rest


def loaded(name: str) -> Any:
    """The command *name* of the table, as Typer runs it."""
    listed = COMMANDS[name]
    part = getattr(import_module(f"controller.cli.{listed.module}"), listed.name)
    group = typer.Typer(add_completion=False)
    group.callback()(lambda: None)
    if isinstance(part, typer.Typer):
        group.add_typer(part, name=name)
    else:
        group.command(name)(part)
    commands: Any = typer.main.get_command(group)
    return commands.commands[name]


app = typer.Typer(cls=CommandTable, no_args_is_help=True)


@app.callback()
def _trimtab() -> None:
    """trimtab: an external load-balance controller for Apache Pulsar."""


def main() -> None:
    """Run the command that the arguments name: an error raised on purpose is one line, and its exit code."""
    try:
        app()
    except TrimtabError as error:
        typer.echo(f"trimtab: {error}", err=True)
        raise SystemExit(error.exit_code) from error
