"""The sections of a scenario: the cluster, its load, what happens to it, and how commands are carried out.

docs/simulate.md explains every key.  Times are intervals from the start, from 0.
"""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal, NewType, Self, TypeAlias

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, model_validator

from controller.model.segment_code import KEY_HASHES
from controller.settings.expectation import parse_expectation
from controller.settings.guardrails import GuardrailSettings
from controller.settings.section import Section, Text
from controller.settings.trimtab_toml import DecisionSettings

#: Number of an interval of a scenario or a replay, from 0.  Its T is an interval in epoch ms.
TurnNumber = NewType("TurnNumber", int)
#: Bounds of what one machine can simulate; one more digit would be a slip of the keyboard.
MOST_INTERVALS: Final = 100_000
MOST_BROKERS: Final = 2_000
MOST_BUNDLES: Final = 100_000
MOST_TOPICS: Final = 1_000_000
_WEEK_SECONDS: Final = 604_800


_NAMESPACE: Final = re.compile(r"[\w.=-]+/[\w.=-]+")


def _is_expectation(text: str) -> str:
    parse_expectation(text)
    return text


def _is_namespace(name: str) -> str:
    if not _NAMESPACE.fullmatch(name):
        raise ValueError("expected tenant/namespace, of letters, digits and _.=-")
    return name


NamespaceText: TypeAlias = Annotated[str, Field(max_length=200), AfterValidator(_is_namespace)]

Percent: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Factor: TypeAlias = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
Interval: TypeAlias = Annotated[int, Field(ge=0, le=MOST_INTERVALS)]
Expectations: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(_is_expectation)], ...], Field(strict=False, max_length=50)
]
#: Numbers of brokers, from 1: ``broker-01`` is 1.
BrokerNumbers: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=1, le=MOST_BROKERS)], ...], Field(strict=False, min_length=1)
]
BrokerConf: TypeAlias = dict[Text, str | bool | int | float]


class BrokerGroup(Section):
    """``[[brokers]]``: brokers that are alike.  They are numbered through all groups: broker-01, broker-02 ..."""

    count: Annotated[int, Field(ge=1, le=MOST_BROKERS)]
    """How many."""
    capacity: Factor = 1.0
    """What each can carry, compared with the others: 2 carries twice as much at the same usage."""
    load: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 1.0
    """What each has to carry at the start, compared with the others; 0: it owns no bundle."""
    joins_at: Interval = 0
    """The brokers join in this interval."""


class ModelledNamespace(Section):
    """``[[namespaces]]``."""

    name: NamespaceText
    """tenant/namespace."""
    bundles: Annotated[int, Field(ge=1, le=MOST_BUNDLES)]
    """Bundles at the start."""
    topics: Annotated[int, Field(ge=1, le=MOST_TOPICS)]
    """Topics, or partitions."""
    partitions: NonNegativeInt = 0
    """This many topics each are the partitions of one topic; 0: topics without partitions."""
    segments: NonNegativeInt = 0
    """The namespace is one scalable topic of Pulsar 5.0, of so many segments at the start, and its topics are equal
    parts of the topic's keys; both are powers of two.  0: it has ordinary topics."""
    share: Factor = 1.0
    """Its share of the cluster's messages, compared with the others."""
    zipf: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = 1.0
    """How unequal its topics are: the n-th largest has 1 / n ** zipf of the largest; 0: all are equal."""
    peak_hour: Annotated[float, Field(ge=0, lt=24, allow_inf_nan=False)] = 12.0
    """When its day is busiest."""
    producers: NonNegativeInt = 2
    """Of each topic."""
    consumers: NonNegativeInt = 2
    """Of each topic."""
    primary: Annotated[tuple[Annotated[int, Field(ge=1, le=MOST_BROKERS)], ...], Field(strict=False)] = ()
    """Numbers of the brokers that an isolation policy gives to it, and to it alone; by default there is no policy."""

    @model_validator(mode="after")
    def _divides_the_keys(self) -> Self:
        if self.segments:
            if self.partitions:
                raise ValueError("segments and partitions exclude each other: a scalable topic has no partitions")
            for key, number, limit in (("topics", self.topics, KEY_HASHES), ("segments", self.segments, self.topics)):
                if number.bit_count() != 1 or number > limit:
                    raise ValueError(f"{key} = {number}: with segments, allowed is a power of two up to {limit}")
        return self


