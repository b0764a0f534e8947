"""Replays a recording with several policies at once, in one reading."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from controller.aggregate.shard.shard_state import DetailLimits
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Command, Verdict
from controller.model.journal import JournalEntry
from controller.model.load import Floats
from controller.model.memory import Memory
from controller.offline.counterfactual.recorded import RecordedInterval, ReplayableRecording
from controller.offline.counterfactual.replayed_interval import (
    CounterfactualInterval,
    counted_usage,
    true_limits,
    with_shifted_usage,
)
from controller.offline.counterfactual.survey import ReplaySpan, Survey, until
from controller.offline.counterfactual.world import ReplayedWorld
from controller.offline.scenarios.simulate import SimulatedRun
from controller.strategies.filters.fewest_bundles import FewestBundles

#: What the usages of brokers that differ from the recorded ones are shifted by, in errors: all up, all down, and the
#: busier ones up with the idler ones down, and the other way round.
_SHIFTS: Final[tuple[tuple[float, float], ...]] = ((1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0))

#: The recorded load is decided on by nobody, so no topics are needed.
_NO_DETAIL: Final = DetailLimits(topics=math.inf, sessions=math.inf, msg_rate=math.inf, throughput=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPolicy:
    """With what a recording is replayed."""

    policy: Policy
    #: From this share of a split threshold on, a bundle's topics are known.
    detail_share: float
    #: Of the first memory, where the recording has none.
    seed: int
    #: Controls are the recorded ones; else a recorded dry run, or observing, is replayed as active.
    as_recorded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDecision:
    """The decision of one interval."""

    #: T, epoch ms.
    interval: int
    commands: tuple[Command, ...]
    summary: str
    #: Usage within the model's error would have led to other commands.
    uncertain: bool
    #: Kept where commands are expected that are missing.
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayedRun:
    """A recording, replayed with one policy."""

    run: SimulatedRun
    #: Of each interval in which the recorded controller decided, or of all where the recording has no journal.
    decisions: tuple[ReplayedDecision, ...]
    #: (intervals,) how far off the usage of any broker may be, in percentage points; 0: it is the recorded one.
    errors: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replays:
    """What happened, and what would have happened."""

    happened: SimulatedRun
    runs: Mapping[str, ReplayedRun]


def replay(
    recording: ReplayableRecording,
    span: ReplaySpan,
    surveyed: Survey,
    policies: Mapping[str, ReplayPolicy],
    done: Callable[[int], None] = lambda _: None,
) -> Replays:
    """Replay the intervals of *recording* in *span* with each of *policies*; *done* takes the number so far."""
    happened = _Run(surveyed, ReplayedWorld(surveyed.world, surveyed.commands, _NO_DETAIL, follows_all=True))
    replayed = {name: _Replaying(surveyed, policy) for name, policy in policies.items()}
    before: Snapshot | None = None
    number = 0
    for recorded in until(recording, span):
        if span.has(recorded.interval):
            happened.live(recorded, before)
            for one in replayed.values():
                one.take(recorded, before)
            before, number = recorded.snapshot, number + 1
            done(number)
    return Replays(happened=happened.run(), runs={name: one.ended() for name, one in replayed.items()})


class _Run:
    """A world, and the usage of its brokers, interval by interval."""

    def __init__(self, surveyed: Survey, world: ReplayedWorld) -> None:
        self.world, self._brokers = world, surveyed.brokers
        self._code_of = {name: code for code, name in enumerate(surveyed.brokers)}
        self._usage: list[Floats] = []

    def live(self, recorded: RecordedInterval, before: Snapshot | None) -> CounterfactualInterval:
        """Let the next interval happen."""
        replayed = self.world.live(recorded.snapshot, before)
        usage = np.full(len(self._brokers), np.nan)
        for broker, percent in replayed.usage.items():
            usage[self._code_of[broker]] = percent
        self._usage.append(usage)
        return replayed

    def run(self) -> SimulatedRun:
        """All of it."""
        return SimulatedRun(
            seed=0,
            brokers=self._brokers,
            usage=np.array(self._usage, np.float64).reshape(len(self._usage), len(self._brokers)),
            moves=tuple(self.world.moves),
            splits=tuple(self.world.splits),
            failures=tuple(self.world.failures),
        )


class _Replaying:
    """One replay: a world below, the real decisions above."""

    def __init__(self, surveyed: Survey, policy: ReplayPolicy) -> None:
        detail = policy.policy.detail_limits(policy.detail_share)
        self._policy, self._known = policy, surveyed.commands.known
        world = ReplayedWorld(surveyed.world, surveyed.commands, detail, evenly=_spreads_evenly(policy.policy))
        self._run = _Run(surveyed, world)
        self._memory: Memory | None = None
        self._decisions: list[ReplayedDecision] = []
        self._errors: list[float] = []

    def take(self, recorded: RecordedInterval, before: Snapshot | None) -> None:
        """Replay the next interval; *before* is the recorded one before it."""
        replayed = self._run.live(recorded, before)
        self._errors.append(_largest_error(replayed))
        entry = recorded.entry
        if self._known and entry is None:
            self._pass(recorded, replayed)
            return
        if self._memory is None:
            self._memory = recorded.memory or self._first_memory(entry)
            if self._memory is None and entry is not None:
                # What the first decision began with is not known; the next one begins with what it left.
                self._memory = entry.memory
                self._run.world.execute(entry.decision.commands)
                return
        assert self._memory is not None, "a first memory is known without an entry"
        controls = Controls(mode="active") if entry is None else self._controls(entry.controls)
        decided = decide_interval([replayed.snapshot], self._memory, controls, self._policy.policy)
        self._decisions.append(
            ReplayedDecision(
                interval=recorded.interval,
                commands=decided.decision.commands,
                summary=decided.decision.summary,
                uncertain=self._is_uncertain(replayed, controls, decided.decision.commands),
                verdicts=_about(entry, decided),
            )
        )
        self._memory = decided.memory
        if (used := decided.decision.pulsar) is not None:
            self._run.world.evenly = _spreads_evenly(self._policy.policy.on(used.version))
        self._run.world.execute(decided.decision.commands)

    def _pass(self, recorded: RecordedInterval, replayed: CounterfactualInterval) -> None:
        """Take in an interval that the recorded controller did not decide: it was not there, or it was too late."""
        if self._memory is None:
            self._memory = recorded.memory
        if recorded.passed is not None and self._memory is not None:
            controls = self._controls(recorded.passed)
            self._memory = decide_interval([replayed.snapshot], self._memory, controls, self._policy.policy).memory

    def ended(self) -> ReplayedRun:
        """All of it."""
        errors = np.array(self._errors, np.float64)
        return ReplayedRun(run=self._run.run(), decisions=tuple(self._decisions), errors=errors)

    def _first_memory(self, entry: JournalEntry | None) -> Memory | None:
        """The memory of a controller that begins; None where *entry* shows that it had begun before."""
        if entry is not None and entry.memory.samples != 1:
            return None
        return self._policy.policy.initial_memory(self._policy.seed)

    def _controls(self, recorded: Controls) -> Controls:
        return recorded if self._policy.as_recorded else replace(recorded, mode="active")

    def _is_uncertain(self, replayed: CounterfactualInterval, controls: Controls, commands: Sequence[Command]) -> bool:
        """Whether usage within the model's error leads to other commands."""
        memory = self._memory
        if memory is None or not any(error.any() for error in replayed.errors.values()):
            return False
        busy = float(np.mean(list(replayed.usage.values())))
        decided = set(map(moved, commands))
        for above, below in _SHIFTS:
            sign = {broker: above if replayed.usage[broker] >= busy else below for broker in replayed.errors}
            shift = {broker: sign[broker] * error for broker, error in replayed.errors.items()}
            snapshot = with_shifted_usage(replayed.snapshot, shift)
            shares = {broker: sign[broker] * share for broker, share in error_shares(replayed).items()}
            entry = decide_interval([snapshot], _shifted(memory, shares), controls, self._policy.policy)
            if set(map(moved, entry.decision.commands)) != decided:
                return True
        return False


