"""Restarts the brokers that a step of a plan has emptied, one after the other, by a command of the operator: the hook.

How far it is lies in the operator's controls, so another process can go on wherever this one ends.  A broker counts as
restarted when another process of it is healthy: what the hook says is not enough.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from controller.model.controls import OperatorControls, PlanRestarts
from controller.model.errors import TrimtabError
from controller.model.some_of import some_of
from controller.offline.plans.step_lease import MINUTE_MS, PATIENCE, STALE, StepLease
from controller.wire.readable import counted, lasting, utc

_MAX_NAMED: Final = 5


class RestartFailedError(TrimtabError):
    """A broker was not restarted as it should be, so no other one is.  The same command goes on there."""


class BrokerProbe(Protocol):
    """What a broker says of itself.  Both raise TrimtabError where it is not active, or does not answer."""

    def started_ms(self, broker: str) -> int:
        """When the process of *broker* started, epoch ms."""
        ...

    def require_healthy(self, broker: str) -> None:
        """TrimtabError unless *broker* can serve."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRestarts:
    """How brokers are restarted."""

    #: Restarts a broker, and calls its second argument every few seconds meanwhile.  Returns why it failed; "": it did
    #: not.
    hook: Callable[[str, Callable[[], None]], str]
    probe: BrokerProbe
    #: After the hook a broker has to be healthy within so many ms.
    limit_ms: int
    #: Whether a broker that is back is released; else its release needs an approval of its own.
    releases: bool = True


def first_step(controls: OperatorControls, plan: str) -> int:
    """The step of *plan*, a hash, with which a process goes on by the *controls*, from 1."""
    known = controls.restarts
    return known.step if known is not None and known.plan == plan else 1


