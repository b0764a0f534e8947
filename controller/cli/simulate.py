"""``trimtab simulate``: run a scenario on a modelled cluster, and check what it expects."""

import statistics
from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.cli.common import console, json_option
from controller.cli.layout import columns, print_fields, print_line, print_table
from controller.model.errors import TrimtabError
from controller.offline.expectations import JudgedExpectation, JudgedScenario, judge
from controller.offline.scenarios import scenario_path, shipped
from controller.settings.scenario import Scenario, read_scenario
from controller.wire.answers.simulate import ExpectationAnswer, ListedScenarioAnswer, SimulateAnswer
from controller.wire.readable import counted, lasting

#: Significant digits of a figure.
_DIGITS: Final = 4


class NotMetError(TrimtabError):
    """An expectation of the scenario is not met."""


_Scenario: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="SCENARIO",
        help="A file (docs/simulate.md), or the name of a scenario that comes with trimtab: see --list.",
        show_default=False,
    ),
]
SeedCount: TypeAlias = Annotated[int, typer.Option(min=1, max=1000, help="Run it so many times, with one seed each.")]


def simulate_scenario(
    scenario: _Scenario = None,
    seeds: SeedCount = 3,
    only_list: Annotated[bool, typer.Option("--list", help="Print the scenarios that come with trimtab.")] = False,
    as_json: Annotated[bool, json_option("answer.{simulate,simulate_list}", each="scenario")] = False,
) -> None:
    """Run a scenario on a modelled cluster with the real decisions, and print what held.

    A scenario with a cure runs twice with each seed: as it is, and with the cure.

    Exit codes: 0 all expectations are met; 1 one is not; 2 the file or an option is invalid.
    """
    if only_list is not (scenario is None):
        raise typer.BadParameter("give either a scenario or --list", param_hint="SCENARIO")
    if scenario is None:
        _print_list(as_json=as_json)
        return
    path = scenario_path(scenario)
    described = read_scenario(path)
    runs = seeds * (1 if described.cure is None else 2)
    with long_work("simulating, intervals", runs * described.intervals) as done:
        judged = judge(described, seeds, done)
    if as_json:
        typer.echo(_answer(path.stem, described, judged).as_line())
    else:
        _print(path.stem, described, judged)
    unmet = [each.expectation.text for each in judged.expectations if not each.held]
    if unmet:
        raise NotMetError(f"{path}: {len(unmet)} of {_expectations(judged)} not met: {'; '.join(unmet)}")


def _print_list(*, as_json: bool) -> None:
    found = list(shipped())
    if as_json:
        for name, one in found:
            typer.echo(_listed(name, one).as_line())
        return
    header = columns("scenario", "title", "source", prose=("title", "source"))
    print_table(console(), header, [(name, one.title, one.source) for name, one in found])


def _print(name: str, scenario: Scenario, judged: JudgedScenario) -> None:
    out, cure = console(), scenario.cure
    print_line(out, f"{name}: {scenario.title}", style="bold")
    about = [("what happens", scenario.text), ("source", scenario.source), ("cure", "" if cure is None else cure.text)]
    size = (
        f"{scenario.intervals} intervals of {lasting(scenario.period_seconds)},"
        f" {counted(scenario.broker_count, 'broker')}, {counted(_bundles(scenario), 'bundle')},"
        f" {counted(len(judged.seeds), 'seed')}"
    )
    print_fields(out, [*((key, value) for key, value in about if value), ("size", size)])
    out.print()
    runs = ("without cure", "with cure") if cure is not None else ("result",)
    rows = [(each.expectation.text, *_results(each), "yes" if each.held else "NO") for each in judged.expectations]
    if rows:
        header = columns("expectation", *runs, "met", prose=("expectation", *runs))
        print_table(out, header, rows)
        out.print()
    figures = judged.without_cure
    means = [(judged.without_cure, judged.with_cure)[number] for number in range(len(runs))]
    shown = [(figure, *(_number(statistics.fmean(of[figure])) for of in means)) for figure in figures]
    title = "Means over time and seeds" if len(judged.seeds) > 1 else "Means over time"
    print_table(out, columns("figure", *runs, numbers=runs), shown, title=title)
    out.print()
    met = sum(each.held for each in judged.expectations)
    print_line(out, f"{met} of {_expectations(judged)} met")


def _results(each: JudgedExpectation) -> Sequence[str]:
    parts = [(each.without_cure, each.held_without)]
    if each.with_cure:
        parts.append((each.with_cure, each.held_with))
    return [_result(values, held) for values, held in parts]


def _result(values: Sequence[float], held: int) -> str:
    """Whether an expectation holds in runs with these *values* of its figure."""
    low, high = _number(min(values)), _number(max(values))
    seen = low if low == high else f"{low} to {high}"
    if held == len(values):
        return f"holds: {seen}"
    return f"fails: {seen}" if held == 0 else f"holds in {held} of {len(values)}: {seen}"


def _number(value: float) -> str:
    """A figure, as tables show it."""
    large = abs(value) >= 10**_DIGITS
    return f"{value:,.0f}" if large or value == int(value) else f"{value:.{_DIGITS}g}"


def _expectations(judged: JudgedScenario) -> str:
    return counted(len(judged.expectations), "expectation")


def _bundles(scenario: Scenario) -> int:
    return sum(space.bundles for space in scenario.namespaces)


def _listed(name: str, one: Scenario) -> ListedScenarioAnswer:
    return ListedScenarioAnswer(
        scenario=name,
        title=one.title,
        source=one.source,
        intervals=one.intervals,
        brokers=one.broker_count,
        bundles=_bundles(one),
        has_cure=one.cure is not None,
    )


def _answer(name: str, scenario: Scenario, judged: JudgedScenario) -> SimulateAnswer:
    return SimulateAnswer(
        scenario=name,
        title=scenario.title,
        seeds=list(judged.seeds),
        intervals=scenario.intervals,
        brokers=scenario.broker_count,
        bundles=_bundles(scenario),
        held=judged.held,
        cure="" if scenario.cure is None else scenario.cure.text,
        expectations=[
            ExpectationAnswer(
                text=each.expectation.text,
                of_cure=each.of_cure,
                held=each.held,
                held_without_cure=each.held_without,
                held_with_cure=each.held_with,
                without_cure=list(each.without_cure),
                with_cure=list(each.with_cure),
            )
            for each in judged.expectations
        ],
        without_cure={figure: list(values) for figure, values in judged.without_cure.items()},
        with_cure={figure: list(values) for figure, values in judged.with_cure.items()},
    )
