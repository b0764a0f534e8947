"""``trimtab strategies``: check a strategy, also one that a user wrote, against the laws of strategies."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from controller.settings.broker_conf import read_broker_conf
from controller.settings.strategy_kinds import kind_of

app = typer.Typer(help="Check strategies, also those that you wrote.", no_args_is_help=True)

_BROKEN: Final = 1


@app.callback()
def strategies() -> None:
    """Check strategies, also those that you wrote."""


@app.command()
def check(
    name: Annotated[
        str,
        typer.Argument(
            help="A strategy as in broker.conf: the full Python name of a class, package.module.Class, or the name of"
            " one of trimtab's strategies.",
            show_default=False,
        ),
    ],
    broker_conf: Annotated[
        Path | None,
        typer.Option(help="The options of the strategy.", exists=True, dir_okay=False, show_default="its defaults"),
    ] = None,
    examples: Annotated[int, typer.Option(min=1, max=100_000, help="Clusters to try for each law.")] = 100,
) -> None:
    """Search small clusters for one on which a strategy breaks a law that all strategies must keep.

    Needs Hypothesis: pip install hypothesis.

    Exit codes: 0 all laws kept on all examples; 1 a law is broken; 2 the strategy cannot be loaded, or Hypothesis is
    missing.
    """
    from controller.laws import broken_laws, laws_of  # here, because Hypothesis may be missing

    kind = kind_of(name)
    strategy = kind.choose(name, read_broker_conf(broker_conf or Path(os.devnull), os.environ))
    typer.echo(f"{name}: {kind.what} ({kind.key})")
    for option in _options(strategy):
        typer.echo(f"  {option}")
    broken = {one.sentence: one for one in broken_laws(strategy, examples=examples)}
    laws = laws_of(strategy)
    for law in laws:
        typer.echo(f"BROKEN {broken[law.sentence]}" if law.sentence in broken else f"kept   {law.sentence}")
    typer.echo(f"{len(laws) - len(broken)} of {len(laws)} laws kept, each on up to {examples} examples")
    if broken:
        raise typer.Exit(_BROKEN)


def _options(strategy: Any) -> list[str]:
    """Each option with its value, unit and meaning."""
    return [
        f"{field.metadata['broker_conf']}={getattr(strategy, field.name)}"
        f"{' ' + field.metadata['unit'] if field.metadata['unit'] else ''}: {field.metadata['meaning']}"
        for field in fields(strategy)
        if "broker_conf" in field.metadata
    ]
