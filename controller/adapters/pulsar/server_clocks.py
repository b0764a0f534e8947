"""The time by the brokers' clocks, from the Date of each HTTP answer, compared with this host's clock.

The median of several brokers counts, so one wrong clock among them does not matter.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, NamedTuple

from controller.adapters.process.awake import seconds_awake_or_not

log = logging.getLogger(__name__)

#: Synchronized clocks are closer than this.
TOLERATED_SECONDS: Final = 2.0
#: A server without an answer for this long does not count.
_RECENT_SECONDS: Final = 900.0
#: Servers that went are forgotten once there are more than these.
_MANY: Final = 1_000
#: HTTP's Date has whole seconds.
_WHOLE_SECOND: Final = 1.0
#: So many dates that were read are remembered.
_DATES: Final = 16


class _ClockReading(NamedTuple):
    """A server's clock, as its distance from the steady clock of this host: between these two."""

    least: float
    highest: float
    #: By the steady clock.
    at: float


class ServerClocks:
    """The clocks of the servers that answer this host; several threads hear them.

    They are stored relative to a monotonic clock, so a step of this host's clock is detected at once, even while no
    server answers.
    """

    def __init__(
        self, *, clock: Callable[[], float] = lambda: time.time(), steady: Callable[[], float] = seconds_awake_or_not
    ) -> None:
        """*clock* is the one that may be wrong, in seconds since 1970."""
        self._clock, self._steady = clock, steady
        self._readings: dict[object, _ClockReading] = {}
        self._lock = threading.Lock()
        self._has_told = False

    def began(self) -> float:
        """To be given to :meth:`hear` with the answer to a question that is sent now."""
        return self._steady()

    def hear(self, server: object, date: str | None, began: float) -> None:
        """*server* answered a question that was sent at *began* with *date*, as HTTP writes it."""
        now = self._steady()
        server_seconds = _seconds_of(date or "")
        if server_seconds is None:
            return  # it does not say
        with self._lock:
            self._readings[server] = _ClockReading(server_seconds - now, server_seconds + _WHOLE_SECOND - began, now)
            if len(self._readings) > _MANY:
                self._readings = {key: each for key, each in self._readings.items() if now - each.at < _RECENT_SECONDS}

    def ahead_seconds(self) -> float | None:
        """So far this host's clock is at least ahead of the servers' (below 0: behind); None: no server was heard.

        The median of all servers; of two, or two in the middle, the one that is closer to this host's clock.
        """
        now, ours = self._steady(), self._clock()
        with self._lock:
            recent = [each for each in self._readings.values() if now - each.at < _RECENT_SECONDS]
        if not recent:
            return None
        ahead = sorted(_beyond(ours - now - each.highest, ours - now - each.least) for each in recent)
        return min(ahead[(len(ahead) - 1) // 2], ahead[len(ahead) // 2], key=abs)

    def latest_ms(self) -> int:
        """Epoch ms by this host's clock, or by the servers' where this host's is behind: nothing counts as fresh for
        longer than it is."""
        ahead, ours = self.ahead_seconds() or 0.0, self._clock()
        is_wrong = abs(ahead) > TOLERATED_SECONDS
        if is_wrong and not self._has_told:
            log.warning(
                "%s. The later clock decides whether a command has expired. Set this host's clock (chrony, ntpd)",
                difference(ahead),
            )
        elif self._has_told and not is_wrong:
            log.info("this host's clock and the brokers' clocks agree again")
        self._has_told = is_wrong
        return int(1000 * (ours - ahead if ahead < -TOLERATED_SECONDS else ours))


@lru_cache(_DATES)
def _seconds_of(date: str) -> float | None:
    """*date*, as HTTP writes it, in seconds since 1970; None where it is none.

    All answers of a second have the same, so it is seldom parsed.
    """
    try:
        parsed = parsedate_to_datetime(date)
        # HTTP's dates are GMT, also where they do not say so.
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def difference(ahead_seconds: float) -> str:
    """How far this host's clock is from the brokers', in words."""
    way = "ahead of" if ahead_seconds > 0 else "behind"
    return f"this host's clock is {abs(ahead_seconds):.0f} s {way} the brokers' clocks"


def _beyond(least: float, highest: float) -> float:
    """The number from *least* to *highest* that is next to 0."""
    return least if least > 0 else min(highest, 0.0)
