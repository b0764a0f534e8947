"""The table of the commands of ``trimtab``.  A command is imported when it is called.  controller.cli.main starts it.

To add a command: write a function in a new file of this folder, with its options in the signature, and add a line to
the table.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand

from controller.cli.remote.server_option import add_server_option
from controller.cli.shared import failures, service_log
from controller.cli.shared.common_options import Debug, QuietBefore, Version, with_common_options
from controller.cli.shared.failures import needs_checkout
from controller.cli.shared.plain_help import PlainGroup


class Listed(NamedTuple):
    """Where a command is defined, and its line in ``trimtab --help``, which imports no command."""

    #: Module in controller.cli; or one elsewhere, with all of its name.
    module: str
    #: A function, or a typer.Typer with commands of its own.
    name: str
    help: str
    #: The heading in ``trimtab --help``; one of OPERATE, LOOK and TRY.
    group: str


OPERATE: Final = "Operate a cluster"
LOOK: Final = "Look at a cluster"
TRY: Final = "Try, without a cluster"

#: In the order of the groups, and by name in each.
COMMANDS: Final[Mapping[str, Listed]] = {
    "accept-loss": Listed("controls", "accept_loss", "Continue, paused, without the lost journal entries.", OPERATE),
    "apply": Listed("apply", "apply", "Carry out an approved plan, wave by wave.", OPERATE),
    "collect": Listed("collect", "collect", "Sweep the brokers every interval until SIGTERM or Ctrl-C.", OPERATE),
    "exclude": Listed("controls", "exclude", "Keep bundles where they are and whole until `trimtab include`.", OPERATE),
    "execute": Listed("execute", "execute", "Execute the commands on Pulsar until SIGTERM or Ctrl-C.", OPERATE),
    "hand-back": Listed(
        "handover", "hand_back", "Pause trimtab, and let the brokers balance by themselves again.", OPERATE
    ),
    "include": Listed("controls", "include", "Let excluded bundles be moved and split again.", OPERATE),
    "init": Listed("init", "init", "Write commented settings to start from.", OPERATE),
    "mode": Listed("controls", "mode", "Set the mode of every controller of the cluster.", OPERATE),
    "pause": Listed("controls", "pause", "Issue no more commands until `trimtab resume`.", OPERATE),
    "proposals": Listed("proposals", "app", "Propose plans, approve them, and see how far they are.", OPERATE),
    "release": Listed("controls", "release", "Let drained brokers get bundles again.", OPERATE),
    "resume": Listed("controls", "resume", "Issue commands again, and reset the circuit breaker.", OPERATE),
    "run": Listed("run", "run", "Run the controller until SIGTERM or Ctrl-C.", OPERATE),
    "serve": Listed("serve", "serve", "Serve the page and its REST API until SIGTERM or Ctrl-C.", OPERATE),
    "stop-all": Listed(
        "controls", "stop_all", "Pause, and make executors refuse every command that they have not started.", OPERATE
    ),
    "take-over": Listed(
        "handover", "take_over", "Switch off the brokers' own balancing, and let trimtab act.", OPERATE
    ),
    "token": Listed("token", "token", "Create a token that gives a person or program access to the page.", OPERATE),
    "audit": Listed("audit", "audit_moves", "Show what every move promised and what it achieved.", LOOK),
    "commands": Listed("commands", "app", "Print the commands in the command topic.", LOOK),
    "controls": Listed("controls", "controls", "Print who changed the controls: pauses, modes, plans.", LOOK),
    "doctor": Listed("doctor", "doctor", "Check the cluster, the log and the election before trimtab acts.", LOOK),
    "explain": Listed(
        "explain", "explain_subject", "Explain why a bundle was or was not moved; or a broker; or an interval.", LOOK
    ),
    "incident": Listed(
        "incident",
        "app",
        "Export everything around a time to one file; its decisions can be replayed anywhere.",
        LOOK,
    ),
    "journal": Listed("journal", "journal", "Browse the decisions: by bundle, broker, reason and time.", LOOK),
    "lookup": Listed("lookup", "lookup", "Find the hash, the bundle and the owner of a topic.", LOOK),
    "plan": Listed("plan", "plan", "Plan a balance, a drain or a restart; or how many brokers are needed.", LOOK),
    "show-plan": Listed("show_plan", "show_plan", "Print a plan file for the person who approves it.", LOOK),
    "status": Listed("status", "status", "Show the leader, the last decision and its commands; or one bundle.", LOOK),
    "bench": Listed("controller.bench.command", "app", "Measure how fast trimtab is on this machine.", TRY),
    "compare": Listed("compare", "compare_strategies", "Compare strategies on simulated scenarios.", TRY),
    "decide": Listed("decide", "decide", "Decide once on recorded load, and explain why.  Nothing is moved.", TRY),
    "demo": Listed("demo", "demo", "Watch the real controller balance a modelled or a real cluster.", TRY),
    "options": Listed(
        "options", "options", "Print every option of broker.conf and trimtab.toml that trimtab reads.", TRY
    ),
    "rebalance": Listed(
        "rebalance", "rebalance", "Simulate a rebalance protocol of Kafka Connect on a group described in a file.", TRY
    ),
    "record": Listed("record", "record_log", "Copy a log into a folder of Parquet files, to be replayed.", TRY),
    "replay": Listed("replay", "replay_log", "Replay a recording, and compare the decisions with its journal.", TRY),
    "simulate": Listed(
        "simulate", "simulate_scenario", "Run a scenario on a modelled cluster, and check what it expects.", TRY
    ),
    "strategies": Listed("strategies", "app", "Check a strategy, yours included, against the laws of strategies.", TRY),
    "ticks": Listed("ticks", "ticks", "Copy a recording and add the ticks that a replay needs.", TRY),
    "what-if": Listed("what_if", "what_if", "Replay a recording with other strategies: what would have happened.", TRY),
}


class CommandTable(PlainGroup):
    """Lists all commands, and imports only the one that is called: some import Spark, pandas and Kafka's client."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=listed.help, rich_help_panel=listed.group)
            for name, listed in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that *args* start with.  An unknown name is an error that suggests the nearest name."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, loaded(name) if command is not None and name is not None else None, rest


@cache
def loaded(name: str) -> Any:
    """The command *name* of the table, as Typer runs it."""
    listed = COMMANDS[name]
    module = listed.module if "." in listed.module else f"controller.cli.{listed.module}"
    with needs_checkout(f"trimtab {name}"):
        part = getattr(import_module(module), listed.name)
    group = typer.Typer(add_completion=False)
    group.callback()(lambda: None)
    if isinstance(part, typer.Typer):
        group.add_typer(part, name=name, cls=PlainGroup)
    else:
        group.command(name)(part)
    commands: Any = typer.main.get_command(group)
    command = commands.commands[name]
    add_server_option(command, name)
    return with_common_options(command, name)


app = typer.Typer(cls=CommandTable, no_args_is_help=True)


@app.callback()
def _trimtab(quiet: QuietBefore = False, debug: Debug = False, version: Version = False) -> None:
    """trimtab: an external load-balance controller for Apache Pulsar."""


def main() -> None:
    """Run the command in the arguments.  What it fails with is told on one line, and sets the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to fail
    failures.no_traces_from_threads()
    logs = service_log.first_line(sys.argv[1:])
    try:
        app(prog_name="trimtab")
    except Exception as error:
        raise SystemExit(failures.exit_code_of(error, logged=logs)) from None
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Typer would end with 1, as if the command had failed
            raise SystemExit(failures.exit_code_of(ended.__context__, logged=logs)) from None
        if logs:
            service_log.last_line(int(ended.code or 0))
        raise
