"""The answer of ``trimtab what-if``, as JSON and as tables."""

from dataclasses import replace
from functools import partial
from typing import Final

from rich.console import Console

from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.layout import Column, columns, print_fields, print_line, print_table
from controller.cli.texts.figures import print_legend
from controller.model.decision import Command
from controller.offline.counterfactual.answer import Counterfactual, Difference
from controller.offline.counterfactual.replay import ReplayedRun
from controller.offline.counterfactual.usage_model import DRIVERS, ResourceFit
from controller.wire.answers.what_if import (
    DifferenceAnswer,
    DifferentIntervalAnswer,
    NotReproducedAnswer,
    ReplayAnswer,
    ReplayedMoveAnswer,
    ReproductionAnswer,
    UsageFitAnswer,
    WhatIfAnswer,
)
from controller.wire.decision_texts import because
from controller.wire.readable import compact, counted, lasting, utc

#: Moves in a list of JSON at most.
_MOST_ROWS: Final = 10_000


def answer_of(cluster: str, counterfactual: Counterfactual, compared: tuple[str, str] | None) -> WhatIfAnswer:
    """What was *counterfactual* about the recording of *cluster*; *compared*: the names of the two that differ."""
    surveyed = counterfactual.surveyed
    difference = None
    if counterfactual.difference is not None and compared is not None:
        difference = _difference(counterfactual.difference, *compared)
    return WhatIfAnswer(
        cluster=cluster,
        first_interval=surveyed.intervals[0],
        last_interval=surveyed.intervals[-1],
        intervals=len(surveyed.intervals),
        decided=surveyed.decided,
        brokers=len(surveyed.brokers),
        bundles=surveyed.bundles,
        model=[_fit(fit) for fit in surveyed.model.fits],
        reproduction=None
        if counterfactual.reproduction is None
        else ReproductionAnswer.from_object(
            counterfactual.reproduction,
            missing=counterfactual.reproduction.missing[:_MOST_ROWS],
            only_replayed=len(counterfactual.reproduction.added),
            added=counterfactual.reproduction.added[:_MOST_ROWS],
        ),
        happened=dict(counterfactual.happened),
        strategies={
            name: _replay(run, dict(counterfactual.figures[name])) for name, run in counterfactual.runs.items()
        },
        difference=difference,
        notes=list(counterfactual.notes),
    )


def _fit(fit: ResourceFit) -> UsageFitAnswer:
    return UsageFitAnswer.from_object(
        fit,
        error=100 * fit.error,
        error_of_constant=100 * fit.error_of_constant,
        constant=100 * fit.constant,
        factors={driver: 100 * factor for driver, factor in zip(DRIVERS, fit.factors, strict=True)},
    )


def _replay(run: ReplayedRun, figures: dict[str, float]) -> ReplayAnswer:
    moves = [(command, decision.uncertain) for decision in run.decisions for command in decision.commands]
    return ReplayAnswer(
        figures=figures,
        decisions=len(run.decisions),
        uncertain=sum(decision.uncertain for decision in run.decisions),
        largest_error=float(run.errors.max(initial=0.0)),
        commands=len(moves),
        moves=[_move(command, uncertain=uncertain) for command, uncertain in moves[:_MOST_ROWS]],
    )


def _move(command: Command, *, uncertain: bool) -> ReplayedMoveAnswer:
    return ReplayedMoveAnswer.from_object(command, reason=because(command), uncertain=uncertain)


def _difference(difference: Difference, first: str, second: str) -> DifferenceAnswer:
    return DifferenceAnswer.from_object(
        difference,
        first=first,
        second=second,
        different_intervals=len(difference.different),
        listed=[
            DifferentIntervalAnswer.from_object(
                each,
                only_first=[_move(command, uncertain=each.uncertain) for command in each.only_first],
                only_second=[_move(command, uncertain=each.uncertain) for command in each.only_second],
            )
            for each in difference.different[:_MOST_ROWS]
        ],
    )


# ---- for people ----


