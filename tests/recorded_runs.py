"""Recordings of simulated clusters, in memory: the truth behind them is known."""

from collections.abc import Iterator
from dataclasses import dataclass

from controller.engine import decide_interval
from controller.model.controls import Controls, DecisionApproval
from controller.model.memory import Memory
from controller.offline.counterfactual.recorded import RecordedInterval
from controller.offline.counterfactual.replay import ReplayPolicy
from controller.offline.counterfactual.replayed_interval import with_near_detail
from controller.offline.scenarios.simulate import SimulatedRun, simulate, variant_of
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import TurnNumber
from controller.settings.trimtab_toml import IntervalSettings
from controller.simulator.world import World
from tests.scenarios import ALL_DETAIL

DETAIL_SHARE = IntervalSettings().detail_share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordingInMemory:
    """A ReplayableRecording that is in memory."""

    cluster: str
    period_ms: int
    held: tuple[RecordedInterval, ...]

    def intervals(self) -> Iterator[RecordedInterval]:
        return iter(self.held)


@dataclass(frozen=True, kw_only=True)
class RecordedTruth:
    """A recording, and what happened in truth."""

    recording: RecordingInMemory
    truth: SimulatedRun


def recorded(
    scenario: Scenario,
    strategy: dict[str, str],
    *,
    seed: int = 1,
    journal: bool = True,
    late: range = range(0),
    approved_after: int | None = None,
) -> RecordedTruth:
    """A simulated run of *scenario*, recorded with all topics.

    The intervals *late* are too late to act on; the last of them alone is journalled.  *approved_after*: in mode
    approve, each decision is approved after so many intervals.
    """
    variant = variant_of(scenario, strategy=strategy)
    world = World(scenario, seed, variant.rules, ALL_DETAIL, true_limits=variant.true_limits)
    detail = variant.policy.detail_limits(DETAIL_SHARE)
    memory, before, held = variant.policy.initial_memory(seed), variant.policy.initial_memory(seed), []
    for interval in range(scenario.intervals):
        snapshot, _ = world.live(TurnNumber(interval))
        controls = Controls(mode="active", stale=interval in late)
        if approved_after is not None:
            controls = _approving(memory, snapshot.interval, approved_after * scenario.period_seconds * 1000)
        entry = decide_interval([with_near_detail(snapshot, detail)], memory, controls, variant.policy)
        memory = entry.memory
        if not journal:
            held.append(RecordedInterval(snapshot=snapshot))
        elif interval in late[:-1]:
            held.append(RecordedInterval(snapshot=snapshot, memory=before, passed=controls))
        else:
            held.append(RecordedInterval(snapshot=snapshot, entry=entry, memory=before))
            before = memory
        world.execute(TurnNumber(interval), entry.decision.commands)
    recording = RecordingInMemory(cluster="simulated", period_ms=scenario.period_seconds * 1000, held=tuple(held))
    return RecordedTruth(recording=recording, truth=simulate(scenario, variant, seed))


def _approving(memory: Memory, interval: int, after_ms: int) -> Controls:
    """Mode approve; the decision that waits in *memory* is approved *after_ms* after its interval."""
    waits = memory.proposed
    is_approved = waits is not None and interval - waits.interval >= after_ms
    approved = (DecisionApproval(decision=waits.hash, by=("ada",), at_ms=interval),) if waits and is_approved else ()
    return Controls(mode="approve", approved=approved)


def replay_policy(
    scenario: Scenario, strategy: dict[str, str], *, seed: int = 1, as_recorded: bool = False
) -> ReplayPolicy:
    """With what *scenario* is replayed."""
    policy = variant_of(scenario, strategy=strategy).policy
    return ReplayPolicy(policy=policy, detail_share=DETAIL_SHARE, seed=seed, as_recorded=as_recorded)
