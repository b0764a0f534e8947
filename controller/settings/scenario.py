"""A scenario of ``trimtab simulate``: a modelled cluster, what happens to it, and what is expected.  One TOML file."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, NonNegativeInt, ValidationError, model_validator

from controller.model.errors import SettingsError
from controller.model.name_patterns import matches
from controller.model.names import namespace_of
from controller.model.pulsar_version import ASSUMED, PulsarVersion, known_version
from controller.settings.expectation import Expectation, parse_expectation
from controller.settings.guardrails import GuardrailSettings
from controller.settings.problems import lines_of, problems
from controller.settings.scenario_parts import (
    MOST_BROKERS,
    MOST_BUNDLES,
    MOST_INTERVALS,
    MOST_TOPICS,
    BrokerConf,
    BrokerGroup,
    Burst,
    Cure,
    Expectations,
    HardwareSettings,
    HotTopics,
    Lag,
    Leave,
    LoadSettings,
    Misreport,
    ModelledNamespace,
    MoveSettings,
    Percent,
    Restart,
)
from controller.settings.section import Section, Text
from controller.settings.small_file import read_tables
from controller.settings.trimtab_toml import DecisionSettings


def _one_version(text: str) -> str:
    return str(known_version(text))


class Scenario(Section):
    """The whole file."""

    title: Text
    """One line."""
    text: str = ""
    """What happens, and why."""
    source: str = ""
    """Where it is described: an issue, a proposal, a blog."""
    intervals: Annotated[int, Field(ge=2, le=MOST_INTERVALS)]
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
    """The cluster is balanced while the usage of every broker is within this many percent of the mean."""
    expect: Expectations = ()
    """What holds in every run, with the cure and without."""
    brokers: Annotated[tuple[BrokerGroup, ...], Field(strict=False, min_length=1)]
    namespaces: Annotated[tuple[ModelledNamespace, ...], Field(strict=False, min_length=1)]
    load: LoadSettings = LoadSettings()
    hardware: HardwareSettings = HardwareSettings()
    bursts: Annotated[tuple[Burst, ...], Field(strict=False)] = ()
    hot_topics: Annotated[tuple[HotTopics, ...], Field(strict=False)] = ()
    lags: Annotated[tuple[Lag, ...], Field(strict=False)] = ()
    restarts: Annotated[tuple[Restart, ...], Field(strict=False)] = ()
    leaves: Annotated[tuple[Leave, ...], Field(strict=False)] = ()
    misreports: Annotated[tuple[Misreport, ...], Field(strict=False)] = ()
    moves: MoveSettings = MoveSettings()
    broker_conf: BrokerConf = Field(default_factory=dict)
    """Options of broker.conf; those that are not here have Pulsar's defaults."""
    pulsar: Annotated[str, AfterValidator(_one_version)] = str(ASSUMED)
    """The version of Pulsar whose defaults hold for options that are not here."""
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
        """What must hold; with *cured*, what must hold only with the cure."""
        texts = self.expect if not cured else (self.cure.expect if self.cure is not None else ())
        return tuple(map(parse_expectation, texts))

    @model_validator(mode="after")
    def _is_no_larger_than_a_machine(self) -> Self:
        for what, number, limit in (
            ("brokers", self.broker_count, MOST_BROKERS),
            ("bundles", sum(space.bundles for space in self.namespaces), MOST_BUNDLES),
            ("topics", sum(space.topics for space in self.namespaces), MOST_TOPICS),
        ):
            if number > limit:
                raise ValueError(f"there are {number:,} {what}; allowed are {limit:,} or fewer")
        return self

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        names = [space.name for space in self.namespaces]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"namespaces.name = {twice[0]!r}: there is another namespace of that name")
        of_bursts = [(f"bursts.{number}", each.namespace) for number, each in enumerate(self.bursts)]
        of_topics = [(f"hot_topics.{number}", each.namespace) for number, each in enumerate(self.hot_topics)]
        of_lags = [(f"lags.{number}", each.namespace) for number, each in enumerate(self.lags)]
        for key, name in (*of_bursts, *of_topics, *of_lags):
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
        named = [(f"{key}.brokers", brokers) for key, brokers in numbers]
        named += [(f"namespaces.{n}.primary", each.primary) for n, each in enumerate(self.namespaces) if each.primary]
        for key, brokers in named:
            if max(brokers) > self.broker_count:
                raise ValueError(f"{key} = {max(brokers)}: there are brokers 1 to {self.broker_count}")
        return self

    @model_validator(mode="after")
    def _begins_with_an_owner_for_each_bundle(self) -> Self:
        if not any(group.load > 0 and group.joins_at == 0 for group in self.brokers):
            raise ValueError("brokers: at the start one broker at least must be there, with load above 0")
        return self

    @model_validator(mode="after")
    def _leaves_a_broker_to_each_namespace(self) -> Self:
        with_load = {
            number
            for number, group in enumerate((group for group in self.brokers for _ in range(group.count)), start=1)
            if group.load > 0 and group.joins_at == 0
        }
        isolated = [space for space in self.namespaces if space.primary]
        for space in isolated:
            if not with_load & set(space.primary):
                raise ValueError(f"{space.name}: none of its primary brokers is there at the start, with load above 0")
        shared = [space.name for space in self.namespaces if space not in isolated]
        if shared and not with_load - {number for space in isolated for number in space.primary}:
            raise ValueError(f"{shared[0]}: isolation policies leave it no broker that is there at the start")
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
                ineffective = [] if settings is None else [key for key in ignored if key in settings.model_fields_set]
                if ineffective:
                    raise ValueError(f"{prefix}{section}.{ineffective[0]} has no effect in a simulation: leave it out")
        return self

    @model_validator(mode="after")
    def _excludes_what_there_is(self) -> Self:
        names = {space.name for space in self.namespaces}
        for prefix, each in (("", self), ("cure.", self.cure)):
            decisions = None if each is None else each.decisions
            named = [] if decisions is None else [("excluded", decisions.excluded), ("only", decisions.only)]
            for key, name in ((key, name) for key, excluded in named for name in excluded):
                if not any(matches(name, space) or namespace_of(name) == space for space in names):
                    known = ", ".join(sorted(names))
                    raise ValueError(f"{prefix}decisions.{key} = {name!r}: no such namespace; there are: {known}")
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


def as_version(scenario: Scenario, pulsar: PulsarVersion | None) -> Scenario:
    """*scenario* as of the version *pulsar*; None: as of its own."""
    return scenario if pulsar is None else scenario.model_copy(update={"pulsar": str(pulsar)})


def read_scenario(path: Path) -> Scenario:
    """The scenario in the file *path*, or SettingsError naming file, key, value and what is allowed."""
    try:
        values: Any = tomllib.loads(read_tables(path).decode())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also for text that is not UTF-8
        raise SettingsError(f"{path}: not TOML: {error}") from error
    try:
        return Scenario.model_validate(values)
    except ValidationError as error:
        messages = [*problems(error, Scenario)]
        raise SettingsError(lines_of(path, messages)) from None
