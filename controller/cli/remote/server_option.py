"""The option ``--server`` and what goes with it, for each command in the table here.

To have another command ask a server: an endpoint in controller.web.rest.table, a function in commands.py, a line here.
"""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer

from controller.cli.remote.rest_server import ServerAddress
from controller.model.errors import SettingsError
from controller.settings.redaction import SECRETS, read_secret

#: Holds a token, where no --token-file is given.
TOKEN_VARIABLE: Final = "TRIMTAB_TOKEN"


class RemoteCommand(NamedTuple):
    """A command that a server can answer."""

    #: The function of controller.cli.remote.commands.
    function: str
    #: The parameters of the command that it takes, too; others go with the local command alone.
    takes: tuple[str, ...]
    #: Its file in this folder.
    module: str = "commands"


def _change(function: str, *takes: str) -> RemoteCommand:
    """A command that changes something."""
    return RemoteCommand(function, takes, "changes")


#: By the words that call them.
REMOTE_COMMANDS: Final[Mapping[str, RemoteCommand]] = {
    "apply": _change("apply_proposal", "proposal", "reason"),
    "audit": RemoteCommand("audit", ("since", "until", "bundle", "namespace", "most", "as_json")),
    "controls": RemoteCommand("controls", ("limit", "as_json")),
    "doctor": RemoteCommand("doctor", ("strict", "as_json")),
    "exclude": _change("exclude", "names", "reason", "as_json"),
    "explain": RemoteCommand("explain", ("subject", "at", "flip", "show_all", "as_json")),
    "incident make": RemoteCommand("incident_make", ("around", "minutes", "output", "anonymise", "as_json")),
    "include": _change("include", "names", "reason", "as_json"),
    "journal": RemoteCommand("journal", ("bundle", "broker", "reason", "since", "until", "issued", "limit", "as_json")),
    "mode": _change("mode", "value", "reason", "as_json"),
    "pause": _change("pause", "reason", "ends_after", "as_json"),
    "proposals approve": _change("approve_proposal", "proposal", "reason", "as_json"),
    "proposals list": _change("list_proposals", "every", "as_json"),
    "proposals make": _change("make_proposal", "file", "reason", "as_json"),
    "proposals pause": _change("pause_proposal", "proposal", "reason", "as_json"),
    "proposals refresh": _change("refresh_proposal", "proposal", "reason", "as_json"),
    "proposals reject": _change("reject_proposal", "proposal", "reason", "as_json"),
    "proposals resume": _change("resume_proposal", "proposal", "reason", "as_json"),
    "proposals show": _change("show_proposal", "proposal", "as_json"),
    "proposals stop": _change("stop_proposal", "proposal", "reason", "as_json"),
    "release": _change("release", "brokers", "reason", "as_json"),
    "resume": _change("resume", "reason", "of", "every", "as_json"),
    "status": RemoteCommand("status", ("bundle", "as_json")),
    "stop-all": _change("stop_all", "reason", "as_json"),
    "what-if": RemoteCommand("what_if", ("strategy", "since", "until", "most", "as_json")),
}


def _only_options(
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask this server of the page (`trimtab serve`); no settings are needed: docs/rest.md.",
            show_default=False,
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=f"With --server: the file with your token.  Default: the variable {TOKEN_VARIABLE}.",
            show_default=False,
        ),
    ] = None,
    server_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --server: the authorities to trust, PEM.  Default: the system's.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --server: which of its clusters.  Default: its first.", show_default=False
        ),
    ] = None,
) -> None:
    """Holds the options."""


def add_server_option(command: Any, path: str) -> None:
    """Have *command*, which the words *path* call, and those below it, ask a server where ``--server`` is given."""
    for name, below in getattr(command, "commands", {}).items():
        add_server_option(below, f"{path} {name}")
    remote = REMOTE_COMMANDS.get(path)
    if remote is None:
        return
    holder = typer.Typer(add_completion=False)
    holder.command()(_only_options)
    own: Any = typer.main.get_command(holder)
    command.params.extend(own.params)
    locally = command.invoke

    def invoke(ctx: Any) -> Any:
        values = {each.name: ctx.params.pop(each.name) for each in own.params}
        if values["server"] is not None:
            _refuse_others(ctx, (*remote.takes, *values))
            function = getattr(import_module(f"controller.cli.remote.{remote.module}"), remote.function)
            return function(_address(values), **{name: ctx.params[name] for name in remote.takes})
        for each in own.params:
            if values[each.name] is not None:
                raise typer.BadParameter("it can only be used with --server", param_hint=each.opts[0])
        return locally(ctx)

    command.invoke = invoke


def _refuse_others(ctx: Any, takes: Sequence[str]) -> None:
    for each in ctx.command.params:
        if each.expose_value and each.name not in takes and ctx.get_parameter_source(each.name).name == "COMMANDLINE":
            name = each.opts[0] if each.opts[0].startswith("-") else each.name.upper()
            raise typer.BadParameter("it cannot be used with --server, which has no such query", param_hint=name)


def _address(values: Mapping[str, str | None]) -> ServerAddress:
    return ServerAddress(
        url=values["server"] or "",
        token=_token(values["token_file"]),
        trust_certs=values["server_ca"] or "",
        cluster=values["cluster"] or "",
    )


def _token(file: str | None) -> str:
    """The token; "" where none is given.  SettingsError where it cannot be one."""
    if file is not None:
        source, token = "--token-file", read_secret(file, "--token-file")
    else:
        source, token = TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE, "").strip()
        if token:
            SECRETS.register(TOKEN_VARIABLE, token)
    if not all("!" <= each <= "~" for each in token):
        raise SettingsError(f"{source}: it does not hold exactly one token")
    return token
