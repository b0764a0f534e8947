"""Ticks, which end intervals; the collector that leads writes them."""

import logging
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Final

from controller.collector.roster import Arrivals
from controller.log.ticks import CollectorLog
from controller.model.errors import LogOfflineError, TrimtabError
from controller.wire.readable import counted, utc

log = logging.getLogger(__name__)

#: The log's clock and ours may differ by so much, ms.
_SKEW_MS: Final = 60_000
#: So many of the latest ticks are known one by one: a day of them, at a minute.
_REMEMBERED: Final = 1440


class TickWriter:
    """Reads which sweeps have arrived in the log, and writes the ticks; only while this collector leads."""

    def __init__(self, cluster: str, period_ms: int, log: CollectorLog) -> None:
        self._cluster, self._period_ms, self._log = cluster, period_ms, log
        self._arrivals = Arrivals(cluster, period_ms)
        self._has_told = False
        #: Intervals that get no other tick, whatever the clock says: the latest that this process wrote, the earliest
        #: first, and all up to the one in ``_before``.
        self._written: list[int] = []
        self._before = 0
        self.leads = False
        #: The active brokers as last listed; () while they are not known.
        self.active: tuple[str, ...] = ()

    def take_over(self, interval: int, known: Iterable[str]) -> None:
        """Become the writer of ticks from *interval* on.  TrimtabError: not possible.

        *known*: brokers that count as active until the next listing."""
        arrivals = Arrivals(self._cluster, self._period_ms)
        active = frozenset(self.active or known)
        self._log.lead(interval - self._period_ms - _SKEW_MS)
        arrivals.ingest(self._log.arrived(), active, with_ticks=True)
        self._arrivals, self.leads = arrivals, True
        self._before = max(self._before, arrivals.ticked)
        self.active = tuple(sorted(active))
        last = f"the last one was for interval {utc(arrivals.ticked)}" if arrivals.ticked else "there is none yet"
        log.info("this collector writes the ticks; %s", last)

    def stop(self) -> None:
        """Let another one lead."""
        self.leads = False
        self._log.follow()

    def begin(self, interval: int) -> None:
        """*interval* begins: forget what came for intervals before the last one, with a tick or without."""
        self._arrivals.forget(interval - 2 * self._period_ms)

    def read(self) -> None:
        """Process the records that arrived.  TrimtabError: the log cannot be read."""
        # Nobody else can write a tick now: one that arrives is our own, or forged.
        self._arrivals.ingest(self._log.arrived(), frozenset(self.active), with_ticks=False)

    @property
    def last(self) -> int:
        """The last interval that has its tick, as far as this process knows; 0: none is known."""
        return max(self._arrivals.ticked, self._before, *self._written)

    def ended(self, interval: int) -> bool:
        """Whether *interval* has its tick, whoever wrote it."""
        return max(self._arrivals.ticked, self._before) >= interval or interval in self._written

    def missing(self, interval: int) -> tuple[str, ...]:
        """The active brokers whose sweep of *interval* is not complete in the log, sorted."""
        return self._arrivals.missing(interval, self.active)

    def end(self, interval: int, *, anybody_asked: bool) -> Mapping[str, str | None]:
        """Write the tick of *interval*, with what has arrived; returns its roster, empty where no tick was written.

        No tick is written if no broker was queried and no sweep arrived: a gap in the log shows that nothing was
        collected, while a roster of missing brokers would show that they were silent.  Nor if no broker is active.

        LogOfflineError where it cannot be written now and was not.  LeadershipLostError where another one leads by now;
        another TrimtabError: it may be written, or not.
        """
        roster = self._arrivals.roster(interval, self.active)
        if not roster or not (self._arrivals.complete(interval) or anybody_asked):
            return {}
        try:
            self._log.tick(interval, roster)
        except LogOfflineError:
            raise
        except TrimtabError:
            self.leads = False
            raise
        self._arrivals.end(interval)
        heappush(self._written, interval)
        if len(self._written) > _REMEMBERED:
            # The earliest, not the one that was written first: that may be of a time that the clock was ahead.
            self._before = max(self._before, heappop(self._written))
        silent = [broker for broker, sweep in roster.items() if sweep is None]
        ended = utc(interval)
        answered, total = len(roster) - len(silent), counted(len(roster), "broker")
        log.info("interval %s ended with %d of %s", ended, answered, total, extra={"interval": ended})
        if silent:
            log.debug("missing in interval %s: %s", ended, ", ".join(silent))
        self._tell_passed_over()
        return roster

    def _tell_passed_over(self) -> None:
        """Log once that chunks do not count, and once that all do again."""
        passed, self._arrivals.passed_over = self._arrivals.passed_over, {}
        if passed and not self._has_told:
            reasons = "; ".join(f"{number} {why}" for why, number in sorted(passed.items()))
            log.warning(
                "skipping chunks of sweeps in the metrics topic: %s; one names broker %.100r. Check who "
                "may write to the topic, and the clocks of collectors and of Kafka",
                reasons,
                self._arrivals.example,
            )
        elif self._has_told and not passed:
            log.info("no more chunks of sweeps in the metrics topic are skipped")
        self._has_told = bool(passed)
