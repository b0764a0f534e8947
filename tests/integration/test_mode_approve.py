"""From dry_run over approve to active in the real query: what is decided waits, is approved, issued and settled."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.adapters.election import changes
from controller.adapters.election.changes import ControlsChange, change_controls, choice_by
from controller.log.elections import election_system
from controller.model.decision import Command, Reason
from controller.model.journal import JournalEntry
from controller.model.proposed import ProposedDecision
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.lock_step import LockStep
from tests import controllers
from tests.folders import entries_in
from tests.integration.test_embedded_controller import settings as folder_settings

pytestmark = pytest.mark.integration

_START, _PERIOD = 1_735_689_600_000, 60_000


@contextmanager
def controller(settings: Settings, spark: SparkSession) -> Iterator[threading.Thread]:
    over = threading.Event()
    thread = threading.Thread(target=controllers.run_until, args=(over.is_set, settings, spark))
    thread.start()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


def by_a_person(settings: Settings, change: ControlsChange) -> None:
    store = election_system(settings).controls()
    try:
        change_controls(store, change)
    finally:
        store.close()


def in_mode(settings: Settings, mode: str) -> None:
    by_a_person(settings, changes.mode_set(choice_by("ana", "", 1, mode)))


def moves(commands: tuple[Command, ...]) -> list[tuple[str, str, str, str]]:
    return [(each.action, each.bundle, each.source, each.destination) for each in commands]


def waiting(entry: JournalEntry) -> ProposedDecision:
    assert entry.memory.proposed is not None, entry.decision.summary
    return entry.memory.proposed


def test_dry_run_then_approve_then_active(tmp_path: Path, spark: SparkSession) -> None:
    settings = read_settings(folder_settings(tmp_path, "log"))
    cluster = ModelledCluster(ClusterShape(brokers=4, bundles=32, topics=400), seed=1, name="lab")
    step = LockStep(cluster, settings)
    interval = _START

    def next_one(thread: threading.Thread) -> JournalEntry:
        nonlocal interval
        interval += _PERIOD
        return step.play(interval, thread)[0]

    in_mode(settings, "dry_run")
    with controller(settings, spark) as thread:
        next_one(thread)
        rehearsed = next_one(thread)
        owners = {name: cluster.owner(name) for name in cluster.bundle_loads()}
        assert {each.mode for each in rehearsed.decision.commands} == {"dry_run"}

        in_mode(settings, "approve")
        decision = waiting(next_one(thread))
        held = next_one(thread)
        assert held.decision.commands == ()
        assert waiting(held) == decision
        assert {name: cluster.owner(name) for name in owners} == owners

    # Another process takes over, and a person rejects; then the next decision is approved.
    with controller(settings, spark) as thread:
        by_a_person(settings, changes.decision_rejected(choice_by("eve", "not these", 2, decision.hash)))
        after = next_one(thread)
        assert {each.bundle for each in decision.commands} <= set(after.memory.rejected)
        other = waiting(after)
        assert not {each.bundle for each in other.commands} & {each.bundle for each in decision.commands}
        by_a_person(settings, changes.decision_approved(choice_by("bob", "", 3, other.hash)))
        issued = next_one(thread)
        assert moves(issued.decision.commands) == moves(other.commands), issued.decision.summary
        assert {each.mode for each in issued.decision.commands} == {"active"}
        assert all(cluster.owner(each.bundle) == each.destination for each in other.commands if each.destination)
        settled = next_one(thread)
        assert settled.memory.in_flight == {}
        assert settled.decision.commands == ()

        in_mode(settings, "active")
        active = next_one(thread)
        assert active.memory.proposed is None
        assert active.memory.rejected == {}

    entries = list(entries_in(tmp_path / "log"))
    assert [each.controls.mode for each in entries] == ["dry_run"] * 2 + ["approve"] * 5 + ["active"]
    assert [each.decision for each in (held, issued)] == [entries[3].decision, entries[5].decision]
    assert Reason.PLANNED not in {each.why.reason for entry in entries for each in entry.decision.commands}
