"""A proposal while `trimtab apply --proposal` carries its plan out: one process at a time, and its state in the store.

The state outlives the process: who comes after it goes on, or stays paused.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from controller.adapters.approvals.standing import ProposalSubject, standing_of, unmet
from controller.adapters.election.proposals import ProposalStore, change_record, require
from controller.model.errors import ProposalRefusedError
from controller.model.proposals import ENDED, ProposalProgress, ProposalRecord, ProposalState, StoredProposal
from controller.offline.plans.step_lease import PlanHaltedError, StepProgress
from controller.settings.approvals import ApprovalSettings
from controller.wire.readable import counted, utc

_MAX_DETAIL: Final = 500


@dataclass
class ProposalHold:
    """The proposal *key* of *store*, as this process carries it out."""

    store: ProposalStore
    key: str
    #: What it is about, verified; and the policy of this process.
    subject: ProposalSubject
    policy: ApprovalSettings
    cluster: str
    #: Epoch ms.
    now_ms: Callable[[], int]
    #: How long nobody else goes on after this process has died, ms.
    hold_ms: int
    #: A name of this process that no other has, and who started it.
    holder: str
    by: str
    #: What resumes it, as a shell takes it.
    resume_command: str
    _reported: StepProgress | None = field(default=None, init=False)
    _step: int = field(default=0, init=False)
    _steps: int = field(default=1, init=False)

    def begin(self, step: int, steps: int) -> None:
        """Carry out the *step*-th of *steps*, from 1.

        ProposalRefusedError where it is not approved, has ended, or another process carries it out.
        """
        self._step, self._steps = step, steps

        def start(stored: StoredProposal) -> ProposalRecord:
            progress, now = stored.record.progress, self.now_ms()
            if progress.state in ENDED:
                raise ProposalRefusedError(f"proposal {self.key[:12]} is {progress.state}{_because(progress)}")
            if progress.holder not in ("", self.holder) and progress.holds_until_ms > now:
                raise ProposalRefusedError(
                    f"{progress.by} carries proposal {self.key[:12]} out already; if that process has died, another"
                    f" one can go on at {utc(progress.holds_until_ms)}"
                )
            reasons = self._unmet(stored)
            if reasons:
                raise ProposalRefusedError(f"proposal {self.key[:12]} cannot be carried out: {'; '.join(reasons)}")
            state = ProposalState.PAUSED if progress.state is ProposalState.PAUSED else ProposalState.APPLYING
            since_ms = progress.at_ms if state is progress.state else now
            started = replace(progress, state=state, step=step, by=self.by, at_ms=since_ms)
            return replace(stored.record, progress=self._lock(started))

        change_record(self.store, self.key, start)

    def paused_until(self) -> str:
        """What resumes it; "" while it is not paused.  PlanHaltedError where it has ended, or counts no longer."""
        stored = require(self.store, self.key)
        progress = stored.record.progress
        if progress.state in ENDED or progress.state is None:
            raise PlanHaltedError(f"the proposal is {progress.state or 'not begun'}{_because(progress)}")
        if progress.holder != self.holder:
            raise PlanHaltedError("another process carries the proposal out by now")
        reasons = self._unmet(stored)
        if reasons:
            raise PlanHaltedError("; ".join(reasons))
        return self.resume_command if progress.state is ProposalState.PAUSED else ""

    def report(self, progress: StepProgress) -> None:
        """Store how far the step is, where that has changed, or to hold the proposal for longer."""
        stored = require(self.store, self.key).record.progress
        if progress == self._reported and stored.holds_until_ms - self.now_ms() > self.hold_ms // 2:
            return
        self._reported = progress
        self._change(lambda each: self._lock(each, progress))

    def end(self, detail: str = "") -> None:
        """The step is done; so is the proposal, after its last one.  *detail*: what else there is to say."""
        is_last = self._step == self._steps
        state, text = (ProposalState.DONE, "") if is_last else (None, f"step {self._step} of {self._steps} is done")
        text = "; ".join(filter(None, (text, detail)))
        self._change(lambda each: replace(self._free(each), state=state, detail=text, at_ms=self.now_ms()))

    def fail(self, why: str) -> str:
        """It is not carried out any further, because of *why*; returns what there is to say.

        A person who has stopped it said why already.
        """
        before = require(self.store, self.key).record.progress
        if before.state not in ENDED and before.holder == self.holder:
            detail = why[:_MAX_DETAIL]
            self._change(
                lambda each: replace(
                    self._free(each), state=ProposalState.FAILED, detail=detail, by=self.by, at_ms=self.now_ms()
                )
            )
            return why
        return f"the proposal is {before.state}{_because(before)}" if before.state in ENDED else why

    def release(self, why: str = "") -> None:
        """This process ends, because of *why*; another one may go on at once."""
        self._change(lambda each: replace(self._free(each), detail=why[:_MAX_DETAIL]))

    def _unmet(self, stored: StoredProposal) -> list[str]:
        """Why it must not be carried out, by its approvals; they may have expired since it was begun."""
        not_begun = replace(stored, record=replace(stored.record, progress=ProposalProgress()))
        standing = standing_of(not_begun, self.policy, cluster=self.cluster, now_ms=self.now_ms(), subject=self.subject)
        return [*unmet(standing)]

    def _change(self, how: Callable[[ProposalProgress], ProposalProgress]) -> None:
        """Change the progress, unless the proposal has ended, or another process has it."""

        def changed(stored: StoredProposal) -> ProposalRecord:
            progress = stored.record.progress
            if progress.state in ENDED or progress.holder != self.holder:
                return stored.record
            return replace(stored.record, progress=how(progress))

        change_record(self.store, self.key, changed)

    def _lock(self, progress: ProposalProgress, step: StepProgress | None = None) -> ProposalProgress:
        """*progress*, in which this process holds the proposal for some more time, at *step*."""
        locked = replace(progress, holder=self.holder, holds_until_ms=self.now_ms() + self.hold_ms)
        if step is None:
            return locked
        return replace(locked, wave=step.wave, waves=step.waves, moves=step.moves, moves_done=step.moves_done)

    @staticmethod
    def _free(progress: ProposalProgress) -> ProposalProgress:
        return replace(progress, holder="", holds_until_ms=0)


def step_to_do(progress: ProposalProgress, steps: int, number: int | None) -> int:
    """The step to carry out, from 1: *number*, else the one that was begun, else the one after the last that is done.

    ProposalRefusedError where a step is asked for before those before it are done.
    """
    is_running = progress.state in (ProposalState.APPLYING, ProposalState.PAUSED)
    following = min(steps, max(1, progress.step if is_running else progress.step + 1))
    if number is not None and number != following:
        raise ProposalRefusedError(
            f"step {following} of {counted(steps, 'step')} comes next, so step {number} is not carried out now"
        )
    return following


def _because(progress: ProposalProgress) -> str:
    who = f" by {progress.by}" if progress.by else ""
    when = f" at {utc(progress.at_ms)}" if progress.at_ms else ""
    return f"{who}{when}{f': {progress.detail}' if progress.detail else ''}"
