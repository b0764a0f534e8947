"""What-if on recordings of simulated clusters, whose truth is known."""

from typing import Any

import numpy as np
import pytest

from controller.offline.counterfactual.answer import RecordingTerms, difference
from controller.offline.counterfactual.recorded import RecordedInterval
from controller.offline.counterfactual.replay import Replays, replay
from controller.offline.counterfactual.reproduction import reproduction_of_journal, reproduction_of_moves
from controller.offline.counterfactual.survey import ReplaySpan, survey
from controller.offline.scenarios.figures import figures_of
from controller.offline.scenarios.shipped import scenario_path, strategy_options
from controller.offline.scenarios.simulate import SimulatedRun, simulate, variant_of
from controller.settings.scenario import Scenario, read_scenario
from tests.recorded_runs import RecordedTruth, RecordingInMemory, recorded, replay_policy
from tests.scenarios import scenario

pytestmark = pytest.mark.slow

#: Restarts, splits with unloads, hanging unloads, noise and drift.
WORLDS = ("rolling-restart", "endless-split", "hanging-unloads", "history-weight", "restarted-broker")
UNEVEN: dict[str, Any] = {
    "intervals": 16,
    "brokers": [{"count": 3}, {"count": 1, "load": 0}],
    "load": {"msg_rate": 100_000},
    "decisions": {"split": False},
    "hardware": {"cpu_percent": 50, "network_percent": 30, "noise_percent": 0},
}
UNIFORM = {
    "loadBalancerLoadSheddingStrategy": "UniformLoadShedder",
    "maxUnloadPercentage": "0.5",
    "minUnloadMessage": "100",
}


def shipped(name: str, intervals: int = 20) -> Scenario:
    """The beginning of a scenario that comes with trimtab."""
    return read_scenario(scenario_path(name)).model_copy(update={"intervals": intervals})


def moves_of(run: SimulatedRun) -> list[tuple[int, str, int, int, int]]:
    return sorted((each.turn, each.bundle, each.source, each.destination, each.connections) for each in run.moves)


def replayed(of: RecordedTruth, scenario: Scenario, **strategies: dict[str, str]) -> Replays:
    policies = {name: replay_policy(scenario, conf, as_recorded=name == "again") for name, conf in strategies.items()}
    surveyed = survey(of.recording, ReplaySpan())
    return replay(of.recording, ReplaySpan(), surveyed, policies)


@pytest.mark.parametrize(
    ("name", "journal"), [*((name, True) for name in WORLDS), ("rolling-restart", False), ("endless-split", False)]
)
def test_with_the_recorded_strategy_everything_is_reproduced(name: str, journal: bool) -> None:
    world = shipped(name)
    made = recorded(world, {}, journal=journal)
    surveyed = survey(made.recording, ReplaySpan())
    found = replay(made.recording, ReplaySpan(), surveyed, {"again": replay_policy(world, {}, as_recorded=True)})
    again = found.runs["again"]
    if journal:
        reproduction = reproduction_of_journal(surveyed.recorded, again)
        assert reproduction.recorded == len(surveyed.recorded)
    else:
        reproduction = reproduction_of_moves(found.happened, again.run, surveyed.intervals)
        assert reproduction.recorded == len(made.truth.moves)
    assert reproduction.reproduced == reproduction.recorded
    assert not reproduction.missing
    assert not reproduction.added
    assert np.array_equal(again.run.usage, found.happened.usage, equal_nan=True)
    assert not again.errors.any()


def test_what_happened_is_what_was_simulated() -> None:
    world = shipped("rolling-restart")
    made = recorded(world, {})
    found, truth = replayed(made, world), made.truth
    assert moves_of(found.happened) == moves_of(truth)
    assert np.allclose(found.happened.usage, truth.usage, atol=0.1, equal_nan=True)


