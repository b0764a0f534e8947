"""The controls of each interval: what operators have set, else the settings; maintenance windows; the age of T."""

import logging
from collections.abc import Callable
from typing import Final

from controller.model.controls import Controls, OperatorControls
from controller.model.errors import ControlsCorruptError, ControlsUnreachableError, TrimtabError
from controller.ports.controls import ControlStore
from controller.settings.standing_controls import StandingControls

log = logging.getLogger(__name__)

_DAY_MS: Final = 86_400_000
#: Ten years: data of any age are acted on.
_ANY_AGE_MS: Final = 3650 * _DAY_MS
_NOT_READ: Final = "it is not known whether somebody paused"


def mode_in_force(mode: str, store: ControlStore) -> str:
    """The mode that holds now; *mode*, that of the settings, where the store cannot be read."""
    try:
        controls, _ = store.read()
    except TrimtabError as error:
        log.warning("the mode that an operator set cannot be read; the mode of the settings is used: %s", error)
        return mode
    return controls.in_force(mode=mode, paused=False)[0]


class ControlsInForce:
    """Read once an interval.  Where the store cannot be read its last value counts; without one nothing is issued."""

    def __init__(self, standing: StandingControls, store: ControlStore, now_ms: Callable[[], int]) -> None:
        """*standing* holds where *store* has nothing else."""
        self._mode, self._paused = standing.mode, standing.paused
        self._stale_after_ms, self._maintenance = standing.stale_after_ms, standing.maintenance
        self._store, self._now_ms = store, now_ms
        self._known: OperatorControls | None = None
        self._problem = ""

    def at(self, interval: int) -> Controls:
        """The controls of *interval*, T, epoch ms."""
        unknown, now_ms = self._look(), self._now_ms()
        known = self._known or OperatorControls()
        mode, paused, choice = known.in_force(mode=self._mode, paused=self._paused)
        return Controls(
            mode=mode,
            paused=paused,
            stale=now_ms - interval > self._stale_after_ms,
            decided_at_ms=0 if self._is_recorded(interval, now_ms) else now_ms,
            reason="" if choice is None else choice.reason,
            by="" if choice is None else choice.by,
            since_ms=0 if choice is None else choice.at_ms,
            resumed_ms=known.resumed_ms,
            maintenance=self._maintenance.forbids(interval),
            unknown=unknown,
            drained=tuple(sorted(each.broker for each in known.drained)),
            orders=None if known.orders is None or not known.orders.hold_at(interval) else known.orders,
        )

    def _is_recorded(self, interval: int, now_ms: int) -> bool:
        """Whether the log is a recording or a modelled one, which runs by no clock.

        Only settings for one act on data of any age, and only its intervals are far from now.
        """
        return self._stale_after_ms >= _ANY_AGE_MS and abs(now_ms - interval) > _DAY_MS

    def _look(self) -> str:
        """Read the store; why nothing may be issued although it was asked, "" where something may."""
        try:
            found, _ = self._store.read()
        except ControlsCorruptError as error:
            self._say(str(error), "nothing is issued")
            return str(error)
        except ControlsUnreachableError as error:
            if self._known is None:
                self._say(str(error), f"{_NOT_READ}: nothing is issued until it can be read")
                return f"{_NOT_READ}: {error}"
            self._say(str(error), "what was set last goes on to hold")
            return ""
        if self._problem:
            log.info("the controls can be read again")
        self._problem = ""
        if found != self._known:
            self._tell(found)
        self._known = found
        return ""

    def _say(self, problem: str, so: str) -> None:
        if not self._problem:
            log.error("the controls cannot be read, %s: %s", so, problem)
        self._problem = problem

    def _tell(self, found: OperatorControls) -> None:
        mode, paused, choice = found.in_force(mode=self._mode, paused=self._paused)
        who = "by the settings" if choice is None else f"by {choice.by}: {choice.reason}"
        log.info("mode %s, %s, %s", mode, "paused" if paused else "not paused", who)
