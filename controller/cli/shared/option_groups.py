"""Options that belong together: a command takes a dataclass, whose fields are the options."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_type_hints

import typer

from controller.cli.shared.arguments import FORMS
from controller.cli.shared.console import LONGEST_PERIOD
from controller.model.pulsar_version import PulsarVersion, known_version

_HELP: Final = "Decide as this version of Pulsar, such as 5.0 or 5.0.1: its defaults, and what its classes do."


def version_of(text: str | PulsarVersion) -> PulsarVersion:
    """The version that a person wrote, or typer.BadParameter."""
    try:
        return text if isinstance(text, PulsarVersion) else known_version(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from error


PulsarOption: TypeAlias = Annotated[
    PulsarVersion | None,
    typer.Option(
        "--pulsar",
        metavar="VERSION",
        parser=version_of,
        help=_HELP,
        show_default="that of the brokers if the load contains it, else 4.0",
    ),
]
ScenarioPulsarOption: TypeAlias = Annotated[
    PulsarVersion | None,
    typer.Option(
        "--pulsar",
        metavar="VERSION",
        parser=version_of,
        help=_HELP,
        show_default="what the scenario or the recording says",
    ),
]


_Command = TypeVar("_Command", bound=Callable[..., Any])


def grouped(command: _Command) -> _Command:
    """*command* with the fields of a dataclass in place of each parameter that is one, as Typer reads it."""
    groups: dict[str, Any] = {name: hint for name, hint in get_type_hints(command).items() if is_dataclass(hint)}
    parameters = list[Parameter]()
    for name, parameter in signature(command, eval_str=True).parameters.items():
        parameters += _expanded(groups[name]) if name in groups else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]

    @wraps(command)
    def with_groups(**arguments: Any) -> Any:
        for name, group in groups.items():
            arguments[name] = group(
                **{each.name: arguments.pop(each.name) for each in fields(group) if each.name in arguments}
            )
        return command(**arguments)

    with_groups.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_groups  # type: ignore[return-value]  # it takes the same options


def _expanded(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]


@dataclass(frozen=True, kw_only=True)
class LoadSource:
    """The load that a plan or an explanation is about: files, a recording, or the live log."""

    load: Annotated[
        list[Path] | None,
        typer.Option(
            help="Take this load, as `trimtab decide` reads it; can be repeated.  No log is read.",
            exists=True,
            show_default="the live log of --conf",
        ),
    ] = None
    recording: Annotated[
        Path | None,
        typer.Option(
            help="Take this recording (`trimtab record`), with the settings in it.  No log is read.",
            show_default=False,
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(help=f"As of the last decision up to this time: {FORMS}.", show_default="the newest decision"),
    ] = None
    broker_conf: Annotated[
        Path | None,
        typer.Option(
            help="With --load: the options, by Pulsar's names.",
            exists=True,
            dir_okay=False,
            show_default="Pulsar's defaults",
        ),
    ] = None
    pulsar: PulsarOption = None
    period_seconds: Annotated[
        int, typer.Option(min=1, max=LONGEST_PERIOD, help="With --load: length of an interval.")
    ] = 60
    intervals: Annotated[
        int,
        typer.Option(
            min=0,
            max=10_000,
            help="Without --load: read this many intervals of the log before the decision, for averages.",
        ),
    ] = 30

    def refuse_misfits(self, *, of_load: dict[str, object]) -> None:
        """Raise typer.BadParameter for options that do not go together; *of_load*: others that need --load."""
        if self.recording is not None and self.load:
            raise typer.BadParameter("give one of the two", param_hint="--recording, --load")
        of_load = {"--broker-conf": self.broker_conf, "--pulsar": self.pulsar, **of_load}
        if any(value not in (None, "") for value in of_load.values()) and not self.load:
            why = "need --load: of a live cluster, --conf names them; a recording has its own"
            raise typer.BadParameter(why, param_hint=", ".join(sorted(of_load)))
