"""``trimtab strategies``: check a strategy, also one that a user wrote, against the laws of strategies."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from controller.adapters.long_work import long_work
from controller.cli.shared.answers import show
from controller.cli.shared.console import json_option
from controller.cli.shared.layout import print_line
from controller.settings.broker_conf import read_broker_conf
from controller.settings.strategy_kinds import kind_of
from controller.wire.answers.offline import CheckAnswer, LawAnswer, StrategyOptionAnswer
from controller.wire.readable import counted

app = typer.Typer(help="Check strategies, yours included.", no_args_is_help=True)

_BROKEN: Final = 1


@app.callback()
def strategies() -> None:
    """Check strategies, yours included."""


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
    as_json: Annotated[bool, json_option("answer.strategies_check")] = False,
) -> None:
    """Search small clusters for one on which a strategy breaks a law that all strategies must keep.

    Needs Hypothesis: pip install 'trimtab[laws]'.

    Exit codes: 0 all laws kept on all examples; 1 a law is broken; 2 the strategy cannot be loaded, or Hypothesis is
    missing.
    """
    from controller.laws import broken_laws, laws_of  # here, because Hypothesis may be missing

    kind = kind_of(name)
    strategy = kind.choose(name, read_broker_conf(broker_conf or Path(os.devnull), os.environ))
    laws = laws_of(strategy)
    with long_work("trying laws", len(laws)) as done:
        broken = {one.sentence: str(one) for one in broken_laws(strategy, examples=examples, done=done)}
    answer = CheckAnswer(
        strategy=name,
        kind=kind.what,
        setting=kind.key,
        options=_options(strategy),
        examples=examples,
        kept=not broken,
        laws=[
            LawAnswer(law=law.sentence, kept=law.sentence not in broken, broken=broken.get(law.sentence, ""))
            for law in laws
        ],
    )
    show(answer, lambda out: _print(out, answer), as_json=as_json)
    if broken:
        raise typer.Exit(_BROKEN)


def _print(out: Console, answer: CheckAnswer) -> None:
    print_line(out, f"{answer.strategy}: {answer.kind} ({answer.setting})")
    for option in answer.options:
        unit = f" {option.unit}" if option.unit else ""
        print_line(out, f"{option.key}={option.value}{unit}: {option.meaning}", first="  ", rest="    ")
    for law in answer.laws:
        if law.kept:
            print_line(out, law.law, first="kept   ", rest="       ")
        else:
            out.print(f"BROKEN {law.broken}", markup=False, soft_wrap=True)
    satisfied = sum(law.kept for law in answer.laws)
    examples = counted(answer.examples, "example")
    print_line(out, f"{satisfied} of {counted(len(answer.laws), 'law')} kept, each on up to {examples}")


def _text(value: Any) -> str:
    """As broker.conf has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(strategy: Any) -> list[StrategyOptionAnswer]:
    """Each option with its value, unit and meaning."""
    return [
        StrategyOptionAnswer(
            key=field.metadata["broker_conf"],
            value=_text(getattr(strategy, field.name)),
            unit=field.metadata["unit"],
            meaning=field.metadata["meaning"],
        )
        for field in fields(strategy)
        if "broker_conf" in field.metadata
    ]