class LoadSettings(Section):
    """``[load]``: what all topics have in common."""

    msg_rate: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 100_000.0
    """Messages published in the cluster, msg/s, at the mean of a day."""
    message_bytes: Annotated[float, Field(ge=1, le=5e6, allow_inf_nan=False)] = 1024.0
    """A typical message."""
    subscriptions: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 1.0
    """How often each message is delivered."""
    daily_percent: Percent = 0.0
    """How far the busiest hour is above the mean of the day, and the idlest below."""
    weekly_percent: Percent = 0.0
    """The same of the days of a week."""
    drift_percent: Percent = 0.0
    """How far the rate of a topic wanders from one interval to the next; it is drawn back to its mean."""
    growth_percent_a_day: Annotated[float, Field(ge=-50, le=1000, allow_inf_nan=False)] = 0.0
    """Growth of all topics."""


class HardwareSettings(Section):
    """``[hardware]``: how load becomes usage."""

    cpu_percent: Annotated[float, Field(gt=0, le=200, allow_inf_nan=False)] = 50.0
    """Mean CPU usage of the brokers that are there at the start, at the mean of a day; CPU follows the messages."""
    network_percent: Annotated[float, Field(gt=0, le=200, allow_inf_nan=False)] = 30.0
    """The same of the outgoing bandwidth, which follows the bytes."""
    idle_percent: Annotated[float, Field(ge=0, le=50, allow_inf_nan=False)] = 2.0
    """CPU usage of a broker without load, which comes on top."""
    noise_percent: Annotated[float, Field(ge=0, le=50, allow_inf_nan=False)] = 0.0
    """Standard deviation of a measured CPU usage, in percentage points."""
    direct_memory_percent: Percent = 40.0
    """Direct memory usage is anything up to this, whatever the load."""


class Happening(Section):
    """Base of what lasts for a time."""

    at: Interval
    """The first interval."""
    intervals: PositiveInt = MOST_INTERVALS
    """How long it lasts; by default to the end."""

    def lasts_in(self, turn: TurnNumber) -> bool:
        """Whether it is under way in *turn*."""
        return self.at <= turn < self.at + self.intervals


class Burst(Happening):
    """``[[bursts]]``: all topics of a namespace have more load."""

    factor: Factor
    """The load is multiplied by this."""
    namespace: NamespaceText | Literal[""] = ""
    """Which namespace; by default all."""


class HotTopics(Happening):
    """``[[hot_topics]]``: some topics have much more load."""

    topics: PositiveInt = 1
    """How many, chosen by the seed."""
    percent: Percent
    """Load that they get together, in percent of all messages at the mean of a day."""
    namespace: NamespaceText | Literal[""] = ""
    """Topics of which namespace; by default of any."""


class Lag(Happening):
    """``[[lags]]``: consumers take less than is published, and catch up afterwards."""

    percent: Percent = 100.0
    """Share of the messages that they do not consume."""
    catch_up_factor: Annotated[float, Field(gt=1, le=1000, allow_inf_nan=False)] = 3.0
    """Afterwards they consume at this multiple of the publish rate, until no backlog is left."""
    namespace: NamespaceText | Literal[""] = ""
    """Consumers of which namespace; by default of all."""


