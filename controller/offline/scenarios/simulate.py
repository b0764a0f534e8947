"""Runs a scenario: the modelled cluster below, the real engine above, one interval after the other.

No clock, no files, no processes: the same scenario, settings and seed give the same run, to the bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from controller.cycle import Policy
from controller.cycle.limits import Limits
from controller.engine import take_over
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.journal import DecidedInterval, JournalEntry, JournalHead
from controller.model.leadership import Agreement, no_preparation
from controller.model.load import Floats
from controller.model.pulsar_version import known_version
from controller.settings.broker_conf import build
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import with_requested
from controller.settings.policy import policy_of, read_assignment
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import TurnNumber, as_broker_conf
from controller.settings.trimtab_toml import DecisionSettings, IntervalSettings
from controller.simulator.carrying_out import SimulatedMove
from controller.simulator.world import BrokerRules, World
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.filters.modular_select_broker import ModularSelectBroker

_CLUSTER = "simulated"
#: So much of a split threshold makes a bundle's topics known one by one, as in production.
_DETAIL_SHARE = IntervalSettings().detail_share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedRun:
    """What happened in one run."""

    seed: int
    brokers: tuple[str, ...]
    #: (intervals, brokers) true usage, the largest of CPU and bandwidth, in percent; NaN of brokers that are not there.
    usage: Floats
    moves: tuple[SimulatedMove, ...]
    #: Interval and bundle of each split, and of each command that failed or whose result is not known.
    splits: tuple[tuple[int, str], ...]
    failures: tuple[tuple[int, str], ...]
    #: (intervals,) how uneven the worst scalable topic was; NaN without one, and of recordings.
    topics: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How the cluster is balanced in a run."""

    policy: Policy
    rules: BrokerRules
    #: A capacity file says the true limits.
    true_limits: bool


def variant_of(scenario: Scenario, *, cured: bool = False, strategy: dict[str, str] | None = None) -> Variant:
    """How *scenario* is balanced: as it says, with its cure, with other options of broker.conf, or all of these.

    Raises SettingsError naming the option.
    """
    cure = scenario.cure if cured else None
    conf = with_requested(as_broker_conf(scenario.broker_conf), strategy or {})
    decisions, guardrails = scenario.decisions, scenario.guardrails
    if cure is not None:
        conf |= as_broker_conf(cure.broker_conf)
        decisions, guardrails = cure.decisions or decisions, cure.guardrails or guardrails
    policy = policy_of(
        conf,
        decisions or DecisionSettings(),
        guardrails or GuardrailSettings(),
        IntervalSettings().warm_up_samples,
        _CLUSTER,
        scenario.period_seconds * 1000,
        pulsar=known_version(scenario.pulsar),
    )
    # Modelled brokers have no balancing of their own.
    limits = Limits() if guardrails is None else replace(policy.limits, balancing_unknown_intervals=None)
    policy = replace(policy, limits=limits)
    evenly = any(isinstance(each, FewestBundles) and each.enabled for each in policy.filters)
    selection = policy.selection if isinstance(policy.selection, ModularSelectBroker) else ModularSelectBroker()
    rules = BrokerRules(
        assignment=read_assignment(conf),
        evenly=evenly,
        overloaded=selection.overloaded_percent / 100,
        scale=build(AutoScale, conf),
    )
    return Variant(policy=policy, rules=rules, true_limits=cure is not None and cure.true_limits)


def simulate(
    scenario: Scenario,
    variant: Variant,
    seed: int,
    done: Callable[[int], None] = lambda _: None,
    tell: Callable[[Decision], None] = lambda _: None,
) -> SimulatedRun:
    """Run *scenario* with *seed*; *done* takes the number of intervals so far, *tell* each interval's decision."""
    detail = variant.policy.detail_limits(_DETAIL_SHARE)
    world = World(scenario, seed, variant.rules, detail, true_limits=variant.true_limits)
    decided: list[Decision] = []
    engine = take_over(
        policy=variant.policy,
        seed=seed,
        journal=_NoJournal(),
        leadership=_Alone(),
        controls=lambda _: Controls(mode="active"),
        now_ms=lambda: 0,
    )

    def take(one: DecidedInterval) -> None:
        decided.append(one.entry.decision)

    usage, topics = np.empty((scenario.intervals, len(world.brokers))), np.empty(scenario.intervals)
    for turn in map(TurnNumber, range(scenario.intervals)):
        snapshot, usage[turn] = world.live(turn)
        topics[turn] = world.topic_unevenness()
        engine.decide([snapshot], take)
        decision = decided.pop()
        tell(decision)
        world.execute(turn, decision.commands)
        done(turn + 1)
    return SimulatedRun(
        seed=seed,
        brokers=tuple(world.brokers),
        usage=100 * usage,
        moves=tuple(world.moves),
        splits=tuple(world.splits),
        failures=tuple(world.failures),
        topics=topics,
    )


class _NoJournal:
    """Nothing is read back: a run begins with an empty journal and ends with the process."""

    def open(self) -> JournalHead:
        return JournalHead(last=None, epoch=0)

    def begin_epoch(self, epoch: int) -> None:
        """There is one."""

    def append(
        self,
        entry: JournalEntry,  # noqa: ARG002
        *,
        epoch: int,  # noqa: ARG002
        issued_at_ms: int,  # noqa: ARG002
        before_commit: Callable[[], None],
    ) -> None:
        before_commit()

    def prune(self, *, committed: int, before: int) -> None:
        """There is nothing."""


class _Alone:
    """The leadership of a controller without rivals."""

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:  # noqa: ARG002
        return True

    def claim(self, journal_epoch: int) -> int:
        return journal_epoch + 1

    def check(self) -> None:
        """Nobody else could lead."""

    def agreement(self, name: str) -> Agreement | None:  # noqa: ARG002
        return None

    def lost(self) -> bool:
        return False

    def session_lost(self) -> bool:
        return False

    def release(self) -> None:
        """Nobody waits."""
