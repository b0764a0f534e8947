"""Audits of simulated clusters, where it is known what happened."""

from collections import Counter

import pytest

from controller.audit.auditor import MoveAuditor
from controller.audit.moves import AuditedMove
from controller.audit.owner_changes import OwnerChange
from controller.audit.seen_load import weights_of
from controller.offline.scenarios.shipped import scenario_path, strategy_options
from controller.settings.scenario import read_scenario
from tests.effort import tries
from tests.recorded_runs import RecordedTruth, recorded, replay_policy
from tests.scenarios import scenario


def audited(of: RecordedTruth, shedder: object) -> tuple[list[AuditedMove], list[OwnerChange]]:
    audits = MoveAuditor(period_ms=of.recording.period_ms, weights=weights_of(shedder))
    found, changes = list[AuditedMove](), list[OwnerChange]()
    for each in of.recording.intervals():
        assert each.entry is not None
        step = audits.take([each.snapshot], each.entry.decision, each.entry.memory)
        found += step.settled
        changes += step.changes
    return [*found, *audits.ended()], changes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hanging-unloads", "rolling-restart"])
def test_what_is_audited_is_what_happened(name: str) -> None:
    world = read_scenario(scenario_path(name)).model_copy(update={"intervals": 20})
    of = recorded(world, {})
    found, changes = audited(of, replay_policy(world, {}).policy.shedder)
    entries = [each.entry for each in of.recording.intervals() if each.entry is not None]
    commands = [each for entry in entries for each in entry.decision.commands if each.action == "unload"]
    assert [each.id for each in found] == [each.id for each in commands]
    names = of.truth.brokers
    truth = Counter((each.bundle, names[each.source], names[each.destination]) for each in of.truth.moves)
    # The last interval shows what happened before it, and nothing that happens in it.
    shown = Counter((each.bundle, each.source.broker, each.came_to) for each in found if each.came_to)
    assert shown.total() > 0
    assert not shown - truth
    last = world.intervals - 1
    early = Counter(
        (each.bundle, names[each.source], names[each.destination]) for each in of.truth.moves if each.turn < last
    )
    assert (early - shown).total() == sum(change.why == "others" for change in changes)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "predicted_by"), [("UniformLoadShedder", "computed"), ("PeakShedder", "promise")])
def test_in_a_world_without_noise_predictions_are_right(strategy: str, predicted_by: str) -> None:
    """Usage follows the load exactly, every bundle arrives, and nothing else moves from or to these brokers."""
    world = scenario(
        intervals=tries(plain=12, thorough=16),
        brokers=[{"count": 3}, {"count": 1, "load": 0}],
        load={"msg_rate": 100_000},
        decisions={"split": False},
        hardware={"cpu_percent": 50, "network_percent": 30, "noise_percent": 0},
    )
    conf = strategy_options(strategy) | {"minUnloadMessage": "100"}
    found, changes = audited(recorded(world, conf), replay_policy(world, conf).policy.shedder)
    alone = [each for each in found if not each.later]
    assert len(alone) >= 2
    assert not changes
    for each in alone:
        assert (each.outcome, each.destination.predicted_by, each.source.predicted_by) == (
            "arrived",
            predicted_by,
            "computed",
        )
        for side in (each.source, each.destination):
            assert side.predicted is not None
            assert side.actual is not None
            assert side.predicted.rate == pytest.approx(side.actual.rate)
            assert side.error == pytest.approx(0, abs=1e-4)
        assert each.drift == pytest.approx(1)
        assert each.helped