class Restart(Section):
    """``[[restarts]]``: brokers go and come back without bundles."""

    at: Interval
    """The first one goes in this interval."""
    brokers: BrokerNumbers
    """Which, in order."""
    down: PositiveInt = 2
    """Intervals until a broker is back."""
    every: PositiveInt = 10
    """Intervals from one broker to the next."""
    rounds: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all of them restart."""


class Leave(Section):
    """``[[leaves]]``: brokers go for good."""

    at: Interval
    """When."""
    brokers: BrokerNumbers
    """Which."""


class Misreport(Happening):
    """``[[misreports]]``: brokers report wrong values."""

    brokers: BrokerNumbers
    """Which brokers."""
    missing: bool = False
    """They report nothing."""
    stale: bool = False
    """They repeat the last usage that they reported before."""
    resource: Literal["cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"] = "cpu"
    """Of which resource usage and limit are wrong."""
    usage_factor: Factor = 1.0
    """They report this multiple of the usage."""
    limit_factor: Factor = 1.0
    """They report this multiple of the limit, so the usage seems lower by the same factor."""


class MoveSettings(Section):
    """``[moves]``: how commands are carried out, and what a move costs."""

    intervals: PositiveInt = 1
    """From the decision to the interval in which the bundle is at its destination."""
    seconds: Annotated[float, Field(ge=0, le=_WEEK_SECONDS, allow_inf_nan=False)] = 2.0
    """How long a bundle's clients are without a broker while it moves."""
    cold_percent: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 0.0
    """CPU that a bundle costs in addition in its first interval on a broker, in percent of its own: clients connect,
    caches are empty."""
    lost_percent: Percent = 0.0
    """Unloads that are lost: nothing happens, and no result comes."""
    failed_percent: Percent = 0.0
    """Unloads that fail."""
    astray_percent: Percent = 0.0
    """Unloads whose bundle goes to the broker that the next lookup chooses, not to the destination."""
    hangs_percent: Percent = 0.0
    """Unloads after which no broker owns the bundle for ``hangs_intervals``; their result is unknown."""
    hangs_intervals: PositiveInt = 10
    """See hangs_percent."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = self.lost_percent + self.failed_percent + self.astray_percent + self.hangs_percent
        if total > 100:
            raise ValueError(f"lost, failed, astray and hangs_percent are {total:g} together; allowed are 100 or less")
        return self


class Cure(Section):
    """``[cure]``: the scenario runs a second time with these settings in addition."""

    text: Text
    """What is changed, and why it helps."""
    expect: Expectations = ()
    """What holds with the cure, and does not hold without it."""
    broker_conf: BrokerConf = Field(default_factory=dict)
    """Options of broker.conf, besides those of the scenario."""
    decisions: DecisionSettings | None = None
    """[decisions] of trimtab.toml, in place of the scenario's."""
    guardrails: GuardrailSettings | None = None
    """[guardrails] of trimtab.toml, in place of the scenario's."""
    true_limits: bool = False
    """A capacity file says the true limits of all brokers (collector.capacity_overrides)."""

    @model_validator(mode="after")
    def _has_something_to_show(self) -> Self:
        if not self.expect:
            raise ValueError("expect is missing: say what the cure changes")
        return self

    def changes(self) -> list[str]:
        """What it sets, a line for each option: the file, the option and its value, as that file has it."""
        sections = (("decisions", self.decisions), ("guardrails", self.guardrails))
        return [
            *(f"broker.conf: {key}={value}" for key, value in as_broker_conf(self.broker_conf).items()),
            *(
                f"trimtab.toml: {key} = {value}"
                for name, section in sections
                if section is not None
                for key, value in _leaves(name, section.model_dump(mode="json", exclude_unset=True))
            ),
            *(["trimtab.toml: collector.capacity_overrides = a file with the true limits"] if self.true_limits else []),
        ]


def as_broker_conf(options: BrokerConf) -> dict[str, str]:
    """*options* with their values as broker.conf has them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Each value in the table *value*, with its dotted key; values as TOML has them."""
    if not isinstance(value, dict):
        yield name, json.dumps(value, ensure_ascii=False)
        return
    for key, each in value.items():
        yield from _leaves(f"{name}.{key}", each)
