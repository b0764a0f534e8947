"""What became of a controller's moves, as its metrics show it."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.adapters.metrics.audits import AuditWatch
from controller.adapters.metrics.controller import ControllerMetrics
from controller.aggregate.snapshot import Snapshot
from controller.model.controls import Controls
from controller.model.decision import Command
from controller.model.journal import JournalEntry
from controller.model.memory import Memory
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from tests.audits import LEFT, RIGHT, at, auditor, decided, interval, move, remembering
from tests.pure_controller import POLICY

USAGE = {"b-1": 82.0, "b-2": 2.0}


def load(minute: int, left: str, right: str = "b-1", usage: dict[str, float] | None = None) -> Snapshot:
    bundles = {LEFT: (left, 600.0), RIGHT: (right, 400.0)}
    return interval(minute, {**USAGE, **(usage or {})}, bundles, {f"0 {LEFT}": "done"} if minute == 1 else {})


def entry(minute: int, *commands: Command) -> JournalEntry:
    return JournalEntry(
        cluster="demo", decision=decided(minute, *commands), memory=Memory(), controls=Controls(mode="active")
    )


def shown(metrics: ControllerMetrics) -> dict[str, float]:
    families = text_string_to_metric_families(metrics.page().decode())
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
        if "audited" in sample.name or "owner_changes" in sample.name
    }


def watched(snapshots: Sequence[Snapshot], *commands: Command, memory: Memory | None = None) -> dict[str, float]:
    """*commands*: decided on the first of *snapshots*."""
    metrics, audits = ControllerMetrics(), auditor()
    audits.remember(memory or Memory())
    watch = AuditWatch(audits, metrics.audits)
    for number, each in enumerate(snapshots):
        watch.take([each], {each.interval: entry(0, *commands) if number == 0 else entry(number)})
    return shown(metrics)


def test_a_move_is_shown_two_intervals_later_and_its_clients_after_an_hour() -> None:
    early = [load(0, "b-1"), load(1, "b-2"), load(2, "b-2", usage={"b-1": 36.0, "b-2": 51.0})]
    found = watched(early, move(0, LEFT, "b-1", "b-2"))
    assert found["trimtab_audited_moves_total arrived ThresholdShedder"] == 1
    assert found["trimtab_audited_moves_helped_total yes ThresholdShedder"] == 1
    assert found["trimtab_audited_usage_error_count computed"] == 2
    assert "trimtab_audited_clients_total ThresholdShedder" not in found
    later = [load(minute, "b-2" if minute < 30 else "b-1") for minute in range(3, 63)]
    found = watched([*early, *later], move(0, LEFT, "b-1", "b-2", by="PeakShedder"))
    assert found["trimtab_audited_clients_total PeakShedder"] == 62
    assert found["trimtab_audited_moves_undone_total others PeakShedder"] == 1
    assert found["trimtab_audited_moves_not_needed_total PeakShedder"] == 0
    assert found["trimtab_owner_changes_total others"] == 1


@pytest.mark.slow
def test_strategies_of_ones_own_have_one_label() -> None:
    names = ("plan", "RebalanceOnMembershipChange", "My Shedder acme/orders", "")
    for name, label in zip(names, ("plan", "RebalanceOnMembershipChange", "other", "other"), strict=True):
        found = watched(
            [load(minute, "b-2" if minute else "b-1") for minute in range(3)], move(0, LEFT, "b-1", "b-2", by=name)
        )
        assert found[f"trimtab_audited_moves_total arrived {label}"] == 1


def test_the_strategies_of_the_settings_begin_with_zeros() -> None:
    """Prometheus counts what is added to a series that it has seen."""
    metrics = ControllerMetrics()
    assert not [name for name in shown(metrics) if "ThresholdShedder" in name]
    metrics.audits.expect(POLICY)
    found = shown(metrics)
    assert found["trimtab_audited_moves_total arrived other"] == 0  # the shedder of these tests is one of its own
    assert found["trimtab_audited_moves_undone_total trimtab plan"] == 0
    metrics.audits.expect(replace(POLICY, shedder=ThresholdShedder()))
    assert shown(metrics)["trimtab_audited_clients_total ThresholdShedder"] == 0


def test_what_another_leader_commanded_is_nobody_elses_move() -> None:
    commanded = move(-1, LEFT, "b-1", "b-2")
    snapshots = [load(0, "b-1"), load(1, "b-2")]
    assert watched(snapshots, memory=remembering(commanded))["trimtab_owner_changes_total others"] == 0
    assert watched(snapshots)["trimtab_owner_changes_total others"] == 1


def test_an_audit_that_fails_ends_and_nothing_else_does(caplog: pytest.LogCaptureFixture) -> None:
    metrics = ControllerMetrics()
    watch = AuditWatch(auditor(), metrics.audits)
    with caplog.at_level(logging.ERROR):
        watch.take([], {at(0): entry(0)})  # the interval's load is not there
        watch.take([load(1, "b-1")], {at(1): entry(1)})
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "decisions continue" in caplog.text
    assert shown(metrics)["trimtab_owner_changes_total others"] == 0