def print_answer(out: Console, answer: WhatIfAnswer, limit: int) -> None:
    """Print *answer* with *limit* rows in each table of moves."""
    length = (answer.last_interval - answer.first_interval) / 1000
    size = f"{counted(answer.brokers, 'broker')}, {counted(answer.bundles, 'bundle')}"
    span = f"{utc(answer.first_interval)} to {utc(answer.last_interval)}"
    fields = [
        ("cluster", f"{answer.cluster}, {size}"),
        ("recorded", f"{counted(answer.intervals, 'interval')} in {lasting(length)}, {span}"),
    ]
    if answer.reproduction is not None:
        fields.append(("reproduced", _reproduced(answer.reproduction)))
    print_fields(out, fields)
    out.print()
    title = "How usage follows load; nine of ten held-out errors are below, percentage points"
    print_answers(out, _FITS, answer.model, title=title)
    _print_figures(out, answer)
    if answer.reproduction is not None:
        missing = answer.reproduction.missing
        print_answers(out, _NOT_REPRODUCED, missing, title="Recorded, and not reproduced", head=3, limit=limit)
    if answer.difference is not None:
        _print_difference(out, answer.difference, limit)
    for name, replay in answer.strategies.items() if answer.difference is None else ():
        title = f"{name} would have done"
        print_answers(out, _MOVES, replay.moves, title=title, head=3, limit=limit, total=replay.commands)
    for note in answer.notes:
        print_line(out, f"note: {note}")


def _reproduced(reproduction: ReproductionAnswer) -> str:
    more = f"; {reproduction.only_replayed} of the replay were not recorded" if reproduction.only_replayed else ""
    if reproduction.share is None:
        return f"nothing was moved or split{more}"
    return (
        f"{reproduction.reproduced} of {reproduction.recorded} recorded moves and splits with the recorded settings"
        f" ({100 * reproduction.share:.1f} %){more}"
    )


_FITS: Final = fields_of(
    UsageFitAnswer,
    "resource",
    Column(
        heading="of",
        prose=True,
        cell=lambda fit: fit.of if fit.brokers == 1 else f"{fit.brokers} brokers ({fit.of})",
    ),
    Column(heading="follows", cell=lambda fit: "load" if fit.error < fit.error_of_constant else "nothing known"),
    *("error", "error_of_constant"),
)
_NOT_REPRODUCED: Final = fields_of(NotReproducedAnswer, "interval", "action", "bundle", "source", "destination", "why")
_MOVES: Final = fields_of(
    ReplayedMoveAnswer, "interval", "action", "bundle", "source", "destination", "reason", "uncertain"
)


def _print_figures(out: Console, answer: WhatIfAnswer) -> None:
    names = list(answer.strategies)
    rows = [
        (figure, compact(value), *(compact(answer.strategies[name].figures[figure]) for name in names))
        for figure, value in answer.happened.items()
    ]
    for label, of in (("uncertain decisions", "uncertain"), ("largest error of usage", "largest_error")):
        rows.append((label, "", *(compact(float(getattr(answer.strategies[name], of))) for name in names)))
    header = columns("figure", "happened", *names, numbers=("happened", *names))
    title = "Smaller is better; usage is that of the fullest resource (CPU or bandwidth), in percent"
    print_table(out, header, rows, title=title)
    print_legend(out, answer.happened)
    out.print()


def _print_difference(out: Console, difference: DifferenceAnswer, limit: int) -> None:
    print_line(
        out,
        f"{difference.different_intervals} of {counted(difference.intervals, 'interval')} differ:"
        f" {difference.same} moves and splits are the same, {difference.only_first} are of {difference.first} alone,"
        f" {difference.only_second} of {difference.second} alone",
    )
    listed = [
        (side, move)
        for each in difference.listed
        for side, moves in ((difference.first, each.only_first), (difference.second, each.only_second))
        for move in moves
    ]
    header = [
        Column(heading="only", cell=lambda each: each[0]),
        *(replace(column, cell=partial(_of_move, column)) for column in _MOVES),
    ]
    print_answers(out, header, listed, head=4, limit=limit, total=difference.only_first + difference.only_second)


def _of_move(column: Column, listed: tuple[str, ReplayedMoveAnswer]) -> str:
    return column.cell(listed[1])
