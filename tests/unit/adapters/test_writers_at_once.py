"""Writers of the controls and of proposals who meet others: a change is stored, once, or an error says to try again."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from controller.adapters.approvals.control_changes import enact_approved, propose_mode
from controller.adapters.approvals.making import Signer, approve
from controller.adapters.election.changes import change_controls, choice_by, mode_set, paused
from controller.adapters.election.memory import MemoryProposals
from controller.adapters.election.proposals import change_record, require
from controller.adapters.folder.controls import FileControls
from controller.model.controls import OperatorControls
from controller.model.errors import TrimtabError
from controller.model.proposals import ProposalRecord, ProposalState, StoredProposal
from tests.proposals import NOW, key_of, policy
from tests.records import CLUSTER

POLICY: Final = policy()
#: Writers that are faster, one after the other: many, and more than anybody waits for.
MANY: Final = 12
ENDLESS: Final = 10_000


class _Controls(FileControls):
    """Before each of the next *others* writes, somebody else changes the controls."""

    others = 0

    def write(self, controls: OperatorControls, version: int) -> bool:
        if self.others:
            self.others -= 1
            now, other = super().read()
            assert super().write(paused(choice_by("olga", f"{self.others}", NOW))(now), other)
        return super().write(controls, version)


class _Proposals(MemoryProposals):
    """*before* is done once, before the next write."""

    before: Callable[[], object] | None = None
    others = 0

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        before, self.before = self.before, None
        if before is not None:
            before()
        if self.others:
            self.others -= 1
            assert super().write(key, require(self, key).record, require(self, key).version)
        return super().write(key, record, version)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, in seconds, in which nobody waits."""
    seconds = list[float]()
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


@pytest.fixture
def controls(tmp_path: Path) -> _Controls:
    return _Controls(tmp_path, cluster=CLUSTER)


def _by(name: str) -> Signer:
    return Signer(person=name, policy=POLICY, cluster=CLUSTER, key_name=name, key=key_of(name))


def _proposed() -> tuple[_Proposals, str]:
    """A store with the proposal to set the mode active, which bob approved."""
    store = _Proposals()
    key = propose_mode(store, _by("ada"), mode="active", now_ms=NOW, reason="go").proposal.hash
    approve(store, _by("bob"), key, now_ms=NOW)
    return store, key


def test_a_change_of_the_controls_is_stored_although_others_are_faster_many_times(
    controls: _Controls, waits: list[float]
) -> None:
    controls.others = MANY
    change_controls(controls, mode_set(choice_by("otto", "mine", NOW, "observe")))
    history = [(each.by, each.reason) for each in controls.read()[0].history]
    assert history == [*(("olga", str(at)) for at in reversed(range(MANY))), ("otto", "mine")]
    assert len(waits) == MANY
    assert 0.0 < sum(waits) < 2.0


def test_a_change_that_others_beat_each_time_leaves_nothing_and_says_to_try_again(
    controls: _Controls, waits: list[float]
) -> None:
    controls.others = ENDLESS
    with pytest.raises(TrimtabError, match=r"others changed the controls .* not stored: try again"):
        change_controls(controls, mode_set(choice_by("otto", "mine", NOW, "observe")))
    assert {each.by for each in controls.read()[0].history} == {"olga"}
    assert sum(waits) < 2.0


def test_an_approval_is_stored_although_others_are_faster_many_times() -> None:
    store, key = _proposed()
    store.others = MANY
    approve(store, _by("carol"), key, now_ms=NOW)
    assert [each.statement.person for each in require(store, key).record.statements] == ["bob", "carol"]


def test_a_record_that_others_change_each_time_stays_and_the_error_says_to_try_again() -> None:
    store, key = _proposed()
    store.others, before = ENDLESS, require(store, key).record

    def emptied(_: StoredProposal) -> ProposalRecord:
        return ProposalRecord()

    with pytest.raises(TrimtabError, match=rf"others changed the proposal {key[:12]} .* not stored: try again"):
        change_record(store, key, emptied)
    assert require(store, key).record == before


def test_a_change_is_done_also_where_another_person_approves_it_meanwhile(controls: _Controls) -> None:
    store, key = _proposed()
    store.before = lambda: approve(store, _by("carol"), key, now_ms=NOW)
    enact_approved(store, controls, key, POLICY, CLUSTER, now_ms=NOW)
    assert require(store, key).record.progress.state is ProposalState.DONE


def test_what_two_approvers_bring_about_at_once_happens_once_and_overrides_nothing_set_since(
    controls: _Controls,
) -> None:
    store, key = _proposed()

    def meanwhile() -> None:
        change_controls(controls, mode_set(choice_by("otto", "careful", NOW + 1, "observe")))
        enact_approved(store, controls, key, POLICY, CLUSTER, now_ms=NOW + 2)

    store.before = meanwhile
    enact_approved(store, controls, key, POLICY, CLUSTER, now_ms=NOW)
    stored = controls.read()[0]
    assert stored.mode is not None
    assert stored.mode.value == "observe"
    assert [(each.by, each.detail) for each in stored.history] == [("ada", "active"), ("otto", "observe")]
