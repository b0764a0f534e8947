"""The page itself: a template, its style and its script, and the data, in one file that asks no host for anything."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, Protocol

from controller.model.decision import Decision
from controller.offline.scenarios.compare import Comparison
from controller.offline.scenarios.report.reported_run import (
    ABSENT,
    OF_A_SPLIT,
    PERCENT_A_LEVEL,
    ReportedRun,
    reported_run,
)
from controller.offline.scenarios.simulate import SimulatedRun

_TEMPLATE: Final = "page.html"
#: In the order in which they need each other.
_SCRIPTS: Final = ("data.js", "draw.js", "moves.js", "main.js")
#: What would end the script element that holds the data, or change how it is read.
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class ReportedLoad(Protocol):
    """What a report tells of the load that all runs had: a Scenario has it."""

    @property
    def title(self) -> str:
        """One line."""
        ...

    @property
    def text(self) -> str:
        """More about it, or nothing."""
        ...

    @property
    def period_seconds(self) -> int:
        """Length of an interval."""
        ...

    @property
    def start_hour(self) -> float:
        """Time of day of the first interval."""
        ...

    @property
    def limit_percent(self) -> float:
        """Usage above it is too much."""
        ...

    @property
    def intervals(self) -> int:
        """How many there are."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRecording:
    """ReportedLoad of a recording."""

    title: str
    text: str
    period_seconds: int
    limit_percent: float
    #: T of each interval, epoch ms.
    times: tuple[int, ...]
    start_hour: float = 0.0

    @property
    def intervals(self) -> int:
        """See ReportedLoad."""
        return len(self.times)


class Report:
    """Takes runs and comparisons, and makes the page."""

    def __init__(self) -> None:
        self._scenarios: list[dict[str, Any]] = []
        self._runs: list[ReportedRun] = []
        self._brokers: tuple[str, ...] = ()

    def take(
        self, strategy: str, run: SimulatedRun, decisions: Sequence[Decision], uncommanded: str = OF_A_SPLIT
    ) -> None:
        """Show *run* of *strategy*, in which each interval had its one of *decisions*, with the next scenario added.

        *uncommanded*: why a bundle moves that no command moved.
        """
        self._runs.append(reported_run(strategy, run, decisions, uncommanded))
        self._brokers = run.brokers

    def add(self, name: str, scenario: ReportedLoad, compared: Comparison) -> None:
        """Add *scenario*, of which all runs were taken."""
        runs = [run.as_fields() for run in self._runs]
        self._scenarios.append(_fields(name, scenario, compared) | {"brokers": self._brokers, "runs": runs})
        self._runs = []

    def page(self) -> str:
        """The page as HTML: 26 kB and the data."""
        here = files(__package__)
        page = (here / _TEMPLATE).read_text(encoding="utf-8")
        style = (here / "style.css").read_text(encoding="utf-8")
        script = "\n".join((here / name).read_text(encoding="utf-8") for name in _SCRIPTS)
        data = json.dumps(self._scenarios, separators=(",", ":"), allow_nan=False)
        for unsafe, safe in _UNSAFE.items():
            data = data.replace(unsafe, safe)
        # The data comes last: nothing in it is taken for a place of the template.
        return page.replace("/*STYLE*/", style).replace("/*SCRIPT*/", script).replace("/*DATA*/", data)


def _fields(name: str, scenario: ReportedLoad, compared: Comparison) -> dict[str, Any]:
    return {
        "name": name,
        "title": scenario.title,
        "text": scenario.text,
        "period_seconds": scenario.period_seconds,
        "start_hour": scenario.start_hour,
        "limit_percent": scenario.limit_percent,
        "intervals": scenario.intervals,
        "times": scenario.times if isinstance(scenario, ReportedRecording) else None,
        "percent_a_level": PERCENT_A_LEVEL,
        "absent": ABSENT,
        "seeds": list(compared.seeds),
        "figures": _figures(compared),
    }


def _figures(compared: Comparison) -> list[dict[str, Any]]:
    """A row for each figure, with a cell for each strategy; the "best" has the least mean, where they differ."""
    names = next(iter(compared.figures.values()))
    rows = []
    for name in names:
        means = {strategy: of[name].mean for strategy, of in compared.figures.items()}
        lowest, highest = min(means.values()), max(means.values())
        rows.append(
            {
                "name": name,
                "cells": [
                    {"mean": means[strategy], "margin": of[name].margin, "best": means[strategy] == lowest < highest}
                    for strategy, of in compared.figures.items()
                ],
                "sure": _sure_wins(compared, name),
            }
        )
    return rows


def _sure_wins(compared: Comparison, figure: str) -> Mapping[str, int]:
    """Strategy -> how many others it beats so clearly that chance gives it in 5 of 100 comparisons at most."""
    wins = dict.fromkeys(compared.figures, 0)
    for duel in compared.duels:
        if duel.figure == figure and duel.winner and duel.probability <= 0.05:
            wins[duel.winner] += 1
    return wins