def _spreads_evenly(policy: Policy) -> bool:
    return any(isinstance(each, FewestBundles) and each.enabled for each in policy.filters)


def moved(command: Command) -> tuple[str, str, str, str, tuple[int, ...]]:
    """What *command* does, without when and why."""
    return command.action, command.bundle, command.source, command.destination, command.boundaries


def error_shares(replayed: CounterfactualInterval) -> dict[str, float]:
    """Broker -> how far off its usage may be, as a fraction of its limit."""
    limits = true_limits(replayed.snapshot)
    return {
        broker: counted_usage(error, limits[broker]) / 100
        for broker, error in replayed.errors.items()
        if broker in limits
    }


def _largest_error(replayed: CounterfactualInterval) -> float:
    return 100 * max(error_shares(replayed).values(), default=0.0)


def _about(entry: JournalEntry | None, decided: JournalEntry) -> tuple[Verdict, ...]:
    """The verdicts of *decided* about bundles and brokers that the recorded *entry* moved, and it does not."""
    if entry is None:
        return ()
    mine = set(map(moved, decided.decision.commands))
    missing = [command for command in entry.decision.commands if moved(command) not in mine]
    subjects = {name for command in missing for name in (command.bundle, command.source, CLUSTER)}
    return tuple(verdict for verdict in decided.decision.verdicts if verdict.subject in subjects)


def _shifted(memory: Memory, shares: Mapping[str, float]) -> Memory:
    """*memory* whose averages of brokers' usage are off by *shares*, fractions."""
    return replace(memory, shedder=memory.shedder.shift_usage(shares), placement=memory.placement.shift_usage(shares))
