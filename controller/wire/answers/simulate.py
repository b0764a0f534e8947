"""The answers of ``trimtab simulate`` and ``trimtab compare``."""

from typing import Final

from controller.wire.answers.base import JsonAnswer, Prose
from controller.wire.base import Number


class ListedScenarioAnswer(JsonAnswer):
    """``trimtab simulate --list --json``, a line for each scenario."""

    scenario: str
    """Its name, to be given to `trimtab simulate`."""
    title: Prose
    source: Prose
    """Who described it; "" if unknown."""
    intervals: int
    brokers: int
    bundles: int
    has_cure: bool


class ExpectationAnswer(JsonAnswer):
    """An expectation of a scenario, and its figure in each run."""

    text: str
    of_cure: bool
    """true: it must hold in every run with the cure, and in none without it.  false: it must hold in every run."""
    held: bool
    """Whether that is so."""
    held_without_cure: int
    """In how many runs without the cure it holds."""
    held_with_cure: int
    without_cure: list[Number]
    """The figure, a number a seed."""
    with_cure: list[Number]
    """The same with the cure; empty where the scenario has none."""


class SimulateAnswer(JsonAnswer):
    """``trimtab simulate SCENARIO --json``."""

    scenario: str
    title: str
    seeds: list[int]
    intervals: int
    brokers: int
    bundles: int
    held: bool
    """Whether all expectations held."""
    cure: str
    """What is changed in the runs with the cure; "" where the scenario has none."""
    cure_settings: list[str]
    """The same as lines to copy, `broker.conf: key=value` or `trimtab.toml: key = value`."""
    expectations: list[ExpectationAnswer]
    without_cure: dict[str, list[Number]]
    """Figure -> a number a seed.  docs/simulate.md defines the figures."""
    with_cure: dict[str, list[Number]]
    """The same with the cure; empty where the scenario has none."""


class ComparedFigureAnswer(JsonAnswer):
    """A figure of a strategy."""

    mean: Number
    margin: Number | None
    """Half of the 95 % interval of the mean; null with one seed."""
    values: list[Number]
    """One a seed."""


class DuelAnswer(JsonAnswer):
    """Two strategies on one figure, seed by seed; the smaller value wins."""

    figure: str
    first: str
    second: str
    first_wins: int
    second_wins: int
    equal: int
    winner: str
    """The one that wins more seeds; "" where neither does."""
    probability: Number
    """The probability of a result at least this uneven if both are equally good (two-sided sign test)."""


class CompareAnswer(JsonAnswer):
    """``trimtab compare SCENARIO... --json``, a line for each scenario."""

    scenario: str
    title: str
    seeds: list[int]
    intervals: int
    figures: dict[str, dict[str, ComparedFigureAnswer]]
    """Strategy -> figure -> its values.  docs/simulate.md defines the figures; smaller is better."""
    duels: list[DuelAnswer]


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.compare": CompareAnswer,
    "answer.simulate": SimulateAnswer,
    "answer.simulate_list": ListedScenarioAnswer,
}
