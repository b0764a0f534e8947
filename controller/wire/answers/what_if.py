"""The answers of ``trimtab what-if`` and ``trimtab incident``."""

from typing import Annotated, Final

from controller.wire.answers.base import DestinationBroker, JsonAnswer, Moment, Shown, ShownAction, SourceBroker
from controller.wire.base import Number


class UsageFitAnswer(JsonAnswer):
    """How one resource of some brokers depends on their load, and the error of that model."""

    of: str
    """A machine class, named by its limits (cpu/memory/direct memory/bandwidth in/bandwidth out), or one broker."""
    brokers: int
    resource: str
    error: Annotated[Number, Shown(form=".2f")]
    """Percentage points: nine of ten errors on intervals that the fit did not see are below."""
    error_of_constant: Annotated[Number, Shown(heading="of a constant", form=".2f")]
    """The same for a model with constant usage. If both are equal, load explains nothing."""
    samples: int
    """Broker-intervals."""
    constant: Number
    """Percent of the limit that is used without any bundle."""
    factors: dict[str, Number]
    """Driver -> percent of the limit for one unit of it."""


class NotReproducedAnswer(JsonAnswer):
    """A move or split that either the recording or the replay with its own settings does not have."""

    interval: Moment
    """T, epoch ms."""
    action: ShownAction
    bundle: str
    source: SourceBroker
    destination: DestinationBroker
    why: Annotated[str, Shown(heading="because", prose=True)]


class ReproductionAnswer(JsonAnswer):
    """How much of the recording a replay with the recorded settings reproduces."""

    recorded: int
    """Moves and splits."""
    reproduced: int
    share: Number | None
    """null: nothing was recorded."""
    missing: list[NotReproducedAnswer]
    """The first 10,000."""
    only_replayed: int
    """Moves and splits that only the replay has."""
    added: list[NotReproducedAnswer]
    """The first 10,000 of them."""


class ReplayedMoveAnswer(JsonAnswer):
    """A move or split of a replay."""

    interval: Moment
    """T, epoch ms."""
    action: ShownAction
    bundle: str
    source: SourceBroker
    destination: DestinationBroker
    """"" of a split."""
    reason: Annotated[str, Shown(heading="because", prose=True)]
    uncertain: Annotated[bool, Shown(heading=" ", form=lambda value: "uncertain" if value else "")]
    """Usage within the model's error would have led to another decision in this interval."""


class ReplayAnswer(JsonAnswer):
    """What would have happened with one strategy."""

    figures: dict[str, Number]
    decisions: int
    """Intervals that were decided."""
    uncertain: int
    """How many of them could have been different within the model's error."""
    largest_error: Number
    """Percentage points: how far off a broker's usage may be at most."""
    commands: int
    moves: list[ReplayedMoveAnswer]
    """The commands; the first 10,000."""


class DifferentIntervalAnswer(JsonAnswer):
    """An interval in which two strategies do not do the same."""

    interval: int
    uncertain: bool
    only_first: list[ReplayedMoveAnswer]
    only_second: list[ReplayedMoveAnswer]


class DifferenceAnswer(JsonAnswer):
    """--diff: where two strategies differ."""

    first: str
    second: str
    intervals: int
    different_intervals: int
    same: int
    """Moves and splits that both do, in the same interval."""
    only_first: int
    only_second: int
    listed: list[DifferentIntervalAnswer]
    """The first 10,000."""


class WhatIfAnswer(JsonAnswer):
    """``trimtab what-if RECORDING --json``."""

    cluster: str
    first_interval: int
    """T, epoch ms."""
    last_interval: int
    intervals: int
    decided: int
    """How many of them have a recorded decision."""
    brokers: int
    bundles: int
    model: list[UsageFitAnswer]
    reproduction: ReproductionAnswer | None
    """null: it is not known with which settings the recording was made."""
    happened: dict[str, Number]
    """Figure -> its value, of what was recorded.  docs/simulate.md defines the figures; smaller is better."""
    strategies: dict[str, ReplayAnswer]
    difference: DifferenceAnswer | None
    notes: list[str]


class IncidentAnswer(JsonAnswer):
    """``trimtab incident make --json`` and ``trimtab incident check --json``."""

    file: str
    bytes: int
    cluster: str
    around: int
    """The time that it is about, epoch ms."""
    decision: int | None
    """T of the last decision up to that time; null: there is none."""
    reproduced: bool
    """That decision, made again from the file, has the bytes that the journal has."""
    same: int
    """Decisions that come out the same."""
    different: list[int]
    """T of those that do not."""
    unknown: list[int]
    """T of those that cannot be made again: the memory that they began with is missing."""
    anonymised: bool
    versions: dict[str, str]
    """Of trimtab, Python, NumPy and the brokers, where the incident was made."""
    otherwise_than_logged: tuple[int, ...] = ()
    """Of ``make --anonymise``: T of decisions that move something else than those of the log."""


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.incident": IncidentAnswer,
    "answer.what_if": WhatIfAnswer,
}