@pytest.mark.parametrize("strategy", ["UniformLoadShedder", "AvgShedder", "ThresholdShedder"])
def test_in_a_linear_world_another_strategy_does_what_it_does_in_truth(strategy: str) -> None:
    world, options = scenario(**UNEVEN), strategy_options(strategy) | {"minUnloadMessage": "100"}
    found = replayed(recorded(world, strategy_options("OverloadShedder")), world, other=options)
    truth = simulate(world, variant_of(world, strategy=options), 1)
    assert moves_of(found.runs["other"].run) == moves_of(truth)
    assert np.allclose(found.runs["other"].run.usage, truth.usage, atol=0.2)


def test_splits_divide_the_recorded_topics() -> None:
    world = shipped("endless-split")
    found = replayed(recorded(world, {"loadBalancerNamespaceBundleMaxMsgRate": "100000000"}), world, other={})
    truth = simulate(world, variant_of(world), 1)
    assert not found.happened.splits
    assert found.runs["other"].run.splits == truth.splits
    assert np.allclose(found.runs["other"].run.usage, truth.usage, atol=0.5)


def test_bundles_that_the_recording_split_stay_whole_where_the_replay_does_not_split() -> None:
    world = shipped("endless-split")
    options = {"loadBalancerNamespaceBundleMaxMsgRate": "100000000"}
    found = replayed(recorded(world, {}), world, other=options)
    truth = simulate(world, variant_of(world, strategy=options), 1)
    assert found.happened.splits
    assert not found.runs["other"].run.splits
    assert np.allclose(found.runs["other"].run.usage, truth.usage, atol=0.5)


def test_a_replay_of_a_part_begins_with_the_recorded_memory() -> None:
    world = shipped("history-weight", 14)
    made = recorded(world, {})
    held = made.recording.held
    span = ReplaySpan(since=held[5].interval, until=held[12].interval)
    surveyed = survey(made.recording, span)
    again = replay(made.recording, span, surveyed, {"again": replay_policy(world, {}, as_recorded=True)}).runs["again"]
    assert surveyed.intervals == tuple(each.interval for each in held[5:13])
    assert len(again.decisions) == 8
    found = reproduction_of_journal(surveyed.recorded, again)
    assert (found.reproduced, found.added) == (len(surveyed.recorded), ())


def test_without_the_memory_of_the_first_decision_the_second_one_is_the_first_to_be_made_again() -> None:
    world = shipped("rolling-restart")
    kept = recorded(world, {}).recording.held[3:]
    first = RecordedInterval(snapshot=kept[0].snapshot, entry=kept[0].entry)
    recording = RecordingInMemory(cluster="simulated", period_ms=60_000, held=(first, *kept[1:]))
    surveyed = survey(recording, ReplaySpan())
    again = replay(recording, ReplaySpan(), surveyed, {"a": replay_policy(world, {}, as_recorded=True)}).runs["a"]
    assert again.decisions[0].interval == kept[1].interval
    found = reproduction_of_journal(surveyed.recorded, again)
    assert found.reproduced == found.recorded > 0


def test_an_interval_that_the_controller_did_not_decide_is_not_decided_in_the_replay() -> None:
    world = shipped("history-weight", 14)
    held = list(recorded(world, {}).recording.held)
    held[4] = RecordedInterval(snapshot=held[4].snapshot)
    recording = RecordingInMemory(cluster="simulated", period_ms=60_000, held=tuple(held))
    found = replayed(RecordedTruth(recording=recording, truth=simulate(world, variant_of(world), 1)), world, a={})
    assert held[4].interval not in {each.interval for each in found.runs["a"].decisions}


def test_intervals_that_were_too_late_to_act_on_count_for_the_averages_of_the_replay() -> None:
    world = shipped("history-weight", 14)
    made = recorded(world, {}, late=range(3, 7))
    surveyed = survey(made.recording, ReplaySpan())
    again = replayed(made, world, again={}).runs["again"]
    found = reproduction_of_journal(surveyed.recorded, again)
    assert surveyed.decided == 11
    assert len(again.decisions) == 11
    assert (found.reproduced, found.added) == (found.recorded, ())
    assert found.recorded > 0