class StepRestarts:
    """The restarts of one step, whose moves are done, as this process carries them out."""

    def __init__(self, lease: StepLease, how: BrokerRestarts) -> None:
        self._lease, self._how, self._around = lease, how, lease.around
        self._brokers, self._began_ms = lease.plan.emptied_by(lease.number), lease.around.now_ms()
        self._patience_ms = PATIENCE * lease.plan.period_ms + MINUTE_MS
        #: Brokers that were restarted, and what else there is to say.
        self.restarted, self.notes = list[str](), list[str]()

    def has_begun(self) -> bool:
        """Whether a broker of the step is being restarted, or was."""
        return bool(self._lease.restarts(self._controls()).broker)

    def run(self) -> None:
        """Restart the brokers that are still drained.  RestartFailedError where one of them does not come back."""
        self._hold()
        for number, broker in enumerate(self._brokers):
            controls = self._controls()
            progress = self._lease.restarts(controls)
            if controls.drains(broker) and self._restart(broker, progress):
                continue
            if progress.broker not in self._brokers[number:]:
                self._note(f"{broker} is not drained any more, so it was not restarted")
            self._until_released(broker)

    def _restart(self, broker: str, progress: PlanRestarts) -> bool:
        """Restart *broker*; False where a person has released it meanwhile."""
        is_first = progress.broker != broker
        before = self._started_ms(broker) if is_first else progress.started_ms
        is_done = not is_first and self._has_been_restarted(broker, progress)
        if not is_done and not self._run_hook(broker, before, may_be_down=not is_first):
            return False
        self._until_swept(broker, self._until_healthy(broker, before))
        self.restarted.append(broker)
        if not self._how.releases:
            release = self._around.command("release", broker, "--key", "FILE")
            self._note(f"{broker} is back and healthy, and stays drained: `{release}` proposes its release")
            return True
        self._lease.release(broker)
        self._until_released(broker)
        self._around.say(f"{broker}: back and healthy, released")
        return True

    def _has_been_restarted(self, broker: str, progress: PlanRestarts) -> bool:
        """Whether the hook that an earlier process ran has restarted *broker*, which may be starting still."""
        started_ms = self._seen_ms(broker)
        if started_ms is not None:
            return started_ms != progress.started_ms
        if progress.hook_failed:
            return False
        self._around.say(f"{broker} does not answer: waiting whether it is being started")
        try:
            self._until_healthy(broker, progress.started_ms)
        except RestartFailedError:
            return False
        return True

    def _run_hook(self, broker: str, before: int, *, may_be_down: bool) -> bool:
        """Have the hook restart *broker*; False where a person has released it, so that no hook ran."""
        while self._controls().drains(broker):
            if not may_be_down or self._seen_ms(broker) is not None:
                self._require_empty(broker)
            if not self._hold():
                break
            while self._hold():  # it may get bundles in a pause
                self._lease.pause()
        if not self._lease.begin_restart(broker, before):
            return False
        self._around.say(f"{broker}: empty, the hook restarts it")
        problems = list[TrimtabError]()

        def meanwhile() -> None:
            try:
                self._hold()
            except TrimtabError as error:  # a restart is not broken off half way
                problems.append(error)

        why = self._how.hook(broker, meanwhile)
        if why:
            self._lease.hook_failed(why)
            raise self._failed(broker, f"the hook {why}")
        if problems:
            raise problems[0]
        return True

    def _require_empty(self, broker: str) -> None:
        """RestartFailedError while a restart of *broker* would cut off clients, or nobody knows whether it would."""
        source = self._around.source()
        view, row = source.view, source.view.brokers.code_of.get(broker)
        age_ms = self._around.now_ms() - view.as_of_ms
        if age_ms > STALE * source.period_ms + MINUTE_MS:
            raise self._failed(broker, f"nobody knows whether it is empty: the newest load is {_since(age_ms)} old")
        if row is None or broker in view.missing:
            raise self._failed(broker, "nobody knows whether it is empty: the newest load has no data of it")
        owned = np.flatnonzero((view.bundles.broker == row) & view.bundles.owned).tolist()
        remaining = [view.bundles.names[each] for each in owned if not source.stays_by_a_setting(each)]
        if remaining:
            bundles = counted(len(remaining), "bundle")
            raise self._failed(broker, f"it has {bundles}: {some_of(remaining, _MAX_NAMED)}")

    def _until_healthy(self, broker: str, before: int) -> int:
        """Wait until another process than that of *before* is healthy; when it was seen so, epoch ms."""
        began_ms, why = self._around.now_ms(), ""
        while True:
            try:
                if self._how.probe.started_ms(broker) == before:
                    why = f"its process is still the one that started at {utc(before)}: the hook has not restarted it"
                else:
                    self._how.probe.require_healthy(broker)
                    return self._around.now_ms()
            except TrimtabError as error:
                why = str(error)
            waited_ms = self._around.now_ms() - began_ms
            if waited_ms >= self._how.limit_ms:
                raise self._failed(broker, f"it is not back and healthy after {_since(waited_ms)}: {why}")
            self._hold()
            self._lease.pause()

    def _until_swept(self, broker: str, back_ms: int) -> None:
        """Wait until the collectors have read the load of *broker* after *back_ms*, epoch ms."""

        def is_swept() -> bool:
            view = self._around.source().view
            return view.as_of_ms > back_ms and broker in view.brokers.code_of and broker not in view.missing

        self._until(broker, is_swept, "the collectors have not read its load")

    def _until_released(self, broker: str) -> None:
        """Wait until the controllers have decided with *broker* released."""

        def is_released() -> bool:
            last = self._around.progress(self._lease.sha256, self._around.now_ms()).last
            if last is None or broker in last.controls.drained:
                return False
            return last.controls.orders is not None and last.controls.orders.holder == self._around.holder

        self._until(broker, is_released, "the controllers have not obeyed its release")

    def _until(self, broker: str, is_so: Callable[[], bool], why: str) -> None:
        began_ms, problem = self._around.now_ms(), ""
        while True:
            try:
                if is_so():
                    return
                problem = ""
            except TrimtabError as error:  # the log may lie on the brokers that are restarted
                problem = f" ({error})"
            waited_ms = self._around.now_ms() - began_ms
            if waited_ms > self._patience_ms:
                status = self._around.command("status")
                raise self._failed(broker, f"{why} for {_since(waited_ms)}{problem}: see `{status}`")
            self._hold()
            self._lease.pause()

    def _started_ms(self, broker: str) -> int:
        try:
            return self._how.probe.started_ms(broker)
        except TrimtabError as error:
            raise self._failed(broker, f"nobody could tell later whether it was: {error}") from error

    def _seen_ms(self, broker: str) -> int | None:
        """When the process of *broker* started, epoch ms; None where it does not answer."""
        try:
            return self._how.probe.started_ms(broker)
        except TrimtabError:
            return None

    def _hold(self) -> bool:
        """Keep the plan in force; whether the controllers, or this plan alone, are paused."""
        return self._lease.hold(self._lease.orders((), number=0, checked_at=self._began_ms, held_back=False))

    def _controls(self) -> OperatorControls:
        return self._around.change(lambda now: now)

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._around.say(text)

    def _failed(self, broker: str, why: str) -> RestartFailedError:
        return RestartFailedError(
            f"{broker} is not restarted, and neither is any other: {why}; once that is mended, run the same command"
            f" again: it goes on with {broker}"
        )


def _since(ms: float) -> str:
    return lasting(ms / 1000)
