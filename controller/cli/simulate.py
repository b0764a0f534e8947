"""``trimtab simulate``: run a scenario on a modelled cluster, and check what it expects."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from controller.adapters.long_work import long_work
from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.answers import show as show_answer
from controller.cli.shared.console import json_option
from controller.cli.shared.layout import print_fields, print_line
from controller.cli.shared.option_groups import ScenarioPulsarOption
from controller.cli.simulated_incident import INCIDENT_SUFFIX, Expect, Strategy, simulate_incident
from controller.cli.texts.judged import expectation_answers, print_judged, refuse_unmet
from controller.offline.scenarios.expectations import JudgedScenario, judge
from controller.offline.scenarios.shipped import scenario_path, shipped
from controller.settings.scenario import Scenario, as_version, read_scenario
from controller.settings.small_file import read_small_file
from controller.wire.answers.simulate import ListedScenarioAnswer, SimulateAnswer
from controller.wire.readable import counted, lasting

_Scenario: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="SCENARIO",
        help="A file (docs/simulate.md), an incident, or the name of a scenario that comes with trimtab: see --list.",
        show_default=False,
    ),
]
SeedCount: TypeAlias = Annotated[int, typer.Option(min=1, max=1000, help="Run it so many times, with one seed each.")]


def simulate_scenario(
    scenario: _Scenario = None,
    seeds: SeedCount = 3,
    strategy: Strategy = "",
    expect: Expect = None,
    pulsar: ScenarioPulsarOption = None,
    only_list: Annotated[bool, typer.Option("--list", help="Print the scenarios that come with trimtab.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the scenario's file, to copy it and change it.")] = False,
    as_json: Annotated[bool, json_option("answer.{simulate,simulate_list}", each="scenario")] = False,
) -> None:
    """Run a scenario on a modelled cluster with the real decisions, and print what held.

    A scenario with a cure runs twice with each seed: as it is, and with the cure.  An incident (`trimtab incident`) is
    a scenario, too: its recorded load is the world, and there is no chance in it, so it runs once.

    Exit codes: 0 all expectations are met; 1 one is not; 2 the file or an option is invalid.
    """
    if only_list is not (scenario is None):
        raise typer.BadParameter("give either a scenario or --list", param_hint="SCENARIO")
    if show and (scenario is None or scenario.endswith(INCIDENT_SUFFIX) or as_json):
        why = "prints the TOML file of a scenario; it goes with no --list, no --json and no incident"
        raise typer.BadParameter(why, param_hint="--show")
    if scenario is None:
        _print_list(as_json=as_json)
        return
    if scenario.endswith(INCIDENT_SUFFIX):
        simulate_incident(Path(scenario), strategy, expect or (), pulsar=pulsar, as_json=as_json)
        return
    if strategy or expect:
        why = f"are of incidents, whose files end in {INCIDENT_SUFFIX}; a scenario names its own"
        raise typer.BadParameter(why, param_hint="--strategy, --expect")
    path = scenario_path(scenario)
    described = as_version(read_scenario(path), pulsar)
    if show:
        typer.echo(read_small_file(path).decode(), nl=False)
        return
    runs = seeds * (1 if described.cure is None else 2)
    with long_work("simulating, intervals", runs * described.intervals) as done:
        judged = judge(described, seeds, done)
    answer = _answer(path.stem, described, judged)
    show_answer(answer, lambda out: _print(out, path.stem, described, judged), as_json=as_json)
    refuse_unmet(path, judged)


def _print_list(*, as_json: bool) -> None:
    found = [_listed(*each) for each in shipped()]
    header = fields_of(ListedScenarioAnswer, "scenario", "title", "source")
    show_answer(found, lambda out: print_answers(out, header, found), as_json=as_json)


def _print(out: Console, name: str, scenario: Scenario, judged: JudgedScenario) -> None:
    cure = scenario.cure
    print_line(out, f"{name}: {scenario.title}", style="bold")
    about = [("what happens", scenario.text), ("source", scenario.source), ("cure", "" if cure is None else cure.text)]
    # Lines to copy: the name of the field stands before the first of them alone.
    changes = [] if cure is None else [("its settings" if not n else "", line) for n, line in enumerate(cure.changes())]
    size = (
        f"{scenario.intervals} intervals of {lasting(scenario.period_seconds)},"
        f" {counted(scenario.broker_count, 'broker')}, {counted(_bundles(scenario), 'bundle')},"
        f" {counted(len(judged.seeds), 'seed')}"
    )
    print_fields(out, [*((key, value) for key, value in about if value), *changes, ("size", size)])
    out.print()
    print_judged(out, judged)


def _bundles(scenario: Scenario) -> int:
    return sum(space.bundles for space in scenario.namespaces)


def _listed(name: str, one: Scenario) -> ListedScenarioAnswer:
    return ListedScenarioAnswer.from_object(
        one,
        scenario=name,
        brokers=one.broker_count,
        bundles=_bundles(one),
        has_cure=one.cure is not None,
    )


def _answer(name: str, scenario: Scenario, judged: JudgedScenario) -> SimulateAnswer:
    return SimulateAnswer.from_object(
        judged,
        scenario=name,
        title=scenario.title,
        intervals=scenario.intervals,
        brokers=scenario.broker_count,
        bundles=_bundles(scenario),
        cure="" if scenario.cure is None else scenario.cure.text,
        cure_settings=[] if scenario.cure is None else scenario.cure.changes(),
        expectations=expectation_answers(judged),
    )
