"""How a run scenario or incident is judged: tables, expectations for JSON, and the error if one is not met."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from controller.cli.shared.layout import columns, print_line, print_table
from controller.model.errors import TrimtabError
from controller.offline.scenarios.expectations import JudgedExpectation, JudgedScenario
from controller.wire.answers.simulate import ExpectationAnswer
from controller.wire.readable import counted

#: Significant digits of a figure.
_DIGITS: Final = 4


class NotMetError(TrimtabError):
    """An expectation of the scenario is not met."""


def refuse_unmet(path: Path, judged: JudgedScenario) -> None:
    """Raise NotMetError where an expectation is not met."""
    unmet = [each.expectation.text for each in judged.expectations if not each.held]
    if unmet:
        raise NotMetError(f"{path}: {len(unmet)} of {_expectations(judged)} not met: {'; '.join(unmet)}")


def expectation_answers(judged: JudgedScenario) -> list[ExpectationAnswer]:
    """The expectations, for JSON."""
    return [
        ExpectationAnswer.from_object(
            each, text=each.expectation.text, held_without_cure=each.held_without, held_with_cure=each.held_with
        )
        for each in judged.expectations
    ]


def print_judged(out: Console, judged: JudgedScenario) -> None:
    """Print which expectations are met, and the figures."""
    runs = ("without cure", "with cure") if judged.with_cure else ("result",)
    rows = [(each.expectation.text, *_results(each), "yes" if each.held else "NO") for each in judged.expectations]
    if rows:
        header = columns("expectation", *runs, "met", prose=("expectation", *runs))
        print_table(out, header, rows)
        out.print()
    figures = judged.without_cure
    means = [(judged.without_cure, judged.with_cure)[number] for number in range(len(runs))]
    cells = [(figure, *(_number(statistics.fmean(of[figure])) for of in means)) for figure in figures]
    title = "Means over time and seeds" if len(judged.seeds) > 1 else "Means over time"
    print_table(out, columns("figure", *runs, numbers=runs), cells, title=title)
    out.print()
    met = sum(each.held for each in judged.expectations)
    print_line(out, f"{met} of {_expectations(judged)} met")


def _results(each: JudgedExpectation) -> Sequence[str]:
    parts = [(each.without_cure, each.held_without)]
    if each.with_cure:
        parts.append((each.with_cure, each.held_with))
    return [_result(values, met) for values, met in parts]


def _result(values: Sequence[float], met: int) -> str:
    """Whether an expectation holds in runs with these *values* of its figure."""
    low, high = _number(min(values)), _number(max(values))
    range_text = low if low == high else f"{low} to {high}"
    if met == len(values):
        return f"holds: {range_text}"
    return f"fails: {range_text}" if met == 0 else f"holds in {met} of {len(values)}: {range_text}"


def _number(value: float) -> str:
    """A figure, as tables show it."""
    large = abs(value) >= 10**_DIGITS
    return f"{value:,.0f}" if large or value == int(value) else f"{value:.{_DIGITS}g}"


def _expectations(judged: JudgedScenario) -> str:
    return counted(len(judged.expectations), "expectation")
