"""The collector's loop.  Every interval it sweeps its share of the brokers; the collector that leads writes the tick.

    T                   asks every broker of its share, each for some seconds; publishes each answer at once
    T + 1/2 deadline    the leader asks missing brokers itself: their collector may be gone
    T + 9/10 deadline   publishes no more
    T + deadline        writes the tick, if not all sweeps had arrived before; missing brokers stay missing

What can take long runs in threads (Calls); here nothing waits for a broker.  Time is the wall clock's, and looked at
again before anything is written: this process may have been stopped for any time between two lines.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple
from uuid import uuid4

from controller.adapters.election.collectors import CollectorGroup, GroupView
from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.network.calls import Calls, FinishedCall
from controller.adapters.pulsar.server_clocks import ServerClocks
from controller.collector.balancing_reader import BalancingReader
from controller.collector.cluster_state import ClusterState
from controller.collector.health import Health
from controller.collector.news import News
from controller.collector.own_clock import OwnClock
from controller.collector.patience import ASKED_BY, patience
from controller.collector.publisher import Publisher
from controller.collector.reports import SweepName
from controller.collector.sharing import share_out
from controller.collector.state_reader import StateReader
from controller.collector.sweeper import Sweeper, Swept
from controller.collector.ticks import TickWriter
from controller.log.ticks import CollectorLog
from controller.model.errors import AccessDeniedError, LeadershipLostError, LogOfflineError, TrimtabError
from controller.settings.capacity import CapacityOverrides
from controller.settings.trimtab_toml import CollectorSettings
from controller.wire.readable import counted, utc

log = logging.getLogger(__name__)

#: Shares of the time until the tick: from when the leader asks missing brokers, and until when sweeps are published.
_HELP: Final = 0.5
#: The same until which a sweep waits for the switches of its broker, so that the tick does not come before them.
_SWITCHES: Final = 0.25
PUBLISH_SHARE: Final = 0.9
_STEP_SECONDS: Final = 0.02
#: Brokers at most that do not answer, and beside which others are asked all the same: each keeps a thread.
_MOST_SILENT: Final = 512
#: How often the group is read: so many times a period, and at least once a second.
_LOOKS: Final = 10
_LOOK_MS: Final = 1000.0

_LISTING: Final = "active brokers"
_OFFLINE: Final = "ticks"
_NOBODY: Final = "no brokers"


@dataclass(slots=True)
class _Round:
    """The state of one interval."""

    interval: int
    #: Brokers that were queried in this interval, or skipped.
    queried: set[str] = field(default_factory=set)
    #: Those that have begun to answer; and when all are to be asked, epoch ms.
    answering: set[str] = field(default_factory=set)
    #: Sweeps that wait to be published.
    swept: list[Swept] = field(default_factory=list)
    asked_by_ms: float = 0.0
    #: This collector started too late in the interval to query brokers.
    too_late: bool = False
    listed: bool = False
    #: When to try again to write a tick that failed, epoch ms.
    again_ms: float = 0.0
    #: This collector let another one lead since its clock is wrong.
    stepped_back: bool = False


class BrokerAccess(NamedTuple):
    """How a collector queries brokers."""

    sweeper: Sweeper
    state: ClusterState
    overrides: CapacityOverrides
    #: The brokers' clocks; None: that of this host is right.
    clocks: ServerClocks | None = None


class Collector:
    """One collector of a group.  ``step`` does all of its work and waits for the log alone, never for a broker."""

    def __init__(
        self,
        *,
        cluster: str,
        period_ms: int,
        settings: CollectorSettings,
        log: CollectorLog,
        group: CollectorGroup,
        brokers: BrokerAccess,
        clock: Callable[[], float] = time.time,
        metrics: CollectorMetrics | None = None,
        calls: Callable[[int], Calls] = Calls,
    ) -> None:
        self._metrics = metrics or CollectorMetrics()
        self._cluster, self._period_ms = cluster, period_ms
        self._group, self._sweeper, self._admin = group, brokers.sweeper, brokers.state.admin
        self._clock, self._every = clock, settings.state_every
        self._own_clock = OwnClock(brokers.clocks or ServerClocks(), period_ms, self._metrics)
        self._deadline_ms = settings.deadline_share * period_ms
        self._at_once, self._calls = settings.max_concurrent, calls(settings.max_concurrent)
        self._health = Health(period_ms)
        #: Of brokers: fields of their reports that are left out, and impossible rates.
        self._odd, self._rates = News(), News()
        #: Why no tick is written.
        self._news = News()
        again_ms = settings.state_every * period_ms
        self._publisher = Publisher(log, self._metrics, self._now_ms, states_again_ms=again_ms)
        self._balancing = BalancingReader(
            self._admin, calls(settings.max_concurrent), timeout_seconds=settings.timeout_seconds
        )
        self._states = StateReader(
            cluster, brokers.state, brokers.overrides, calls(1), self._publisher, self._balancing
        )
        self._view: GroupView | None = None
        self._looked_ms = 0.0
        self._ticks = TickWriter(cluster, period_ms, log)
        self._round = _Round(interval=0)

    def run(self, until: threading.Event, *, once: bool = False) -> None:
        """Collect until *until* is set; with *once* until one interval that began here has ended."""
        while not until.is_set():
            self.step()
            if once and self._round.queried and self._is_through():
                return
            until.wait(_STEP_SECONDS)

    def step(self) -> None:
        """Do the work that is due now."""
        self._metrics.health.beat()
        interval = int(self._now_ms() // self._period_ms * self._period_ms)
        if interval > self._round.interval or self._was_set_back(interval):
            self._begin(interval)
        self._look()
        if self._ticks.leads:
            self._list_brokers()
        if not self._past(PUBLISH_SHARE):
            whole = self._round.interval // self._period_ms % self._every == 0
            self._states.ask(leads=self._ticks.leads, whole=whole)
        self._ask(self._share())
        self._relieve()
        for call in self._calls.finished():
            self._take(call)
        self._states.collect_answers()
        self._release_sweeps()
        self._publisher.publish()
        if self._ticks.leads:
            self._lead()
        if self._own_clock.wrong:
            self._metrics.health.not_ready(self._own_clock.wrong)

    def _now_ms(self) -> float:
        return self._clock() * 1000

    def _was_set_back(self, interval: int) -> bool:
        """Whether the clock was set back, to *interval*, so far that this collector would stand still for long."""
        back = (self._round.interval - self._now_ms()) / 1000
        if back <= self._own_clock.tolerated_seconds:
            return False
        last = self._ticks.last
        ended = f"; skipping intervals up to {utc(last)}, which have already ended" if last >= interval else ""
        log.warning("this host's clock moved back by %.0f s or more: no interval ends twice%s", back, ended)
        if self._ticks.leads:
            # What was ticked is read again: a log with a clock of its own does not count a tick of the future.
            self._ticks.stop()
        # When brokers are asked again, when states are due and what waits to be written are of the later time.
        self._health = Health(self._period_ms)
        self._states.forget()
        self._publisher.drop_states()
        return True

    def _past(self, share: float) -> bool:
        """Whether *share* of the time until this interval's tick is over."""
        return self._now_ms() >= self._round.interval + share * self._deadline_ms

    def _is_through(self) -> bool:
        return self._ticks.ended(self._round.interval) if self._ticks.leads else self._past(1)

    def _begin(self, interval: int) -> None:
        self._calls.renew()
        self._metrics.silent(self._health.silent(self._share()))
        self._forget_removed_brokers()
        first = self._round.interval == 0
        self._round = _Round(interval=interval)
        self._ticks.begin(interval)
        self._states.begin(interval)
        self._publisher.begin(interval, interval + PUBLISH_SHARE * self._deadline_ms)
        # A collector that starts late in an interval would report brokers missing that nobody has asked.
        self._round.too_late = first and self._past(_HELP)

    def _forget_removed_brokers(self) -> None:
        if self._view is None:
            return
        brokers = {broker for share in self._view.shares.values() for broker in share}
        if self._ticks.leads:
            brokers.update(self._ticks.active)
        for memory in (self._health, self._odd, self._rates, self._sweeper, self._states, self._balancing):
            memory.retain(brokers)

    # the group

    def _look(self) -> None:
        now = self._now_ms()
        if self._view is not None and 0 <= now - self._looked_ms < min(_LOOK_MS, self._period_ms / _LOOKS):
            return
        self._looked_ms = now
        before, self._view = self._view, self._group.look()
        if before is None or before.members != self._view.members:
            log.info("collectors: %s; this is %s", ", ".join(self._view.members) or "none", self._view.me)
        self._own_clock.look()
        if self._view.leads and self._own_clock.wrong:
            self._let_another_lead(self._view)
        elif self._view.leads and not self._ticks.leads:
            self._take_over(self._view)
        elif self._ticks.leads and not self._view.leads:
            log.info("another collector writes the ticks")
            self._ticks.stop()
        self._metrics.grouped(members=len(self._view.members), share=len(self._view.share), leads=self._ticks.leads)

    def _let_another_lead(self, view: GroupView) -> None:
        """Once an interval: the others' clocks may be wrong, too."""
        if len(view.members) > 1 and not self._round.stepped_back:
            self._round.stepped_back = True
            self._step_back("this host's clock is wrong")

    def _take_over(self, view: GroupView) -> None:
        try:
            self._ticks.take_over(self._round.interval, (broker for share in view.shares.values() for broker in share))
        except LogOfflineError as error:
            # Another collector could not write it either.
            self._tell_offline(str(error))
            self._ticks.stop()
            return
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            self._step_back(f"cannot take over the ticks: {error}")
            return
        self._tell_offline("")
        self._states.forget()
        self._publisher.everything_is_due()

    def _step_back(self, why: str) -> None:
        log.warning("%s; another collector may lead", why)
        self._ticks.stop()
        self._group.step_back()

    def _tell_offline(self, why: str) -> None:
        """Log once that intervals cannot end, and once that they can again."""
        if not self._news.is_news(_OFFLINE, why):
            return
        if why:
            log.warning("%s. No interval can end until this is fixed; nothing is decided and nothing is moved", why)
        else:
            log.info("intervals can be ended again: every partition of the log can be written to")

    def _share(self) -> tuple[str, ...]:
        return self._view.share if self._view is not None else ()

    # sweeping

    def _ask(self, brokers: Iterable[str]) -> None:
        current = self._round
        unasked = [broker for broker in brokers if broker not in current.queried]
        ended = self._ticks.leads and self._ticks.ended(current.interval)
        if not unasked or ended or current.too_late or self._past(PUBLISH_SHARE):
            return
        left_ms = current.interval + PUBLISH_SHARE * self._deadline_ms - self._now_ms()
        current.asked_by_ms = self._now_ms() + ASKED_BY * left_ms
        # Brokers that failed come last, so that they delay no other.
        for broker in sorted(unasked, key=lambda name: (self._health.failures(name), name)):
            current.queried.add(broker)
            if not self._health.may_ask(broker, interval=current.interval):
                continue
            name = SweepName(
                cluster=self._cluster,
                broker=broker,
                interval=current.interval,
                sweep_id=f"{broker}@{current.interval}#{uuid4().hex[:12]}",
            )
            self._balancing.ask(broker)
            answering = partial(current.answering.add, broker)
            if not self._calls.submit(broker, partial(self._sweeper.sweep, name, int(self._now_ms()), answering)):
                self._failed(broker, "it has not finished sending an earlier answer")

    def _relieve(self) -> None:
        """Add workers while silent brokers occupy some, so that all brokers are queried in time."""
        current, now_ms = self._round, self._now_ms()
        seconds = (current.asked_by_ms - now_ms) / 1000
        waits = patience(self._calls.waiting, self._at_once, seconds)
        self._calls.add_workers_for_stuck(now_ms / 1000, waits, answering=current.answering, limit=_MOST_SILENT)
        waits = patience(self._balancing.waiting, self._at_once, seconds)
        self._balancing.add_workers_for_stuck(now_ms / 1000, waits, limit=_MOST_SILENT)

    def _take(self, call: FinishedCall) -> None:
        value, error = call.value, call.error
        if isinstance(value, Swept):
            self._swept(value)
        elif call.key == _LISTING:
            self._listed(value, error)
        else:
            self._failed(call.key, str(error) if isinstance(error, TrimtabError) else repr(error))

    def _swept(self, swept: Swept) -> None:
        broker = swept.name.broker
        if swept.name.interval != self._round.interval or self._past(PUBLISH_SHARE):
            self._failed(broker, "its answer came too late to be published")
            return
        self._metrics.swept(swept.seconds)
        failures = self._health.answered(broker)
        if failures:
            log.info("%s answers again, after %s", broker, counted(failures, "failure"))
        if self._rates.is_news(broker, "wrong" if swept.flaws else "") and swept.flaws:
            log.warning("%s: rates that are negative or not numbers count as 0: %d", broker, swept.flaws)
        odd = ", ".join(swept.report.odd)
        if self._odd.is_news(broker, odd) and odd:
            log.warning("%s: ignoring fields of its report with values that no broker can have: %s", broker, odd)
        self._round.swept.append(swept)

    def _release_sweeps(self) -> None:
        """Publish the sweeps whose broker has shown its switches, or takes too long to."""
        waiting, self._round.swept = self._round.swept, []
        for swept in waiting:
            if self._balancing.is_awaited(swept.name.broker) and not self._past(_SWITCHES):
                self._round.swept.append(swept)
            else:
                self._publisher.sweep(swept)
                self._states.broker(swept)

    def _failed(self, broker: str, why: str) -> None:
        self._metrics.no_sweep()
        if self._health.failed(broker, interval=self._round.interval):
            log.warning("no sweep of %s; it is reported missing: %s", broker, why)

    # leading

    def _list_brokers(self) -> None:
        if not self._round.listed and not self._past(PUBLISH_SHARE):
            self._round.listed = self._calls.submit(_LISTING, self._admin.brokers)

    def _listed(self, brokers: tuple[str, ...] | None, error: BaseException | None) -> None:
        if brokers is None:
            log.warning("cannot determine the active brokers, using the previous ones: %s", error)
        else:
            self._ticks.active = brokers
            self._tell_listed(len(brokers))
        if not self._ticks.leads or self._view is None:
            return
        shares = share_out(self._view.members, self._view.shares, self._ticks.active)
        if shares != {name: tuple(share) for name, share in self._view.shares.items()}:
            log.info("shared out: %s", ", ".join(f"{name}: {len(share)}" for name, share in shares.items()))
            self._group.share(shares)
            self._looked_ms = 0.0

    def _tell_listed(self, brokers: int) -> None:
        """Log once that the cluster lists no brokers, and once that it does again."""
        if not self._news.is_news(_NOBODY, "" if brokers else _NOBODY):
            return
        if brokers:
            log.info("the cluster lists active brokers again: %d; intervals can be ended", brokers)
        else:
            log.warning(
                "the cluster %s lists no active broker: no interval can end; nothing is decided and "
                "nothing is moved. If the cluster has brokers, admin_url in [pulsar] points to another cluster",
                self._cluster,
            )

    def _lead(self) -> None:
        current, ticks = self._round, self._ticks
        try:
            ticks.read()
            if ticks.ended(current.interval):
                return
            missing = ticks.missing(current.interval)
            if missing and self._past(_HELP):
                self._ask(missing)
            listed = current.listed and not self._calls.is_open(_LISTING)
            # Late only after this process was stopped or the log was away; then the next interval gets its tick.
            late = self._now_ms() >= current.interval + self._period_ms
            is_time = (listed and ticks.active and not missing) or self._past(1)
            # The clock is looked at once more: it may have been set just now.
            if not late and is_time and self._now_ms() >= current.again_ms and self._own_clock.is_right():
                self._end(current)
                self._tell_offline("")
        except LogOfflineError as error:
            current.again_ms = self._now_ms() + _LOOK_MS
            self._tell_offline(str(error))
        except AccessDeniedError:
            raise
        except LeadershipLostError as error:
            self._step_back(str(error))
        except TrimtabError as error:
            self._step_back(f"cannot end interval {utc(current.interval)}: {error}")

    def _end(self, current: _Round) -> None:
        roster = self._ticks.end(current.interval, anybody_asked=bool(current.queried))
        if roster:
            silent = sum(sweep is None for sweep in roster.values())
            self._metrics.ticked(current.interval, self._now_ms(), brokers=len(roster), silent=silent)