def test_of_a_recording_in_mode_approve_approvals_are_reproduced_and_other_strategies_wait_for_nobody() -> None:
    world = scenario(**UNEVEN)
    made = recorded(world, UNIFORM, approved_after=3)
    found = replayed(made, world, again=UNIFORM, other=UNIFORM)
    again, other = found.runs["again"], found.runs["other"]
    first = {name: min(each.turn for each in run.run.moves) for name, run in found.runs.items()}
    assert first["again"] == first["other"] + 3
    assert moves_of(again.run) == moves_of(found.happened)
    assert [each.commands for each in again.decisions] == [
        each.entry.decision.commands for each in made.recording.held if each.entry is not None
    ]
    assert survey(made.recording, ReplaySpan()).modes == {"approve": world.intervals}
    assert other.run.moves


def test_what_was_under_way_when_the_replay_begins_is_not_undone_by_it() -> None:
    made = recorded(shipped("hanging-unloads", 4), {})
    held = made.recording.held
    all_of_it = survey(made.recording, ReplaySpan())
    later = survey(made.recording, ReplaySpan(since=held[2].interval))
    before = [each for each in all_of_it.recorded if each.interval < held[2].interval]
    assert before
    for each in before:
        asked = each.action, each.bundle, each.source, held[3].interval
        assert all_of_it.commands.behind(*asked) == each
        assert later.commands.behind(*asked) is None


def test_what_other_settings_do_not_reproduce_is_listed_with_the_reason() -> None:
    world = shipped("history-weight", 14)
    made = recorded(world, {})
    surveyed = survey(made.recording, ReplaySpan())
    other = replayed(made, world, other={"loadBalancerSheddingEnabled": "true", "maxUnloadPercentage": "0.1"} | UNIFORM)
    found = reproduction_of_journal(surveyed.recorded, other.runs["other"])
    assert found.reproduced < found.recorded
    assert len(found.missing) == found.recorded - found.reproduced
    assert all(each.why for each in found.missing)
    assert "differs since" in found.missing[-1].why


# ---- uncertainty ----


def noisy(percent: float) -> Scenario:
    hardware = {**UNEVEN["hardware"], "noise_percent": percent}
    return scenario(**{**UNEVEN, "intervals": 30, "hardware": hardware, "load": {"msg_rate": 1e5, "drift_percent": 3}})


def test_more_noise_makes_more_decisions_uncertain_and_none_is_without_noise() -> None:
    uncertain = {}
    for percent in (0.0, 6.0):
        world = noisy(percent)
        made = recorded(world, strategy_options("OverloadShedder"))
        run = replayed(made, world, other=strategy_options("ThresholdShedder")).runs["other"]
        uncertain[percent] = sum(each.uncertain for each in run.decisions)
    assert uncertain[0.0] == 0
    assert uncertain[6.0] > 0


def test_decisions_on_recorded_usage_are_certain_whatever_the_noise_is() -> None:
    world = noisy(6.0)
    made = recorded(world, strategy_options("OverloadShedder"))
    run = replayed(made, world, again=strategy_options("OverloadShedder")).runs["again"]
    assert not any(each.uncertain for each in run.decisions)
    assert not run.errors.any()


# ---- two replays ----


def test_the_difference_of_two_replays_counts_what_only_one_does() -> None:
    world = scenario(**UNEVEN)
    made = recorded(world, strategy_options("OverloadShedder"))
    runs = replayed(made, world, idle=strategy_options("OverloadShedder"), moves=UNIFORM, same=UNIFORM).runs
    commands = sum(len(each.commands) for each in runs["moves"].decisions)
    assert commands
    found = difference(runs["idle"], runs["moves"])
    assert (found.same, found.only_first, found.only_second) == (0, 0, commands)
    assert not difference(runs["moves"], runs["same"]).different
    assert difference(runs["moves"], runs["same"]).same == commands


def test_figures_of_a_recording_are_those_of_the_simulator() -> None:
    world = scenario(**UNEVEN)
    made = recorded(world, UNIFORM)
    found = replayed(made, world)
    terms = RecordingTerms(intervals=world.intervals, period_seconds=60, limit_percent=world.limit_percent)
    of_truth = figures_of(world, made.truth)
    for figure, value in figures_of(terms, found.happened).items():
        assert value == pytest.approx(of_truth[figure], rel=0.01, abs=0.01), figure
