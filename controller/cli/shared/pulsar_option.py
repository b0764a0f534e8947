"""The option --pulsar: the version of Pulsar that commands on recorded or modelled load decide as."""

from typing import Annotated, Final, TypeAlias

import typer

from controller.model.pulsar_version import PulsarVersion, known_version

_HELP: Final = "Decide as this version of Pulsar, as 5.0 or 5.0.1: its defaults, and what its classes do."


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
        show_default="that of the brokers, as far as the load says it; else 4.0",
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
