"""``trimtab simulate INCIDENT.tar``: the recorded load of an incident is the world."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from controller.adapters.long_work import long_work
from controller.cli.shared.answers import show
from controller.cli.shared.layout import print_fields, print_line
from controller.cli.texts.judged import expectation_answers, print_judged, refuse_unmet
from controller.model.pulsar_version import PulsarVersion
from controller.offline.counterfactual.comparison import JudgedIncident, judge_recording
from controller.offline.counterfactual.opened import opened_recording
from controller.settings.expectation import Expectation, parse_expectation
from controller.wire.answers.simulate import SimulateAnswer
from controller.wire.readable import counted, utc

#: What the name of an incident ends in.
INCIDENT_SUFFIX: Final = ".tar"

Strategy: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Of an incident: a shedder, one with a placement, or a file of broker.conf options that ends in .conf.",
        show_default="the recorded settings",
    ),
]
Expect: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help='Of an incident: what must hold, as "moves <= 5"; can be repeated.', show_default=False),
]


def simulate_incident(
    path: Path, strategy: str, expected: Sequence[str], *, pulsar: PulsarVersion | None, as_json: bool
) -> None:
    """Run the incident in *path*, print the figures, and raise NotMetError where what is *expected* does not hold.

    *pulsar*: the version of Pulsar; None: the recorded one.
    """
    expectations = list(map(_expectation, expected))
    with opened_recording(path, None, pulsar=pulsar) as opened, long_work("simulating, intervals") as done:
        found = judge_recording(opened, strategy, expectations, done=done)
        about = opened.about
    assert about is not None, "an incident says what it is about"
    title = f"Incident around {utc(about.around)} in cluster {about.cluster}"
    answer = _answer(path.stem, title, found)
    show(answer, lambda out: _print(out, path.stem, title, strategy, found), as_json=as_json)
    refuse_unmet(path, found.judged)


def _expectation(text: str) -> Expectation:
    try:
        return parse_expectation(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expect") from error


def _print(out: Console, name: str, title: str, strategy: str, found: JudgedIncident) -> None:
    print_line(out, f"{name}: {title}", style="bold")
    size = ", ".join(
        counted(number, one)
        for number, one in ((found.intervals, "interval"), (found.brokers, "broker"), (found.bundles, "bundle"))
    )
    print_fields(out, [("strategy", strategy or "that of the recorded settings"), ("size", size)])
    out.print()
    print_judged(out, found.judged)


def _answer(name: str, title: str, found: JudgedIncident) -> SimulateAnswer:
    judged = found.judged
    return SimulateAnswer.from_object(
        judged,
        scenario=name,
        title=title,
        intervals=found.intervals,
        brokers=found.brokers,
        bundles=found.bundles,
        cure="",
        cure_settings=[],
        expectations=expectation_answers(judged),
        with_cure={},
    )
