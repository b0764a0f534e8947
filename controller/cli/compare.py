"""``trimtab compare``: strategies on the same simulated scenarios, with the same seeds."""

from collections.abc import Mapping
from dataclasses import asdict
from string import ascii_uppercase
from typing import Annotated, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.cli.common import console, json_option
from controller.cli.layout import columns, print_fields, print_line, print_table
from controller.cli.simulate import SeedCount, number_text
from controller.offline.compare import Comparison, Duel, FigureOverSeeds, compare
from controller.offline.scenarios import scenario_path, strategy_options
from controller.settings.scenario import Scenario, read_scenario
from controller.strategies.catalogue import SHEDDERS
from controller.wire.answers.simulate import CompareAnswer, ComparedFigureAnswer, DuelAnswer
from controller.wire.readable import counted

#: A result as uneven as this, or more so, is told as sure: it comes by chance in 5 of 100 comparisons.
_SURE = 0.05

_Scenarios: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO...",
        help="Files (docs/simulate.md), or names of scenarios in conf/scenarios/simulated.  They run without their"
        " cure.",
        show_default=False,
    ),
]
_Strategies: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help=f"What to compare: {', '.join(SHEDDERS)}; one of these with a placement, as in ThresholdShedder+"
        "LeastResourceUsageWithWeight; or a file of broker.conf options that ends in .conf.",
        show_default=False,
    ),
]


def compare_strategies(
    scenarios: _Scenarios,
    strategies: _Strategies,
    seeds: SeedCount = 10,
    as_json: Annotated[bool, json_option("answer.compare", each="scenario")] = False,
) -> None:
    """Run scenarios with several strategies, and print each figure with its interval, and who wins how surely.

    All strategies get the same demand: they are compared seed by seed.

    Exit codes: 0 compared; 2 a file or an option is invalid.
    """
    names = list(dict.fromkeys(each.strip() for each in strategies.split(",") if each.strip()))
    if not 2 <= len(names) <= len(ascii_uppercase):
        raise typer.BadParameter(f"give 2 to {len(ascii_uppercase)} strategies", param_hint="--strategies")
    options = {name: strategy_options(name) for name in names}
    paths = list(map(scenario_path, scenarios))
    described = [read_scenario(path) for path in paths]
    for number, (path, scenario) in enumerate(zip(paths, described, strict=True)):
        with long_work(f"simulating {path.stem}, runs", seeds * len(options)) as done:
            compared = compare(scenario, options, seeds, done)
        if as_json:
            typer.echo(_answer(path.stem, scenario, compared).as_line())
            continue
        if number:
            console().print()
        _print(path.stem, scenario, compared)


def _print(name: str, scenario: Scenario, compared: Comparison) -> None:
    out = console()
    letters = dict(zip(compared.figures, ascii_uppercase, strict=False))
    print_line(out, f"{name}: {scenario.title}", style="bold")
    print_fields(out, [(letter, strategy) for strategy, letter in letters.items()])
    out.print()
    rows = [
        (figure, *(_with_margin(of[figure]) for of in compared.figures.values()))
        for figure in next(iter(compared.figures.values()))
    ]
    seeds = counted(len(compared.seeds), "seed")
    print_table(
        out,
        columns("figure", *letters.values(), numbers=tuple(letters.values())),
        rows,
        title=f"Means over {scenario.intervals} intervals and {seeds}, with 95 % intervals; the smaller, the better",
    )
    out.print()
    pairs = list(dict.fromkeys((duel.first, duel.second) for duel in compared.duels))
    header = columns("figure", *(f"{letters[first]} : {letters[second]}" for first, second in pairs))
    by_figure: dict[str, list[str]] = {}
    for duel in compared.duels:
        by_figure.setdefault(duel.figure, []).append(_duel_text(duel, letters))
    title = f"Seeds won, and the probability of so uneven a result by chance; * {_SURE:g} or less"
    print_table(out, header, [(figure, *cells) for figure, cells in by_figure.items()], title=title)


def _with_margin(figure: FigureOverSeeds) -> str:
    return number_text(figure.mean) + (f" ±{figure.margin:.2g}" if figure.margin else "")


def _duel_text(duel: Duel, letters: Mapping[str, str]) -> str:
    if not duel.winner:
        return "equal" if not duel.first_wins else f"{duel.first_wins}:{duel.second_wins}"
    won, lost = max(duel.first_wins, duel.second_wins), min(duel.first_wins, duel.second_wins)
    sure = "*" if duel.probability <= _SURE else ""
    return f"{letters[duel.winner]} {won}:{lost} {duel.probability:.2g}{sure}"


def _answer(name: str, scenario: Scenario, compared: Comparison) -> CompareAnswer:
    return CompareAnswer(
        scenario=name,
        title=scenario.title,
        seeds=list(compared.seeds),
        intervals=scenario.intervals,
        figures={
            strategy: {
                figure: ComparedFigureAnswer(mean=one.mean, margin=one.margin, values=list(one.values))
                for figure, one in of.items()
            }
            for strategy, of in compared.figures.items()
        },
        duels=[DuelAnswer(**asdict(duel), winner=duel.winner, probability=duel.probability) for duel in compared.duels],
    )
