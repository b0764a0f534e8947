"""Bugs that the simulation has to find: each takes one safeguard of the product away.

``scripts/simulate-loop --planted NAME`` plays seeds until one finds it.  They are put in from outside, so the product
has no switch for them.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any, Final
from unittest.mock import patch

from controller.adapters.approvals import approved, granted, statements
from controller.adapters.approvals.approved import ApprovedProposals
from controller.adapters.approvals.granted import GrantedControls, ObeyedControls
from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.election import changes
from controller.cli import controls
from controller.collector.ticks import TickWriter
from controller.cycle import choosing
from controller.cycle.approval import approved_commands, ruled_on
from controller.cycle.approval_check import Checked, DecisionCheck
from controller.engine import Engine
from controller.executor import attempt, loop
from controller.executor.attempt import Outcome
from controller.executor.judge import Answer, answer_after_act, answer_before_act, refusal
from controller.executor.loop import Executor
from controller.log.election.leadership import LogLeadership
from controller.log.followed import FollowedClaim, FollowedScope
from controller.log.inbox import AnsweredIds, Inbox
from controller.log.journal import LogJournal
from controller.log.journal_reading import JournalReader
from controller.log.memory import MemoryServer, _AtomicClaim
from controller.log.ticks import CollectorLog
from controller.model.controls import DecisionApproval, OperatorControls
from controller.model.journal import JournalHead
from controller.offline.plans.applying import PlanRun
from controller.offline.plans.step_lease import StepLease
from controller.wire.commands import to_command
from tests.simulation.election import SimulatedLeadership
from tests.simulation.query import Letters, Query
from tests.simulation.strangers import PATCHES, patched

_PERIOD_MS: Final = 60_000
#: The package has a function of this name.
decide: Final = import_module("controller.cycle.decide")


def _epoch_ignored() -> list[Any]:
    def refused(command: Any, *, epoch: int, newest_epoch: int, **more: Any) -> Any:
        return refusal(command, epoch=epoch, newest_epoch=epoch, **more)

    return [patch.object(loop, "refusal", refused)]


def _expiry_ignored() -> list[Any]:
    def refused(command: Any, *, now_ms: int, **more: Any) -> Any:
        return refusal(command, now_ms=0, **more)

    return [patch.object(loop, "refusal", refused)]


def _answered_before_the_act() -> list[Any]:
    def carry_out(command: Any, cluster: Any, *, may_act: Callable[[], Any], **_: Any) -> Outcome:
        refused = may_act()

        def act() -> None:
            time.sleep(10)
            cluster.act(command)

        if refused is None:
            threading.Thread(target=act).start()
        return Outcome(answer=refused or Answer(status="done"))

    return [patch.object(loop, "carry_out", carry_out)]


def _window_too_short() -> list[Any]:
    def within(issued: Any, interval: int, decided_at: int, window_ms: int) -> bool:
        return bool(_within_window(issued, interval, decided_at, window_ms - _PERIOD_MS))

    return [patch.object(decide, "within_window", within)]


def _tick_written_twice() -> list[Any]:
    return [patch.object(TickWriter, "ended", lambda self, interval: interval in self._written)]


def _pause_read_late() -> list[Any]:
    def look(self: Any) -> str:
        self.planted = getattr(self, "planted", -1) + 1
        return str(_look(self)) if self.planted % 4 == 0 else ""

    return [patch.object(ControlsInForce, "_look", look)]


def _fence_skipped() -> list[Any]:
    return [patch.object(MemoryServer, "check_holder", lambda *_: None)]


def _memory_of_the_entry_before() -> list[Any]:
    def opened(self: LogJournal) -> JournalHead:
        head, entries = _open(self), list(JournalReader(self._log, self._cluster).entries())
        if head.last is None or len(entries) < 2:
            return head
        memory = replace(entries[-2].memory, last_interval=head.last.memory.last_interval)
        return replace(head, last=replace(head.last, memory=memory))

    return [patch.object(LogJournal, "open", opened)]


def _finished_before_the_call() -> list[Any]:
    def begin(self: Inbox, partition: int, command: str) -> None:
        owned = self._owned(partition)
        owned.memory.started.add(command)
        if owned.last_polled is not None:
            owned.claim.finish(self._encoded(owned.memory), (), owned.last_polled)

    return [patch.object(Inbox, "begin", begin)]


def _begun_and_not_stored() -> list[Any]:
    return [patch.object(Inbox, "begin", lambda self, partition, command: self.memory(partition).started.add(command))]


def _split_tried_again() -> list[Any]:
    def before(command: Any, *given: Any, **more: Any) -> Any:
        return None if command.action == "split" else answer_before_act(command, *given, **more)

    def after(command: Any, *given: Any) -> Any:
        return None if command.action == "split" else answer_after_act(command, *given)

    return [patch.object(attempt, "answer_before_act", before), patch.object(attempt, "answer_after_act", after)]


def _leadership_not_checked() -> list[Any]:
    return [
        patch.object(SimulatedLeadership, "check", lambda _: None),
        patch.object(LogLeadership, "check", lambda _: None),
        patch.object(MemoryServer, "check_holder", lambda *_: None),
    ]


def _nothing_completed() -> list[Any]:
    return [patch.object(FollowedScope, "complete", lambda *_, **__: None)]


def _answers_forgotten() -> list[Any]:
    return [patch.object(AnsweredIds, "__contains__", lambda *_: False)]


def _interval_budget_too_large() -> list[Any]:
    def shares(*_: Any) -> tuple[()]:
        return ()

    return [patch.object(decide, "shares_budget", shares)]


def _letters_lost() -> list[Any]:
    def keep(self: Letters, refused: Any, batch_id: int) -> None:
        if batch_id % 2:
            _keep(self, refused, batch_id)

    return [patch.object(Letters, "store_suspects", keep)]


def _batch_with_other_records() -> list[Any]:
    def begin(self: Query, *given: Any) -> None:
        _begin(self, *given)
        self._checkpoint.offsets.pop(self._next, None)

    return [patch.object(Query, "__init__", begin)]


def _wrong_destination() -> list[Any]:
    def read(event: Any) -> Any:
        command = to_command(event)
        return replace(command, destination="broker-2.sim:8080") if command.destination else command

    return [patch.object(loop, "to_command", read)]


def _dry_run_carried_out() -> list[Any]:
    return [patch.object(loop, "to_command", lambda event: replace(to_command(event), mode="active"))]


def _expired_too_early() -> list[Any]:
    def refused(command: Any, *, now_ms: int, **more: Any) -> Any:
        return refusal(command, now_ms=now_ms + 35_000, **more)

    return [patch.object(loop, "refusal", refused)]


def _stop_all_without_fence() -> list[Any]:
    return [patch.object(controls, "fence", lambda _, store, **__: store.epoch())]


def _failure_answered_as_done() -> list[Any]:
    def after(*given: Any) -> Any:
        answer = answer_after_act(*given)
        return answer and replace(answer, status="done" if answer.status == "failed" else answer.status)

    return [patch.object(attempt, "answer_after_act", after)]


def _broker_forgotten() -> list[Any]:
    def tick(self: CollectorLog, interval: int, roster: Any, *given: Any, **more: Any) -> Any:
        fewer = dict(list(roster.items())[1:]) if roster else roster
        return _tick(self, interval, fewer, *given, **more)

    return [patch.object(CollectorLog, "tick", tick)]


def _controls_of_the_leader_before() -> list[Any]:
    def look(self: Any) -> str:
        server = self._store._server
        if self._known is None and getattr(server, "planted", None) is not None:
            self._known = server.planted
            return ""
        problem = str(_look(self))
        server.planted = self._known
        return problem

    return [patch.object(ControlsInForce, "_look", look)]


def _source_not_checked() -> list[Any]:
    def before(command: Any, *given: Any, **more: Any) -> Any:
        answer = answer_before_act(command, *given, **more)
        return None if answer is not None and answer.detail.startswith("its owner is") else answer

    return [patch.object(attempt, "answer_before_act", before)]


def _one_answer_a_batch() -> list[Any]:
    return [patch.object(Inbox, "answer", lambda self, answers: _answer(self, answers[:1]))]


def _resume_not_seen() -> list[Any]:
    return [patch.object(OperatorControls, "is_paused", lambda self, *_, **__: bool(self.pauses or self.resumed_ms))]


def _approval_not_asked() -> list[Any]:
    def issued(check: DecisionCheck, refusal: Any) -> Any:
        decision, issuing = check.memory.proposed, check.issuing
        if decision is None:
            return approved_commands(check, refusal)
        given = DecisionApproval(decision=decision.hash, by=("nobody",), at_ms=1)
        controls = replace(issuing.controls, approved=(given,))
        return approved_commands(check._replace(issuing=issuing._replace(controls=controls)), refusal)

    return [patch.object(choosing, "approved_commands", issued)]


def _approved_decision_kept() -> list[Any]:
    def issued(check: DecisionCheck, refusal: Any) -> Any:
        found = approved_commands(check, refusal)
        return replace(found, memory=check.memory) if found.commands else found

    def unchecked(self: DecisionCheck, decision: Any) -> Any:
        again = (
            self.issuing.command("unload", c.bundle, c.source, c.why, self.view.as_of_ms, destination=c.destination)
            for c in decision.commands
            if c.action == "unload"
        )
        return Checked({}, "", tuple(again), {})

    return [patch.object(choosing, "approved_commands", issued), patch.object(DecisionCheck, "check", unchecked)]


def _old_decision_issued() -> list[Any]:
    def ruled(memory: Any, controls: Any, interval: int) -> Any:
        waits = memory.proposed
        younger = waits and replace(memory, proposed=replace(waits, expires_at_ms=waits.expires_at_ms + 600_000))
        after, verdicts = ruled_on(younger or memory, controls, interval)
        return (replace(after, proposed=waits) if after.proposed else after), verdicts

    return [patch.object(decide, "ruled_on", ruled)]


def _budget_counted_once_too_few() -> list[Any]:
    return [patch.object(decide, "Ledger", lambda limits, issued, *more: _Ledger(limits, [*issued][1:], *more))]


def _epoch_in_one_partition() -> list[Any]:
    return [patch.object(LogJournal, "_epoch_events", lambda *given: _epoch_events(*given)[:1])]


def _results_not_completed() -> list[Any]:
    return [patch.object(FollowedClaim, "_complete", lambda _: None)]


def _claims_not_checked() -> list[Any]:
    def commit(self: Any, effect: str, state: bytes, results: Any, upto: int) -> None:
        with self._server.effect(f"{effect} {self._what}"):
            for out in results:
                self._server.store("results", self._place[1], out)
            self._server.done[self._place] = (state, upto)
        self.state, self._done = state, upto

    return [patch.object(_AtomicClaim, "_commit", commit)]


def _epoch_not_stored() -> list[Any]:
    return [patch.object(Inbox, "_encoded", lambda self, memory: _encoded(self, replace(memory, epoch=0)))]


def _pause_forgotten_where_it_cannot_be_read() -> list[Any]:
    def look(self: Any) -> str:
        problem = str(_look(self))
        if self._problem:
            self._known = OperatorControls()
            return ""
        return problem

    return [patch.object(ControlsInForce, "_look", look)]


def _second_look_left_out() -> list[Any]:
    def may_act(self: Any, job: Any) -> Any:
        answer = _may_act(self, job)
        is_begun = job.command.id in self._inbox.memory(job.partition).started
        return None if is_begun else answer

    return [patch.object(Executor, "_may_act", may_act)]


def _newer_epoch_not_looked_for() -> list[Any]:
    return [patch.object(Inbox, "newest_epoch", lambda *_: 0)]


def _begun_is_done_again() -> list[Any]:
    def again(*given: Any, maybe_started: bool = False, **more: Any) -> Outcome:
        return _carry_out(*given, **more)

    return [patch.object(loop, "carry_out", again)]


def _stop_all_without_pause() -> list[Any]:
    def stopped(made: Any) -> Any:
        return lambda now: replace(_stopped(made)(now), pauses=now.pauses)

    return [patch.object(changes, "stopped", stopped)]


def _interval_decided_again() -> list[Any]:
    def decided(self: Engine, snapshots: Any, *more: Any) -> Any:
        batch = list(snapshots)
        oldest = min((each.interval for each in batch), default=None)
        last = self._memory.last_interval
        if oldest is not None and oldest == last:
            self._memory = replace(self._memory, last_interval=oldest - _PERIOD_MS)
        return _decide(self, batch, *more)

    return [patch.object(Engine, "decide", decided)]


def _in_flight_forgotten() -> list[Any]:
    def opened(self: LogJournal) -> JournalHead:
        head = _open(self)
        if head.last is None:
            return head
        return replace(head, last=replace(head.last, memory=replace(head.last.memory, in_flight={})))

    return [patch.object(LogJournal, "open", opened)]


def _wave_before_the_last_is_done() -> list[Any]:
    return [patch.object(PlanRun, "_settle", lambda self, *_: self._until_decided(self._decided or 0))]


def _two_plans_at_once() -> list[Any]:
    return [
        patch.object(StepLease, "_refuse_others", lambda *_: None),
        patch.object(StepLease, "_is_mine", lambda *_: True),
    ]


def _unanswered_is_sent_again() -> list[Any]:
    def effect(command: Any, cluster: Any, failure: Any, sleep: Any) -> Any:
        observation, answer = _effect(command, cluster, failure, sleep)
        return observation, None if failure is not None else answer

    return [patch.object(attempt, "_effect", effect)]


def _approvals_not_counted() -> list[Any]:
    return [patch.object(ApprovedProposals, "why_not", lambda *_: "")]


def _signature_not_verified() -> list[Any]:
    return [patch.object(statements, "_is_signed_with", lambda *_: True)]


def _approval_without_end() -> list[Any]:
    def why_not(self: ApprovedProposals, orders: Any, now_ms: int) -> str:
        return _why_not(self, orders, now_ms) if _why_not(self, orders, now_ms - 600_000) else ""

    return [patch.object(ApprovedProposals, "why_not", why_not), patch.object(statements, "CLOCK_MS", 3_600_000)]


def _moves_not_in_the_plan() -> list[Any]:
    return [patch.object(approved, "_not_in_plan", lambda *_: "")]


def _grants_not_asked() -> list[Any]:
    return [patch.object(GrantedControls, "obeyed", lambda _, controls, *__: ObeyedControls(controls=controls))]


def _old_grant_obeyed() -> list[Any]:
    def new_grants(self: GrantedControls, controls: Any, _: Any, now_ms: int) -> Any:
        return _new_grants(self, controls, {}, now_ms)

    return [patch.object(GrantedControls, "_new_grants", new_grants)]


def _removed_pause_forgotten() -> list[Any]:
    return [patch.object(granted, "_pauses_in_force", lambda controls, *more: (controls.pauses_at(more[-1]), []))]


def _removed_exclusion_forgotten() -> list[Any]:
    return [patch.object(granted, "_excluded_in_force", lambda controls, *_: (controls.excluded, []))]


def _exclusion_ignored() -> list[Any]:
    def with_controls(policy: Any, controls: Any) -> Any:
        return _with_controls(policy, replace(controls, excluded=()))

    return [patch.object(decide, "with_controls", with_controls)]


_within_window, _look, _open, _keep, _tick, _answer, _begin = (
    decide.within_window,
    ControlsInForce._look,
    LogJournal.open,
    Letters.store_suspects,
    CollectorLog.tick,
    Inbox.answer,
    Query.__init__,
)
_with_controls: Final = decide.with_controls
_why_not: Final = ApprovedProposals.why_not
_new_grants: Final = GrantedControls._new_grants

_Ledger, _epoch_events, _encoded, _may_act, _carry_out, _stopped, _decide, _effect = (
    decide.Ledger,
    LogJournal._epoch_events,
    Inbox._encoded,
    Executor._may_act,
    attempt.carry_out,
    changes.stopped,
    Engine.decide,
    attempt._effect,
)

BUGS: Final[Mapping[str, Callable[[], list[Any]]]] = {
    each.__name__.strip("_").replace("_", "-"): each
    for each in (
        _epoch_ignored,
        _expiry_ignored,
        _answered_before_the_act,
        _window_too_short,
        _tick_written_twice,
        _pause_read_late,
        _fence_skipped,
        _memory_of_the_entry_before,
        _finished_before_the_call,
        _begun_and_not_stored,
        _split_tried_again,
        _leadership_not_checked,
        _nothing_completed,
        _answers_forgotten,
        _interval_budget_too_large,
        _letters_lost,
        _batch_with_other_records,
        _wrong_destination,
        _dry_run_carried_out,
        _expired_too_early,
        _stop_all_without_fence,
        _failure_answered_as_done,
        _broker_forgotten,
        _controls_of_the_leader_before,
        _source_not_checked,
        _one_answer_a_batch,
        _resume_not_seen,
        _approval_not_asked,
        _approved_decision_kept,
        _old_decision_issued,
        _budget_counted_once_too_few,
        _epoch_in_one_partition,
        _results_not_completed,
        _claims_not_checked,
        _epoch_not_stored,
        _pause_forgotten_where_it_cannot_be_read,
        _second_look_left_out,
        _newer_epoch_not_looked_for,
        _begun_is_done_again,
        _stop_all_without_pause,
        _interval_decided_again,
        _in_flight_forgotten,
        _wave_before_the_last_is_done,
        _two_plans_at_once,
        _unanswered_is_sent_again,
        _approvals_not_counted,
        _signature_not_verified,
        _approval_without_end,
        _moves_not_in_the_plan,
        _grants_not_asked,
        _old_grant_obeyed,
        _removed_pause_forgotten,
        _removed_exclusion_forgotten,
        _exclusion_ignored,
    )
}


@contextmanager
def in_place(bug: str | None) -> Iterator[None]:
    """Have *bug* in the product; None: no bug."""
    with ExitStack() as stack:
        if bug is not None and bug in PATCHES:
            stack.enter_context(patched(bug))
        for each in BUGS[bug]() if bug is not None and bug in BUGS else ():
            stack.enter_context(each)
        yield
