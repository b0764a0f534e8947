"""Whether this host's clock is right, by the brokers' clocks: a wrong one must end no interval."""

import logging
from typing import Final

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.pulsar.server_clocks import TOLERATED_SECONDS, ServerClocks, difference

log = logging.getLogger(__name__)

#: Of the period: a clock that is further from the brokers' clocks ends no interval.
_TOLERATED: Final = 1 / 6


class OwnClock:
    """Compares this host's clock with the brokers' clocks."""

    def __init__(self, servers: ServerClocks, period_ms: int, metrics: CollectorMetrics) -> None:
        self._servers, self._metrics = servers, metrics
        #: A clock may differ by so much.
        self.tolerated_seconds = max(TOLERATED_SECONDS, _TOLERATED * period_ms / 1000)
        #: What is wrong with it, as of the last look; "" where nothing is.
        self.wrong = ""

    def look(self) -> None:
        """Compare; log what has changed."""
        ahead = self._servers.ahead_seconds() or 0.0
        self._metrics.clock_ahead(ahead)
        was_wrong, self.wrong = self.wrong, ""
        if self._is_too_far(ahead):
            self.wrong = f"{difference(ahead)}, the limit is {self.tolerated_seconds:g} s"
            if not was_wrong:
                log.error("%s: this collector ends no interval. Set this host's clock (chrony, ntpd)", self.wrong)
        elif was_wrong:
            log.info("this host's clock and the brokers' clocks agree again")

    def is_right(self) -> bool:
        """Whether it is right now, also where it was set since the last look."""
        return not self._is_too_far(self._servers.ahead_seconds() or 0.0)

    def _is_too_far(self, ahead_seconds: float) -> bool:
        return abs(ahead_seconds) > self.tolerated_seconds
