"""A scenario of ``trimtab simulate``: a modelled cluster, what happens to it, and what is expected.  One TOML file.

docs/simulate.md explains every key.  Times are intervals from the start, from 0.
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from controller.model.errors import SettingsError
from controller.settings.expectation import Expectation, parse_expectation
from controller.settings.guardrails import GuardrailSettings
from controller.settings.problems import problems
from controller.settings.section import Section, Text
from controller.settings.trimtab_toml import DecisionSettings

#: Bounds of what one machine can simulate; one more digit would be a slip of the keyboard.
_MOST_INTERVALS: Final = 100_000
_MOST_BROKERS: Final = 2_000
_MOST_BUNDLES: Final = 100_000
_MOST_TOPICS: Final = 1_000_000
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
Interval: TypeAlias = Annotated[int, Field(ge=0, le=_MOST_INTERVALS)]
Expectations: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(_is_expectation)], ...], Field(strict=False, max_length=50)
]
#: Numbers of brokers, from 1: ``broker-01`` is 1.
BrokerNumbers: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=1, le=_MOST_BROKERS)], ...], Field(strict=False, min_length=1)
]
BrokerConf: TypeAlias = dict[Text, str | bool | int | float]


class BrokerGroup(Section):
    """``[[brokers]]``: brokers that are alike.  They are numbered through all groups: broker-01, broker-02 ..."""

    count: Annotated[int, Field(ge=1, le=_MOST_BROKERS)]
    """How many."""
    capacity: Factor = 1.0
    """What each can carry, compared with the others: 2 carries twice as much at the same usage."""
    load: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 1.0
    """What each has to carry at the start, compared with the others; 0: it owns no bundle."""
    joins_at: Interval = 0
    """Before this interval the brokers are not there."""


class ModelledNamespace(Section):
    """``[[namespaces]]``."""

    name: NamespaceText
    """tenant/namespace."""
    bundles: Annotated[int, Field(ge=1, le=_MOST_BUNDLES)]
    """Bundles at the start."""
    topics: Annotated[int, Field(ge=1, le=_MOST_TOPICS)]
    """Topics, or partitions."""
    partitions: NonNegativeInt = 0
    """Each so many topics are the partitions of one; 0: topics without partitions."""
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
    intervals: PositiveInt = _MOST_INTERVALS
    """How long it lasts; by default to the end."""

    def lasts_in(self, interval: int) -> bool:
        """Whether it is under way in *interval*."""
        return self.at <= interval < self.at + self.intervals


class Burst(Happening):
    """``[[bursts]]``: all topics of a namespace have more load."""

    factor: Factor
    """So many times the load."""
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
    """``[[misreports]]``: what brokers report is not what is so."""

    brokers: BrokerNumbers
    """Which brokers."""
    missing: bool = False
    """They report nothing."""
    stale: bool = False
    """They repeat the last usage that they reported before."""
    resource: Literal["cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"] = "cpu"
    """Of which resource usage and limit are wrong."""
    usage_factor: Factor = 1.0
    """They report so many times the usage."""
    limit_factor: Factor = 1.0
    """They report so many times the limit, so the usage seems so many times lower."""


class MoveSettings(Section):
    """``[moves]``: how commands are carried out, and what a move costs."""

    intervals: PositiveInt = 1
    """From the decision to the interval in which the bundle is at its destination."""
    seconds: Annotated[float, Field(ge=0, le=_WEEK_SECONDS, allow_inf_nan=False)] = 2.0
    """A bundle's clients are without a broker for so long while it moves."""
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


