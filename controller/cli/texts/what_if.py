"""The answer of ``trimtab what-if``, as JSON and as tables."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from controller.cli.shared.layout import columns, print_fields, print_line, print_table
from controller.cli.texts.legend import print_legend
from controller.cli.texts.numbers import compact
from controller.model.decision import Command
from controller.offline.counterfactual.answer import Counterfactual
from controller.offline.counterfactual.differences import Difference
from controller.offline.counterfactual.replay import ReplayedRun
from controller.offline.counterfactual.reproduction import NotReproduced, Reproduction
from controller.offline.counterfactual.usage_model import DRIVERS, ResourceFit
from controller.status.texts import because
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
from controller.wire.readable import counted, lasting, utc

#: Moves in a list of JSON at most.
_MOST: Final = 10_000


def answer_of(cluster: str, found: Counterfactual, compared: tuple[str, str] | None) -> WhatIfAnswer:
    """What was *found* about the recording of *cluster*; *compared*: the names of the two that differ."""
    surveyed = found.surveyed
    difference = None
    if found.difference is not None and compared is not None:
        difference = _difference(found.difference, *compared)
    return WhatIfAnswer(
        cluster=cluster,
        first_interval=surveyed.intervals[0],
        last_interval=surveyed.intervals[-1],
        intervals=len(surveyed.intervals),
        decided=surveyed.decided,
        brokers=len(surveyed.brokers),
        bundles=surveyed.bundles,
        model=[_fit(fit) for fit in surveyed.model.fits],
        reproduction=None if found.reproduction is None else _reproduction(found.reproduction),
        happened=dict(found.happened),
        strategies={name: _replay(run, dict(found.figures[name])) for name, run in found.runs.items()},
        difference=difference,
        notes=list(found.notes),
    )


def _fit(fit: ResourceFit) -> UsageFitAnswer:
    return UsageFitAnswer(
        of=fit.of,
        brokers=fit.brokers,
        resource=fit.resource,
        error=100 * fit.error,
        error_of_constant=100 * fit.error_of_constant,
        samples=fit.samples,
        constant=100 * fit.constant,
        factors={driver: 100 * factor for driver, factor in zip(DRIVERS, fit.factors, strict=True)},
    )


def _reproduction(found: Reproduction) -> ReproductionAnswer:
    return ReproductionAnswer(
        recorded=found.recorded,
        reproduced=found.reproduced,
        share=found.share,
        missing=[_not_reproduced(each) for each in found.missing[:_MOST]],
        only_replayed=len(found.added),
        added=[_not_reproduced(each) for each in found.added[:_MOST]],
    )


def _not_reproduced(each: NotReproduced) -> NotReproducedAnswer:
    return NotReproducedAnswer(
        interval=each.interval,
        action=each.action,
        bundle=each.bundle,
        source=each.source,
        destination=each.destination,
        why=each.why,
    )


def _replay(run: ReplayedRun, figures: dict[str, float]) -> ReplayAnswer:
    moves = [(command, decision.uncertain) for decision in run.decisions for command in decision.commands]
    return ReplayAnswer(
        figures=figures,
        decisions=len(run.decisions),
        uncertain=sum(decision.uncertain for decision in run.decisions),
        largest_error=float(run.errors.max(initial=0.0)),
        commands=len(moves),
        moves=[_move(command, uncertain=uncertain) for command, uncertain in moves[:_MOST]],
    )


def _move(command: Command, *, uncertain: bool) -> ReplayedMoveAnswer:
    return ReplayedMoveAnswer(
        interval=command.interval,
        action=command.action,
        bundle=command.bundle,
        source=command.source,
        destination=command.destination,
        reason=because(command),
        uncertain=uncertain,
    )


def _difference(found: Difference, first: str, second: str) -> DifferenceAnswer:
    return DifferenceAnswer(
        first=first,
        second=second,
        intervals=found.intervals,
        different_intervals=len(found.different),
        same=found.same,
        only_first=found.only_first,
        only_second=found.only_second,
        listed=[
            DifferentIntervalAnswer(
                interval=each.interval,
                uncertain=each.uncertain,
                only_first=[_move(command, uncertain=each.uncertain) for command in each.only_first],
                only_second=[_move(command, uncertain=each.uncertain) for command in each.only_second],
            )
            for each in found.different[:_MOST]
        ],
    )


# ---- for people ----


def print_answer(out: Console, answer: WhatIfAnswer, most: int) -> None:
    """Print *answer* with *most* rows in each table of moves."""
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
    _print_model(out, answer.model)
    _print_figures(out, answer)
    if answer.reproduction is not None:
        _print_not_reproduced(out, answer.reproduction, most)
    if answer.difference is not None:
        _print_difference(out, answer.difference, most)
    else:
        for name, replay in answer.strategies.items():
            _print_moves(out, name, replay, most)
    for note in answer.notes:
        print_line(out, f"note: {note}")


def _reproduced(found: ReproductionAnswer) -> str:
    more = f"; {found.only_replayed} of the replay were not recorded" if found.only_replayed else ""
    if found.share is None:
        return f"nothing was moved or split{more}"
    return (
        f"{found.reproduced} of {found.recorded} recorded moves and splits with the recorded settings"
        f" ({100 * found.share:.1f} %){more}"
    )


def _print_model(out: Console, fits: Sequence[UsageFitAnswer]) -> None:
    rows = [
        (
            each.resource,
            each.of if each.brokers == 1 else f"{each.brokers} brokers ({each.of})",
            "load" if each.error < each.error_of_constant else "nothing known",
            f"{each.error:.2f}",
            f"{each.error_of_constant:.2f}",
        )
        for each in fits
    ]
    header = columns(
        "resource", "of", "follows", "error", "of a constant", numbers=("error", "of a constant"), prose=("of",)
    )
    title = "How usage follows load; nine of ten held-out errors are below, percentage points"
    print_table(out, header, rows, title=title)
    out.print()


def _print_figures(out: Console, answer: WhatIfAnswer) -> None:
    names = list(answer.strategies)
    rows = [
        (figure, compact(value), *(compact(answer.strategies[name].figures[figure]) for name in names))
        for figure, value in answer.happened.items()
    ]
    for label, of in (("uncertain decisions", "uncertain"), ("largest error of usage", "largest_error")):
        rows.append((label, "", *(compact(float(getattr(answer.strategies[name], of))) for name in names)))
    header = columns("figure", "happened", *names, numbers=("happened", *names))
    title = "The smaller, the better; usage is that of the fullest resource (CPU or bandwidth), in percent"
    print_table(out, header, rows, title=title)
    print_legend(out, answer.happened)
    out.print()


def _print_not_reproduced(out: Console, found: ReproductionAnswer, most: int) -> None:
    if found.missing:
        header = columns("interval", "do", "bundle", "from", "to", "because", prose=("because",))
        rows = [
            (utc(each.interval), each.action, each.bundle, each.source, each.destination, each.why)
            for each in found.missing[:most]
        ]
        print_table(out, header, rows, title="Recorded, and not reproduced", head=3)
        _print_left(out, len(found.missing), most)
        out.print()


_MOVE_HEADINGS: Final = ("interval", "do", "bundle", "from", "to", "because", "")


def _print_moves(out: Console, name: str, replay: ReplayAnswer, most: int) -> None:
    if replay.moves and most:
        rows = [_cells(move) for move in replay.moves[:most]]
        print_table(out, columns(*_MOVE_HEADINGS, prose=("because",)), rows, title=f"{name} would have done", head=3)
        _print_left(out, replay.commands, most)
        out.print()


def _print_difference(out: Console, found: DifferenceAnswer, most: int) -> None:
    print_line(
        out,
        f"{found.different_intervals} of {counted(found.intervals, 'interval')} differ: {found.same} moves and splits"
        f" are the same, {found.only_first} are of {found.first} alone, {found.only_second} of {found.second} alone",
    )
    rows = [
        (side, *_cells(move))
        for each in found.listed
        for side, moves in ((found.first, each.only_first), (found.second, each.only_second))
        for move in moves
    ]
    if rows and most:
        header = columns("only", *_MOVE_HEADINGS, prose=("because",))
        print_table(out, header, rows[:most], head=4)
        _print_left(out, found.only_first + found.only_second, most)
    out.print()


def _cells(move: ReplayedMoveAnswer) -> tuple[str, ...]:
    uncertain = "uncertain" if move.uncertain else ""
    return utc(move.interval), move.action, move.bundle, move.source, move.destination, move.reason, uncertain


def _print_left(out: Console, total: int, most: int) -> None:
    if total > most:
        print_line(out, f"{total - most} more: --most {total}, or --json, lists them")
