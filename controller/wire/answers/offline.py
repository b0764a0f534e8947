"""The answers of commands that need no running cluster: decide, rebalance, ticks, options, strategies."""

from typing import Final, Literal

from controller.wire.answers.base import JsonAnswer, Prose, PulsarVersionAnswer, VerdictAnswer


class PlannedCommandAnswer(JsonAnswer):
    """A command that would be issued."""

    action: Literal["unload", "split"]
    bundle: str
    broker: str
    """The bundle's owner."""
    destination: str = ""
    """Of an unload; "": the brokers choose."""
    algorithm: str = ""
    """Of a split."""
    boundaries: tuple[int, ...] = ()
    """Of a split: where to cut; empty leaves it to the algorithm."""
    unload_after_split: bool = False
    """Of a split."""
    why: VerdictAnswer


class DecideAnswer(JsonAnswer):
    """``trimtab decide --json``."""

    cluster: str
    interval: int
    """T of the load, epoch ms."""
    strategy: str
    placement: str
    pulsar: PulsarVersionAnswer | None
    """The version of Pulsar that it was decided by."""
    round: int
    """The round in which it was decided, from 1."""
    brokers: int
    bundles: int
    missing: list[str]
    """Brokers without complete data."""
    summary: str
    commands: list[PlannedCommandAnswer]
    verdicts: list[VerdictAnswer]
    notes: list[str]
    """About the load: brokers that are not counted, records that are not used."""


class WorkAnswer(JsonAnswer):
    """Connectors and tasks, a task as connector:number."""

    connectors: list[str]
    tasks: list[str]


class MemberAnswer(JsonAnswer):
    """What a member starts and stops in a rebalance, and what it runs after it."""

    starts: WorkAnswer
    stops: WorkAnswer
    runs: WorkAnswer


class RebalanceAnswer(JsonAnswer):
    """``trimtab rebalance FILE --json``, a line for each rebalance."""

    protocol: str
    change: int
    """The change that caused it, from 1."""
    step: int
    """Its number among the rebalances of this change, from 1."""
    at_ms: int
    """Since the start."""
    generation: int
    leader: str
    because: str
    delay_ms: int
    """After this time all members rejoin; 0: they need not."""
    balanced: bool
    missing: WorkAnswer
    """What no member runs."""
    unconfigured: WorkAnswer
    """What members run although it is not configured."""
    members: dict[str, MemberAnswer]


class RebalanceExampleAnswer(JsonAnswer):
    """``trimtab rebalance --example --json``, a line for each change."""

    change: str
    tasks: int
    """How many there are after it."""
    stopped: dict[str, int]
    """Protocol -> tasks that it stopped."""


class TicksAnswer(JsonAnswer):
    """``trimtab ticks --json``."""

    ticks: int
    folder: str


class OptionAnswer(JsonAnswer):
    """``trimtab options --json``, a line for each option."""

    file: Literal["broker.conf", "broker.conf, not read", "trimtab.toml"]
    key: str
    default: Prose
    unit: str
    meaning: Prose
    of: str
    """Who reads it: a strategy's class, or a section."""


class StrategyOptionAnswer(JsonAnswer):
    """An option of a strategy."""

    key: str
    value: str
    unit: str
    meaning: str


class LawAnswer(JsonAnswer):
    """Whether a strategy kept a law on all examples."""

    law: str
    kept: bool
    broken: str
    """The simplest example that was found on which it is broken; "" where it was kept."""


class CheckAnswer(JsonAnswer):
    """``trimtab strategies check --json``."""

    strategy: str
    kind: str
    setting: str
    """The setting of broker.conf that names a strategy of this kind."""
    options: list[StrategyOptionAnswer]
    examples: int
    """How many were tried for each law, at most."""
    kept: bool
    laws: list[LawAnswer]


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.decide": DecideAnswer,
    "answer.option": OptionAnswer,
    "answer.rebalance": RebalanceAnswer,
    "answer.rebalance_example": RebalanceExampleAnswer,
    "answer.strategies_check": CheckAnswer,
    "answer.ticks": TicksAnswer,
}