class Scenario(Section):
    """The whole file."""

    title: Text
    """One line."""
    text: str = ""
    """What happens, and why."""
    source: str = ""
    """Who has described it: an issue, a proposal, a blog."""
    intervals: Annotated[int, Field(ge=2, le=_MOST_INTERVALS)]
    """How long it lasts."""
    period_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """Length of an interval."""
    start_hour: Annotated[float, Field(ge=0, lt=168, allow_inf_nan=False)] = 6.0
    """The time of the week at the start: 6 is 6 o'clock on the first day."""
    seed: NonNegativeInt = 1
    """Of the first run; each further run has the next one."""
    limit_percent: Percent = 85.0
    """A broker above this usage is over its limit, for the figure "time over limit"."""
    balanced_percent: Percent = 20.0
    """The cluster is balanced while the usage of every broker is within so many percent of the mean."""
    expect: Expectations = ()
    """What holds in every run, with the cure and without."""
    brokers: Annotated[tuple[BrokerGroup, ...], Field(strict=False, min_length=1)]
    namespaces: Annotated[tuple[ModelledNamespace, ...], Field(strict=False, min_length=1)]
    load: LoadSettings = LoadSettings()
    hardware: HardwareSettings = HardwareSettings()
    bursts: Annotated[tuple[Burst, ...], Field(strict=False)] = ()
    hot_topics: Annotated[tuple[HotTopics, ...], Field(strict=False)] = ()
    restarts: Annotated[tuple[Restart, ...], Field(strict=False)] = ()
    leaves: Annotated[tuple[Leave, ...], Field(strict=False)] = ()
    misreports: Annotated[tuple[Misreport, ...], Field(strict=False)] = ()
    moves: MoveSettings = MoveSettings()
    broker_conf: BrokerConf = Field(default_factory=dict)
    """Options of broker.conf; those that are not here have Pulsar's defaults."""
    decisions: DecisionSettings | None = None
    """[decisions] of trimtab.toml."""
    guardrails: GuardrailSettings | None = None
    """[guardrails] of trimtab.toml.  Without this section there are no guardrails, as with brokers that balance
    themselves; with it, keys that are not given have trimtab's defaults."""
    cure: Cure | None = None

    @property
    def broker_count(self) -> int:
        """Brokers of all groups."""
        return sum(group.count for group in self.brokers)

    def expectations(self, *, cured: bool) -> tuple[Expectation, ...]:
        """What is to hold; with *cured*, what is to hold with the cure alone."""
        texts = self.expect if not cured else (self.cure.expect if self.cure is not None else ())
        return tuple(map(parse_expectation, texts))

    @model_validator(mode="after")
    def _is_no_larger_than_a_machine(self) -> Self:
        for what, number, most in (
            ("brokers", self.broker_count, _MOST_BROKERS),
            ("bundles", sum(space.bundles for space in self.namespaces), _MOST_BUNDLES),
            ("topics", sum(space.topics for space in self.namespaces), _MOST_TOPICS),
        ):
            if number > most:
                raise ValueError(f"there are {number:,} {what}; allowed are {most:,} or fewer")
        return self

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        names = [space.name for space in self.namespaces]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"namespaces.name = {twice[0]!r}: there is another namespace of that name")
        of_bursts = [(f"bursts.{number}", each.namespace) for number, each in enumerate(self.bursts)]
        of_topics = [(f"hot_topics.{number}", each.namespace) for number, each in enumerate(self.hot_topics)]
        for key, name in (*of_bursts, *of_topics):
            if name and name not in names:
                known = ", ".join(names)
                raise ValueError(f"{key}.namespace = {name!r}: no such namespace; there are: {known}")
        return self

    @model_validator(mode="after")
    def _numbers_brokers_that_there_are(self) -> Self:
        numbers: list[tuple[str, tuple[int, ...]]] = []
        numbers += [(f"restarts.{number}", each.brokers) for number, each in enumerate(self.restarts)]
        numbers += [(f"leaves.{number}", each.brokers) for number, each in enumerate(self.leaves)]
        numbers += [(f"misreports.{number}", each.brokers) for number, each in enumerate(self.misreports)]
        for key, brokers in numbers:
            if max(brokers) > self.broker_count:
                raise ValueError(f"{key}.brokers = {max(brokers)}: there are brokers 1 to {self.broker_count}")
        return self

    @model_validator(mode="after")
    def _begins_with_an_owner_for_each_bundle(self) -> Self:
        if not any(group.load > 0 and group.joins_at == 0 for group in self.brokers):
            raise ValueError("brokers: at the start one broker at least must be there, with load above 0")
        return self

    @model_validator(mode="after")
    def _sets_nothing_without_effect(self) -> Self:
        for prefix, each in (("", self), ("cure.", self.cure)):
            if each is None:
                continue
            for section, settings, ignored in (
                ("decisions", each.decisions, ("mode", "paused", "seed")),
                ("guardrails", each.guardrails, ("maintenance",)),
            ):
                given = [] if settings is None else [key for key in ignored if key in settings.model_fields_set]
                if given:
                    raise ValueError(f"{prefix}{section}.{given[0]} has no effect in a simulation: leave it out")
        return self

    @model_validator(mode="after")
    def _expects_what_can_be_seen(self) -> Self:
        names = {space.name for space in self.namespaces}
        for each in (*self.expectations(cured=False), *self.expectations(cured=True)):
            if each.after >= self.intervals:
                raise ValueError(f"expect = {each.text!r}: the scenario has the intervals 0 to {self.intervals - 1}")
            if each.namespace and each.namespace not in names:
                raise ValueError(f"expect = {each.text!r}: no such namespace; there are: {', '.join(sorted(names))}")
        return self


def read_scenario(path: Path) -> Scenario:
    """The scenario in the file *path*, or SettingsError naming file, key, value and what is allowed."""
    try:
        values: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also for text that is not UTF-8
        raise SettingsError(f"{path}: not TOML: {error}") from error
    try:
        return Scenario.model_validate(values)
    except ValidationError as error:
        found = problems(error, Scenario)
        raise SettingsError("\n".join(f"{path}: {problem}" for problem in found)) from None
