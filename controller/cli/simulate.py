"""``trimtab simulate``: run a scenario on a modelled cluster, and check what it expects."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from controller.adapters.long_work import long_work
from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.answers import show as show_answer
from controller.cli.shared.console import json_option
from controller.cli.shared.layout import print_fields, print_line
from controller.cli.shared.option_groups import ScenarioPulsarOption
from controller.cli.texts.judged import expectation_answers, print_judged, refuse_unmet
from controller.model.pulsar_version import PulsarVersion
from controller.offline.counterfactual.comparison import judge_recording
from controller.offline.counterfactual.replay_source import open_source
from controller.offline.scenarios.expectations import JudgedScenario, judge
from controller.offline.scenarios.shipped import scenario_path, shipped
from controller.settings.expectation import Expectation, parse_expectation
from controller.settings.scenario import Scenario, as_version, read_scenario
from controller.settings.small_file import read_small_file
from controller.wire.answers.simulate import ListedScenarioAnswer, SimulateAnswer
from controller.wire.readable import counted, lasting, utc

#: What the name of an incident ends in.
INCIDENT_SUFFIX: Final = ".tar"

_Strategy: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Of an incident: a shedder, one with a placement, or a file of broker.conf options that ends in .conf.",
        show_default="the recorded settings",
    ),
]
_Expect: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help='Of an incident: what must hold, as "moves <= 5"; can be repeated.', show_default=False),
]
_Scenario: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="SCENARIO",
        help="A file (docs/simulate.md), an incident, or the name of a scenario that comes with trimtab: see --list.",
        show_default=False,
    ),
]
SeedCount: TypeAlias = Annotated[
    int, typer.Option(min=1, max=1000, help="Run it this many times, each with its own seed.")
]


def simulate_scenario(
    scenario: _Scenario = None,
    seeds: SeedCount = 3,
    strategy: _Strategy = "",
    expect: _Expect = None,
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
        why = "prints the TOML file of a scenario; it cannot be combined with --list, --json or an incident"
        raise typer.BadParameter(why, param_hint="--show")
    if scenario is None:
        _print_list(as_json=as_json)
        return
    if scenario.endswith(INCIDENT_SUFFIX):
        _simulate_incident(Path(scenario), strategy, expect or (), pulsar=pulsar, as_json=as_json)
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
    _show_scenario(path, described, judged, as_json=as_json)


def _show_scenario(path: Path, described: Scenario, judged: JudgedScenario, *, as_json: bool) -> None:
    cure = described.cure
    answer = SimulateAnswer.from_object(
        judged,
        scenario=path.stem,
        title=described.title,
        intervals=described.intervals,
        brokers=described.broker_count,
        bundles=_bundles(described),
        cure="" if cure is None else cure.text,
        cure_settings=[] if cure is None else cure.changes(),
        expectations=expectation_answers(judged),
    )
    lasting_each = f" of {lasting(described.period_seconds)}"
    about = [("what happens", described.text), ("source", described.source), ("cure", answer.cure)]
    # Lines to copy: the name of the field stands before the first of them alone.
    changes = [("its settings" if not n else "", line) for n, line in enumerate(answer.cure_settings)]
    size = f"{_size(answer, lasting_each)}, {counted(len(judged.seeds), 'seed')}"
    fields = [*((key, value) for key, value in about if value), *changes, ("size", size)]
    _show_judged(path, answer, fields, judged, as_json=as_json)


def _simulate_incident(
    path: Path, strategy: str, expected: Sequence[str], *, pulsar: PulsarVersion | None, as_json: bool
) -> None:
    """Run the incident in *path*; *pulsar*: the version of Pulsar, None: the recorded one."""
    expectations = list(map(_expectation, expected))
    with open_source(path, None, pulsar=pulsar) as recording, long_work("simulating, intervals") as done:
        judged = judge_recording(recording, strategy, expectations, done=done)
        about = recording.about
    assert about is not None, "an incident says what it is about"
    answer = SimulateAnswer.from_object(
        judged,
        scenario=path.stem,
        title=f"Incident around {utc(about.around)} in cluster {about.cluster}",
        seeds=judged.judged.seeds,
        held=judged.judged.held,
        cure="",
        cure_settings=[],
        expectations=expectation_answers(judged.judged),
        without_cure=judged.judged.without_cure,
        with_cure={},
    )
    fields = [("strategy", strategy or "that of the recorded settings"), ("size", _size(answer))]
    _show_judged(path, answer, fields, judged.judged, as_json=as_json)


def _expectation(text: str) -> Expectation:
    try:
        return parse_expectation(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expect") from error


def _show_judged(
    path: Path, answer: SimulateAnswer, fields: Sequence[tuple[str, str]], judged: JudgedScenario, *, as_json: bool
) -> None:
    """Print *answer*, for people with these *fields*; raise NotMetError where an expectation is not met."""

    def printed(out: Console) -> None:
        print_line(out, f"{answer.scenario}: {answer.title}", style="bold")
        print_fields(out, fields)
        out.print()
        print_judged(out, judged)

    show_answer(answer, printed, as_json=as_json)
    refuse_unmet(path, judged)


def _size(answer: SimulateAnswer, of: str = "") -> str:
    intervals = f"{counted(answer.intervals, 'interval')}{of}"
    return f"{intervals}, {counted(answer.brokers, 'broker')}, {counted(answer.bundles, 'bundle')}"


def _print_list(*, as_json: bool) -> None:
    rows = [_listed(*each) for each in shipped()]
    header = fields_of(ListedScenarioAnswer, "scenario", "title", "source")
    show_answer(rows, lambda out: print_answers(out, header, rows), as_json=as_json)


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
