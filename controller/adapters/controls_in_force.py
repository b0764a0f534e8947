"""The controls of each interval: what operators have set, else the settings; maintenance windows; the age of T."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from controller.adapters.approvals.granted import ObeyedControls
from controller.adapters.approvals.in_force import Approvals
from controller.adapters.election.controls import ControlStore
from controller.model.controls import Choice, Controls, Drained, ExcludedName, OperatorControls
from controller.model.errors import ControlsCorruptError, ControlsUnreachableError, TrimtabError
from controller.model.proposals import CONTROLLER
from controller.settings.standing_controls import StandingControls
from controller.wire.controls_text import change_text, pauses_text

log = logging.getLogger(__name__)

_DAY_MS: Final = 86_400_000
#: Ten years, so data of any age are acted on.
_ANY_AGE_MS: Final = 3650 * _DAY_MS
_NOT_READ: Final = "it is not known whether somebody paused"


def mode_in_force(mode: str, store: ControlStore) -> str:
    """The mode in force; *mode*, the one in the settings, if the store cannot be read."""
    try:
        controls, _ = store.read()
    except TrimtabError as error:
        log.warning("cannot read the mode that an operator set; using the mode in the settings: %s", error)
        return mode
    return controls.mode_in_force(mode)


class ControlsInForce:
    """Read once an interval. If the store cannot be read, its last value counts; without one, no commands are
    issued."""

    def __init__(
        self,
        standing: StandingControls,
        store: ControlStore,
        now_ms: Callable[[], int],
        approvals: Approvals | None = None,
    ) -> None:
        """*standing* applies unless *store* has something else, as far as *approvals* allow; None: all of it."""
        self._approvals = approvals
        self._before: Controls | None = None
        self._mode, self._paused = standing.mode, standing.paused
        self._stale_after_ms, self._maintenance = standing.stale_after_ms, standing.maintenance
        self._store, self._now_ms = store, now_ms
        self._known: OperatorControls | None = None
        self._problem = ""

    def go_on_from(self, before: Controls | None) -> None:
        """*before*, of the journal's last decision, was in force when this leadership began; None: there is none."""
        self._before = before

    def at(self, interval: int) -> Controls:
        """The controls of *interval*, T, epoch ms."""
        unknown, now_ms = self._look(), self._now_ms()
        is_recorded = self._is_recorded(interval, now_ms)
        # A pause ends by the clock; recordings and modelled logs have their own time.
        obeyed = self._obeyed(interval, interval if is_recorded else now_ms, unknown)
        known = obeyed.controls
        pauses = known.pauses_at(interval if is_recorded else now_ms)
        explains, mode = pauses[0] if pauses else known.mode, known.mode_in_force(self._mode)
        controls = Controls(
            mode=mode,
            paused=known.is_paused(interval if is_recorded else now_ms, paused=self._paused),
            stale=now_ms - interval > self._stale_after_ms,
            decided_at_ms=0 if is_recorded else now_ms,
            reason="" if explains is None else explains.reason,
            by="" if explains is None else explains.by,
            since_ms=0 if explains is None else explains.at_ms,
            pauses=pauses,
            mode_since_ms=0 if known.mode is None else known.mode.at_ms,
            drained_since_ms=min((each.at_ms for each in known.drained), default=0),
            resumed_ms=known.resumed_ms,
            maintenance=self._maintenance.forbids(interval),
            unknown=unknown,
            drained=tuple(sorted(each.broker for each in known.drained)),
            excluded=tuple(sorted(each.name for each in known.excluded)),
            orders=known.orders,
            approved=known.approvals if mode == "approve" else (),
            rejected=known.rejections if mode == "approve" else (),
            not_approved=obeyed.not_approved,
            granted=obeyed.granted,
        )
        if not unknown:
            self._before = controls
        return controls

    def _obeyed(self, interval: int, now_ms: int, unknown: str) -> ObeyedControls:
        """What is obeyed of the stored controls in *interval*, T.

        Where they are *unknown*, nothing is issued, and nothing of what was in force is forgotten.
        """
        stored, before = self._known or OperatorControls(), self._before
        if stored.orders is not None and not stored.orders.hold_at(interval):
            stored = replace(stored, orders=None)
        if self._approvals is None:
            return ObeyedControls(controls=stored)
        if unknown:
            # The journal says it, so a leader that goes on from there knows what was in force.
            known = stored if before is None else _as_before(before)
            return ObeyedControls(controls=known, granted=() if before is None else before.granted)
        obeyed = self._approvals.obeyed(stored, before, now_ms)
        for each in obeyed.not_approved:
            if before is None or each not in before.not_approved:
                log.warning("not approved: %s", each)
        return obeyed

    def _is_recorded(self, interval: int, now_ms: int) -> bool:
        """Whether the log is a recording or a modelled one, whose times are not those of a clock.

        Only settings for such a log act on data of any age, and only its intervals are far from now.
        """
        return self._stale_after_ms >= _ANY_AGE_MS and abs(now_ms - interval) > _DAY_MS

    def _look(self) -> str:
        """Read the store. Returns why no commands may be issued, or "" if they may."""
        try:
            controls, _ = self._store.read()
        except ControlsCorruptError as error:
            self._say(str(error), "nothing is issued")
            return str(error)
        except ControlsUnreachableError as error:
            if self._known is None:
                self._say(str(error), f"{_NOT_READ}: no commands are issued until they can be read")
                return f"{_NOT_READ}: {error}"
            self._say(str(error), "the controls that were read last stay in force")
            return ""
        if self._problem:
            log.info("the controls can be read again")
        self._problem = ""
        if self._known is None or _logged_part(controls) != _logged_part(self._known):
            self._tell(controls)
        self._known = controls
        return ""

    def _say(self, problem: str, so: str) -> None:
        if not self._problem:
            log.error("the controls cannot be read, %s: %s", so, problem)
        self._problem = problem

    def _tell(self, controls: OperatorControls) -> None:
        before = () if self._known is None else self._known.history
        for each in controls.history if self._known is not None else ():
            if each not in before:
                log.info("%s", change_text(each))
        mode = controls.mode_in_force(self._mode)
        set_by = "by the settings" if controls.mode is None else f"set by {controls.mode.by}"
        log.info("mode %s, %s; %s", mode, set_by, self._pauses(controls))

    def _pauses(self, controls: OperatorControls) -> str:
        now_ms = self._now_ms()
        if not controls.is_paused(now_ms, paused=self._paused):
            return "not paused"
        return f"paused by {pauses_text(controls.pauses_at(now_ms)) or 'the settings'}"


def _as_before(before: Controls) -> OperatorControls:
    """Controls by which what was in force *before* still is, without approvals and orders."""
    drained = tuple(Drained(broker=each, by=CONTROLLER, at_ms=before.drained_since_ms) for each in before.drained)
    mode = Choice(value=before.mode, reason=before.reason, by=before.by, at_ms=before.mode_since_ms)
    excluded = tuple(ExcludedName(name=each, by=CONTROLLER, reason="", at_ms=0) for each in before.excluded)
    return OperatorControls(
        mode=mode, pauses=before.pauses, drained=drained, excluded=excluded, resumed_ms=before.resumed_ms
    )


def _logged_part(controls: OperatorControls) -> tuple[object, ...]:
    """*controls* as they are logged: without a plan's orders, which are renewed all the time."""
    return controls.mode, controls.pauses, controls.history, controls.resumed_ms
