"""A proposal is carried out, paused, resumed and stopped; its state outlives the process that carries it out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from controller.adapters.approvals.contents import verified_content
from controller.adapters.approvals.making import approve, propose_plan, signer_of
from controller.adapters.approvals.requests import pause_proposal, resume_proposal, stop_proposal
from controller.adapters.election.memory import MemoryProposals
from controller.model.errors import ProposalRefusedError, TrimtabError
from controller.model.proposals import ProposalProgress, ProposalState
from controller.offline.plans.applying import Applied, PlanRun
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.proposal_hold import ProposalHold, step_to_do
from controller.offline.plans.step_lease import PlanHaltedError
from controller.planning.plans.plan import DRAIN, Plan
from controller.wire.plan import encode_plan, hash_of
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in
from tests.proposals import key_of, policy
from tests.records import CLUSTER, PERIOD

pytestmark = pytest.mark.slow

POLICY = policy(expires_minutes=60)
BROKER = "broker-1:8080"
HOLD_MS = 3 * PERIOD


@dataclass
class Proposed:
    """A plan that drains a broker in several waves, proposed by ada on a modelled cluster."""

    live: LiveCluster
    store: MemoryProposals
    plan: Plan

    @property
    def key(self) -> str:
        return hash_of(self.plan)

    @property
    def state(self) -> ProposalState | None:
        stored = self.store.read(self.key)
        assert stored is not None
        return stored.record.progress.state

    def approve(self, name: str = "bob") -> None:
        signer = signer_of(key_of(name), POLICY, CLUSTER)
        approve(self.store, signer, self.key, now_ms=self.live.interval)

    def hold(self, holder: str = "this") -> ProposalHold:
        content = verified_content(self.store.read(self.key).proposal, self.store.content(self.key))  # type: ignore[union-attr]
        return ProposalHold(
            store=self.store,
            key=self.key,
            subject=content.subject,
            policy=POLICY,
            cluster=CLUSTER,
            now_ms=lambda: self.live.interval,
            hold_ms=HOLD_MS,
            holder=holder,
            by="ada",
            resume_command="resume it",
        )

    def begun(self, holder: str = "this") -> tuple[PlanRun, ProposalHold]:
        hold = self.hold(holder)
        hold.begin(1, 1)
        run = self.live.run(self.plan, holder=holder)
        run.around = replace(run.around, paused_until=hold.paused_until, report=hold.report)
        return run, hold

    def carry_out(self, holder: str = "this") -> Applied:
        run, hold = self.begun(holder)
        try:
            done = run.run()
        except PlanHaltedError as error:
            raise PlanHaltedError(hold.fail(str(error))) from error
        hold.end()
        return done

    def request(self, how: Callable[..., object], by: str = "bob") -> None:
        how(self.store, self.live.store, self.key, by=by, reason="clients complain", now_ms=self.live.interval)

    def at_command(self, number: int, then: Callable[[], None]) -> None:
        """Call *then* once, before the interval after the one that issued the *number*-th command."""
        seen = [False]

        def look() -> None:
            if len(self.live.commands) >= number and not seen[0]:
                seen[0] = True
                then()

        self.live.meanwhile = look


@pytest.fixture
def proposed(tmp_path: Path) -> Proposed:
    live = LiveCluster(settings_in(tmp_path, broker_conf=QUIET, more=SETTINGS))
    asked = PlanRequest(kind=DRAIN, brokers=(BROKER,), wave_moves=2, wave_moves_per_broker=2)
    plan = planned_cluster(live.source(), asked).plan
    store = MemoryProposals()
    propose_plan(store, signer_of(key_of("ada"), POLICY, CLUSTER), encode_plan(plan), now_ms=live.interval)
    assert len(plan.steps[0].waves) > 2
    return Proposed(live, store, plan)


def test_an_approved_plan_is_carried_out_and_says_how_far_it_is(proposed: Proposed) -> None:
    proposed.approve()
    told, since, begun_at = list[tuple[str, int, int]](), set[int](), proposed.live.interval

    def note() -> None:
        progress = proposed.store.read(proposed.key).record.progress  # type: ignore[union-attr]
        since.add(progress.at_ms)
        told.append((str(progress.state), progress.wave, progress.moves_done))

    proposed.live.meanwhile = note
    assert proposed.carry_out().done == len(proposed.plan.moves)
    assert proposed.state is ProposalState.DONE
    assert {state for state, _, _ in told} == {"applying"}
    assert since == {begun_at}, "when it began, whatever wave it is at"
    assert [done for *_, done in told] == sorted(done for *_, done in told)
    assert {wave for _, wave, _ in told} >= set(range(1, len(proposed.plan.steps[0].waves) + 1))


def test_without_enough_approvals_nothing_is_handed_over(proposed: Proposed) -> None:
    with pytest.raises(ProposalRefusedError, match="it has 0 of 1 approvals"):
        proposed.carry_out()
    assert (proposed.live.commands, proposed.live.controls.orders) == ([], None)


def test_a_pause_takes_the_moves_back_at_once_and_holds_until_a_person_resumes(proposed: Proposed) -> None:
    proposed.approve()
    issued = list[int]()

    def pause() -> None:
        proposed.request(pause_proposal)
        orders = proposed.live.controls.orders
        assert orders is not None
        assert orders.moves == ()
        issued.append(len(proposed.live.commands))
        intervals = iter(range(100))

        def later() -> None:
            if next(intervals) == 8:
                assert len(proposed.live.commands) == issued[0]
                assert proposed.state is ProposalState.PAUSED
                proposed.request(resume_proposal)

        proposed.live.meanwhile = later

    proposed.at_command(2, pause)
    assert proposed.carry_out().done == len(proposed.plan.moves)
    assert issued[0] < len(proposed.plan.moves)
    assert any("paused: nothing is issued until `resume it`" in text for text in proposed.live.said)
    actions = [each.action for each in proposed.live.controls.history]
    assert actions == ["apply", "pause-plan", "resume-plan"]


def test_a_pause_holds_over_the_death_of_who_carries_it_out(proposed: Proposed) -> None:
    proposed.approve()

    def die() -> None:
        proposed.request(pause_proposal)
        proposed.live.gone.add("first")

    proposed.at_command(2, die)
    with pytest.raises(TrimtabError):
        proposed.begun("first")[0].run()
    proposed.live.meanwhile = lambda: None
    with pytest.raises(ProposalRefusedError, match=r"carries proposal .* out already"):
        proposed.begun("second")
    for _ in range(5):
        proposed.live.advance()
    before, intervals = len(proposed.live.commands), iter(range(100))

    def later() -> None:
        if next(intervals) == 6:
            assert len(proposed.live.commands) == before
            proposed.request(resume_proposal)

    proposed.live.meanwhile = later
    assert proposed.carry_out("second").done == len(proposed.plan.moves)
    assert proposed.state is ProposalState.DONE


def test_what_one_process_left_undone_when_it_died_another_finishes(proposed: Proposed) -> None:
    proposed.approve()
    proposed.at_command(2, lambda: proposed.live.gone.add("first"))
    with pytest.raises(TrimtabError):
        proposed.begun("first")[0].run()
    assert str(proposed.state) == "applying"
    for _ in range(5):
        proposed.live.advance()
    assert proposed.carry_out("second").done == len(proposed.plan.moves)
    assert str(proposed.state) == "done"
    assert len({command.bundle for command in proposed.live.commands}) == len(proposed.live.commands)


def test_a_stopped_proposal_ends_for_good(proposed: Proposed) -> None:
    proposed.approve()
    proposed.at_command(2, lambda: proposed.request(stop_proposal))
    with pytest.raises(PlanHaltedError, match=r"stopped by bob at .*: clients complain"):
        proposed.carry_out()
    issued = len(proposed.live.commands)
    assert (proposed.state, proposed.live.controls.orders) == (ProposalState.STOPPED, None)
    proposed.live.meanwhile = lambda: None
    with pytest.raises(ProposalRefusedError, match="is stopped by bob"):
        proposed.carry_out("second")
    for _ in range(3):
        proposed.live.advance()
    assert len(proposed.live.commands) == issued < len(proposed.plan.moves)


@pytest.mark.parametrize("how", [pause_proposal, resume_proposal, stop_proposal])
def test_what_nobody_has_begun_is_neither_paused_nor_stopped(proposed: Proposed, how: Callable[..., object]) -> None:
    proposed.approve()
    with pytest.raises(ProposalRefusedError, match="nobody has begun to carry out"):
        proposed.request(how)
    assert proposed.live.controls.history == ()


def test_a_proposal_that_expires_on_the_way_is_not_carried_out_further(proposed: Proposed) -> None:
    proposed.approve()
    run, hold = proposed.begun()
    hold.now_ms = lambda: proposed.live.interval + (61 * 60_000 if len(proposed.live.commands) >= 2 else 0)
    with pytest.raises(PlanHaltedError, match="it has expired"):
        run.run()
    assert len(proposed.live.commands) < len(proposed.plan.moves)


def test_a_failed_move_ends_the_proposal_with_the_reason(proposed: Proposed) -> None:
    proposed.approve()
    proposed.live.diverted = dict.fromkeys(proposed.live.bundles_on(BROKER), BROKER)
    with pytest.raises(PlanHaltedError):
        proposed.carry_out()
    assert proposed.state is ProposalState.FAILED
    stored = proposed.store.read(proposed.key)
    assert stored is not None
    assert stored.record.progress.detail


def test_only_one_process_carries_a_proposal_out_and_another_goes_on_once_it_has_ended(proposed: Proposed) -> None:
    proposed.approve()
    _, first = proposed.begun("first")
    with pytest.raises(ProposalRefusedError, match=r"ada carries proposal .* another one can go on at"):
        proposed.begun("second")
    first.release()
    assert proposed.carry_out("second").done == len(proposed.plan.moves)


def test_who_was_replaced_hands_nothing_over_any_more(proposed: Proposed) -> None:
    proposed.approve()
    run, first = proposed.begun("first")
    first.release()
    proposed.begun("second")
    with pytest.raises(PlanHaltedError, match="another process carries the proposal out by now"):
        run.run()
    assert proposed.live.commands == []


def test_a_request_repeated_is_no_error_and_withdraws_again(proposed: Proposed) -> None:
    proposed.approve()
    proposed.begun()
    proposed.request(pause_proposal)
    proposed.request(pause_proposal)
    assert proposed.state is ProposalState.PAUSED


def test_steps_come_one_after_the_other() -> None:
    none, second = ProposalProgress(), ProposalProgress(state=ProposalState.APPLYING, step=2)
    assert step_to_do(none, 3, None) == 1
    assert step_to_do(ProposalProgress(step=1), 3, None) == 2
    assert step_to_do(second, 3, None) == 2
    with pytest.raises(ProposalRefusedError, match="step 1 of 3 steps comes next"):
        step_to_do(none, 3, 2)
