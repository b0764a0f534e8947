"""Finds what is new in a cluster and sends it, in the one of several processes that was chosen for it.

What is new is stored first, and sent then: a process that dies in between leaves it to the next.
So each notification is sent at least once, and with the same id each time.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final, Protocol

from controller.adapters.election.notifications import NotificationStore
from controller.adapters.metrics.web import WebMetrics
from controller.adapters.network.calls import Calls, FinishedCall
from controller.adapters.network.deadline import Clock, Deadline, steady
from controller.doctor.finding import Finding
from controller.model.errors import TrimtabError, WireError
from controller.settings.trimtab_toml import Settings
from controller.web.notifications.detection import detect
from controller.web.notifications.facts import ProposalFact, cluster_facts, doctor_errors
from controller.web.notifications.outbox import Drop, DueNotification, Schedule, accepted, added, cleaned, waiting_for
from controller.web.notifications.webhook import NotAcceptedError
from controller.web.store.queries import PageData
from controller.wire.notifications import Notification, NotificationState, decode_state, encode_state

log = logging.getLogger(__name__)

#: Seconds between two looks at the election, at answers, and at what is new.
_ROUND_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 5.0
#: After an error.
_RETRY_SECONDS: Final = 5.0
#: At the end of the process answers that are on their way are waited for so long: else they are sent again.
_END_SECONDS: Final = 2.0
_DOCTOR: Final = "the doctor"


class Receiver(Protocol):
    """Who gets notifications."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        ...

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that it wants."""
        ...

    def send(self, notified: Notification, dropped: int = 0) -> None:
        """Have *notified* accepted, or NotAcceptedError."""
        ...


class _NotTheSenderError(TrimtabError):
    """Another process has stored a state meanwhile: it sends."""


class NotificationSender:
    """Sends notifications about the cluster in *settings* to *receivers*, while *store* says that this process does.

    *read_proposals* returns the proposals; TrimtabError where they cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        data: PageData,
        store: NotificationStore,
        receivers: Mapping[str, Receiver],
        metrics: WebMetrics,
        *,
        read_proposals: Callable[[], tuple[ProposalFact, ...]],
        ask_doctor: Callable[[Settings], tuple[Finding, ...]] = doctor_errors,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        clock: Clock = steady,
    ) -> None:
        self._settings, self._data, self._store, self._receivers = settings, data, store, receivers
        self._metrics, self._cluster = metrics, settings.cluster.name
        self._read_proposals, self._ask_doctor = read_proposals, ask_doctor
        self._now_ms, self._clock = now_ms, clock
        self._kinds = {name: each.kinds for name, each in receivers.items()}
        self._give_up_ms = settings.notifications.give_up_hours * 3_600_000
        self._calls = Calls(len(receivers) + 1)
        self._attempts: dict[str, DueNotification] = {}
        self._schedule = Schedule()
        self._state: NotificationState | None = None
        self._version = 0
        self._next_look = self._next_doctor = Deadline(0.0, clock)
        #: What the doctor found, until that is stored.
        self._doctor: tuple[Finding, ...] | None = None
        self._problem = ""

    def run(self, ended: threading.Event) -> None:
        """Send until *ended*."""
        with closing(self._store):
            while not ended.wait(_ROUND_SECONDS):
                try:
                    self.round()
                except Exception as error:  # whatever it is: nobody else would send, or say that nothing is sent
                    self._tell(error)
                    self._step_down()
                    ended.wait(_RETRY_SECONDS)
                else:
                    self._problem = ""
            self._end()

    @property
    def unfinished(self) -> int:
        """How many requests have not ended, the doctor's among them."""
        return self._calls.unfinished

    def round(self) -> None:
        """Find what is new, store it, and begin and end requests; all of it only if this process sends.

        TrimtabError where the store cannot be reached.
        """
        if not self._store.sends():
            self._step_down()
            return
        try:
            self._send()
        except _NotTheSenderError as error:
            log.info("%s: %s", self._cluster, error)
            self._step_down()

    def _send(self) -> None:
        self._metrics.sends_notifications(self._cluster, True)
        state = self._state or self._taken_over()
        self._finish(self._calls.finished())
        state = self._looked(self._state or state)
        state, drops = cleaned(state, self._now_ms(), self._give_up_ms, self._kinds)
        self._write(state, drops)
        self._begin()

    def _taken_over(self) -> NotificationState:
        """The state that the last sender left; a new one where there is none, or nothing that can be used."""
        value, self._version = self._store.read()
        state = NotificationState(cluster=self._cluster)
        if value is not None:
            try:
                state = decode_state(value, self._cluster)
            except WireError as error:
                log.error("%s: the stored state is unusable, a new one begins: %s", self._cluster, error)
        self._state = state
        log.info("%s: this process sends the notifications", self._cluster)
        return state

    def _step_down(self) -> None:
        """Forget what another process may change from now on; requests that were begun go on."""
        self._metrics.sends_notifications(self._cluster, False)
        self._state = None
        self._attempts.clear()

    def _looked(self, state: NotificationState) -> NotificationState:
        """*state*, with what is new, which is stored."""
        self._consult_doctor()
        if not self._next_look.passed:
            return state
        self._next_look = Deadline.after(_LOOK_SECONDS, self._clock)
        facts = cluster_facts(
            self._settings,
            self._data,
            self._now_ms(),
            proposals=self._proposals(),
            doctor=self._doctor,
        )
        observation, new = detect(
            state.observation, facts, silent_intervals=self._settings.notifications.silent_intervals
        )
        for each in new:
            log.info("%s", each.title)
        state, drops = added(state.model_copy(update={"observation": observation}), new, self._kinds, self._now_ms())
        self._write(state, drops)
        self._doctor = None
        return state

    def _proposals(self) -> tuple[ProposalFact, ...] | None:
        try:
            return self._read_proposals()
        except TrimtabError as error:
            log.warning("%s: the proposals cannot be read: %s", self._cluster, error)
            return None

    def _consult_doctor(self) -> None:
        minutes = self._settings.notifications.doctor_minutes
        if minutes and self._next_doctor.passed:
            self._next_doctor = Deadline.after(60.0 * minutes, self._clock)
            self._calls.submit(_DOCTOR, lambda: self._ask_doctor(self._settings))

    def _begin(self) -> None:
        """Begin the requests that are due; only what is stored is sent."""
        assert self._state is not None
        for attempt in self._schedule.due(self._state, self._clock()):
            receiver = self._receivers[attempt.webhook]
            if not self._calls.is_open(attempt.webhook):
                self._attempts[attempt.webhook] = attempt
                self._calls.submit(attempt.webhook, _sending(receiver, attempt))

    def _finish(self, calls: list[FinishedCall]) -> None:
        """Note how requests ended, and store it."""
        for call in calls:
            if call.key == _DOCTOR:
                self._take_diagnosis(call)
            else:
                self._take_answer(call)

    def _take_diagnosis(self, call: FinishedCall) -> None:
        if call.error is None:
            self._doctor = call.value
        else:
            log.warning("%s: the doctor could not be asked: %s", self._cluster, call.error)

    def _take_answer(self, call: FinishedCall) -> None:
        attempt = self._attempts.pop(call.key, None)
        self._metrics.notification_attempted(self._cluster, call.key, accepted=call.error is None)
        if attempt is None or self._state is None:
            return  # begun before another process took over, and back
        if call.error is None:
            self._write(accepted(self._state, attempt))
            return
        delay = self._schedule.failed(attempt.webhook, attempt.notification.id, self._clock())
        is_known = isinstance(call.error, NotAcceptedError)
        log.warning(
            "%s: webhook %s did not accept a notification (%s); it is tried again in %.0f s: %s",
            self._cluster,
            attempt.webhook,
            attempt.notification.kind,
            delay,
            call.error if is_known else repr(call.error),
        )

    def _write(self, state: NotificationState, drops: list[Drop] | None = None) -> None:
        """Store *state*, unless that is stored already.  _NotTheSenderError where another process has written."""
        if state != self._state or drops:
            version = self._store.write(encode_state(state), self._version)
            if version is None:
                raise _NotTheSenderError(
                    "another process has sent notifications meanwhile; what it has stored is read anew"
                )
            self._state, self._version = state, version
        for drop in drops or ():
            self._metrics.notification_dropped(self._cluster, drop.webhook, drop.why)
            why = "too many wait" if drop.why == "full" else "it was not accepted in time"
            log.error("%s: dropped for webhook %s, %s: %s", self._cluster, drop.webhook, why, drop.notification.title)
        self._schedule.forget_others(state)
        for name in self._receivers:
            self._metrics.notifications_wait(self._cluster, name, waiting_for(state, name))

    def _tell(self, error: Exception) -> None:
        text = repr(error)
        if text != self._problem:
            is_fault = not isinstance(error, TrimtabError | OSError)
            log.warning("%s: no notifications are sent now: %s", self._cluster, error, exc_info=is_fault)
        self._problem = text

    def _end(self) -> None:
        """Store how the last requests ended, as far as that is known soon."""
        deadline = Deadline.after(_END_SECONDS)
        while self._state is not None and self._attempts and not deadline.passed:
            try:
                self._finish(self._calls.finished())
            except TrimtabError:
                break
            time.sleep(0.05)
        self._calls.close()


def _sending(receiver: Receiver, attempt: DueNotification) -> Callable[[], None]:
    return lambda: receiver.send(attempt.notification, attempt.dropped)
