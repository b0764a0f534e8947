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
from typing import Final
from uuid import uuid4

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.network.calls import Calls, FinishedCall
from controller.adapters.pulsar.server_clocks import TOLERATED_SECONDS, ServerClocks, difference
from controller.collector.cluster_state import ClusterState, Found
from controller.collector.health import Health
from controller.collector.reports import SweepName
from controller.collector.sharing import share_out
from controller.collector.states import Due, State, broker_state, key_of, records
from controller.collector.sweeper import Sweeper, Swept
from controller.collector.ticks import TickWriter
from controller.model.errors import AccessDeniedError, LeadershipLostError, LogOfflineError, TrimtabError
from controller.ports.collectors import CollectorGroup, CollectorLog, GroupView
from controller.settings.capacity import CapacityOverrides
from controller.settings.trimtab_toml import CollectorSettings
from controller.wire.base import printable
from controller.wire.chunks import KeyValue
from controller.wire.metrics import BundleData
from controller.wire.readable import counted, utc

log = logging.getLogger(__name__)

#: Shares of the time until the tick: from when the leader asks missing brokers, and until when sweeps are published.
_HELP: Final = 0.5
PUBLISH_SHARE: Final = 0.9
_STEP_SECONDS: Final = 0.02
#: Of the period: a clock that is further from the brokers' clocks ends no interval.
_TOLERATED: Final = 1 / 6
#: How often the group is read: so many times a period, and at least once a second.
_LOOKS: Final = 10
_LOOK_MS: Final = 1000.0

_LISTING: Final = "active brokers"
_STATE: Final = "cluster state"
_DOMAINS: Final = "failure domains"
_SWEEPS, _STATES = "sweep", "state"


@dataclass(slots=True)
class _Round:
    """What was done for one interval."""

    interval: int
    #: Brokers that this collector has asked, or had reason not to ask.
    asked: set[str] = field(default_factory=set)
    #: This collector started too late in the interval to ask anybody.
    too_late: bool = False
    listed: bool = False
    read: bool = False
    outbox: list[Swept] = field(default_factory=list)
    #: When to try again to publish the sweeps, epoch ms; states that are refused wait for the next interval.
    outbox_again_ms: float = 0.0
    states_refused: bool = False
    #: When to try again to write a tick that failed, epoch ms.
    again_ms: float = 0.0
    #: This collector let another one lead since its clock is wrong.
    stepped_back: bool = False


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
        sweeper: Sweeper,
        state: ClusterState,
        overrides: CapacityOverrides,
        servers: ServerClocks | None = None,
        clock: Callable[[], float] = time.time,
        metrics: CollectorMetrics | None = None,
        calls: Callable[[int], Calls] = Calls,
    ) -> None:
        """*servers*: the brokers' clocks; without them, that of this host is right."""
        self._metrics = metrics or CollectorMetrics()
        self._cluster, self._period_ms = cluster, period_ms
        self._log, self._group, self._sweeper, self._state = log, group, sweeper, state
        self._overrides, self._clock, self._every = overrides, clock, settings.state_every
        self._servers = servers or ServerClocks()
        self._tolerated_seconds = max(TOLERATED_SECONDS, _TOLERATED * period_ms / 1000)
        self._deadline_ms = settings.deadline_share * period_ms
        self._calls = calls(settings.max_concurrent)
        self._reading = calls(1)
        self._health = Health(period_ms)
        #: Brokers whose impossible rates have been logged.
        self._flawed: frozenset[str] = frozenset()
        #: Broker -> what was logged of it: fields of its report that are left out, or why its state is.
        self._odd: dict[str, str] = {}
        self._due = Due(settings.state_every * period_ms)
        self._states: dict[tuple[str, str], State] = {}
        #: What could not be read of the cluster, and why: of what was logged.
        self._unread: dict[str, str] = {}
        self._domains: dict[str, str] | None = None
        self._knows_all = False
        self._pulsar_leader = ""
        self._view: GroupView | None = None
        self._looked_ms = 0.0
        self._ticks = TickWriter(cluster, period_ms, log)
        #: What was logged last: why no tick can be written, and what could not be published.
        self._offline = ""
        #: What is wrong with this host's clock, "" where nothing is.
        self._wrong_clock = ""
        self._unpublished: set[str] = set()
        self._round = _Round(interval=0)

    def run(self, until: threading.Event, *, once: bool = False) -> None:
        """Collect until *until* is set; with *once* until one interval that began here has ended."""
        while not until.is_set():
            self.step()
            if once and self._round.asked and self._is_through():
                return
            until.wait(_STEP_SECONDS)

    def step(self) -> None:
        """Do what is due now."""
        self._metrics.health.beat()
        interval = int(self._now_ms() // self._period_ms * self._period_ms)
        if interval > self._round.interval or self._was_set_back():
            self._begin(interval)
        self._look()
        if self._ticks.leads:
            self._list_brokers()
        self._read_state()
        self._ask(self._share())
        for call in (*self._calls.finished(), *self._reading.finished()):
            self._take(call)
        self._publish()
        if self._ticks.leads:
            self._lead()
        if self._wrong_clock:
            self._metrics.health.not_ready(self._wrong_clock)

    def _now_ms(self) -> float:
        return self._clock() * 1000

    def _was_set_back(self) -> bool:
        """Whether the clock was set back, so far that this collector would stand still for long."""
        back = (self._round.interval - self._now_ms()) / 1000
        if back <= self._tolerated_seconds:
            return False
        log.warning("this host's clock was set back by %.0f s or more: no interval ends twice", back)
        # When brokers are asked again, when states are due and what waits to be written are of the later time.
        self._health, self._states, self._knows_all = Health(self._period_ms), {}, False
        self._due.forget()
        return True

    def _past(self, share: float) -> bool:
        """Whether *share* of the time until this interval's tick is over."""
        return self._now_ms() >= self._round.interval + share * self._deadline_ms

    def _is_through(self) -> bool:
        return self._ticks.ended(self._round.interval) if self._ticks.leads else self._past(1)

    def _begin(self, interval: int) -> None:
        self._calls.renew()
        self._metrics.silent(self._health.silent(self._share()))
        first = self._round.interval == 0
        self._round = _Round(interval=interval)
        self._ticks.begin(interval)
        # A collector that starts late in an interval would report brokers missing that nobody has asked.
        self._round.too_late = first and self._past(_HELP)

    # the group

    def _look(self) -> None:
        now = self._now_ms()
        if self._view is not None and 0 <= now - self._looked_ms < min(_LOOK_MS, self._period_ms / _LOOKS):
            return
        self._looked_ms = now
        before, self._view = self._view, self._group.look()
        if before is None or before.members != self._view.members:
            log.info("collectors: %s; this is %s", ", ".join(self._view.members) or "none", self._view.me)
        self._look_at_the_clock()
        if self._view.leads and self._wrong_clock:
            self._let_another_lead(self._view)
        elif self._view.leads and not self._ticks.leads:
            self._take_over(self._view)
        elif self._ticks.leads and not self._view.leads:
            log.info("another collector writes the ticks")
            self._ticks.stop()
        self._metrics.grouped(members=len(self._view.members), share=len(self._view.share), leads=self._ticks.leads)

    def _look_at_the_clock(self) -> None:
        ahead = self._servers.ahead_seconds() or 0.0
        self._metrics.clock_ahead(ahead)
        was_wrong, self._wrong_clock = self._wrong_clock, ""
        if self._is_too_far(ahead):
            self._wrong_clock = f"{difference(ahead)}, allowed are {self._tolerated_seconds:g} s"
            if not was_wrong:
                log.error("%s: no interval is ended by it. Set this host's clock (chrony, ntpd)", self._wrong_clock)
        elif was_wrong:
            log.info("this host's clock and the brokers' clocks agree again")

    def _has_right_clock(self) -> bool:
        return not self._is_too_far(self._servers.ahead_seconds() or 0.0)

    def _is_too_far(self, ahead_seconds: float) -> bool:
        return abs(ahead_seconds) > self._tolerated_seconds

    def _let_another_lead(self, view: GroupView) -> None:
        """Once an interval: the others' clocks may be wrong, too."""
        if len(view.members) > 1 and not self._round.stepped_back:
            self._round.stepped_back = True
            self._step_back("this host's clock is wrong")

    def _take_over(self, view: GroupView) -> None:
        try:
            self._ticks.take_over(self._round.interval, (broker for held in view.shares.values() for broker in held))
        except LogOfflineError as error:
            # Another collector could not write it either.
            self._tell_offline(str(error))
            self._ticks.stop()
            return
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            self._step_back(f"the ticks could not be taken over: {error}")
            return
        self._tell_offline("")
        self._knows_all = False
        self._due.forget()

    def _step_back(self, why: str) -> None:
        log.warning("%s; another collector may lead", why)
        self._ticks.stop()
        self._group.step_back()

    def _tell_offline(self, why: str) -> None:
        """Say once that no interval can be ended, and once that they can again."""
        if why and why != self._offline:
            log.warning("%s. No interval can be ended until that is mended; nothing is decided and nothing moved", why)
        elif self._offline and not why:
            log.info("intervals can be ended again: every partition of the log can be written to")
        self._offline = why

    def _share(self) -> tuple[str, ...]:
        return self._view.share if self._view is not None else ()

    # sweeping

    def _ask(self, brokers: Iterable[str]) -> None:
        current = self._round
        wanted = [broker for broker in brokers if broker not in current.asked]
        ended = self._ticks.leads and self._ticks.ended(current.interval)
        if not wanted or ended or current.too_late or self._past(PUBLISH_SHARE):
            return
        # Brokers that failed come last, so that they delay no other.
        for broker in sorted(wanted, key=lambda name: (self._health.failures(name), name)):
            current.asked.add(broker)
            if not self._health.may_ask(broker, current.interval):
                continue
            name = SweepName(
                cluster=self._cluster,
                broker=broker,
                interval=current.interval,
                sweep_id=f"{broker}@{current.interval}#{uuid4().hex[:12]}",
            )
            if not self._calls.submit(broker, partial(self._sweeper.sweep, name, int(self._now_ms()))):
                self._failed(broker, "it has not come to the end of an earlier answer")

    def _take(self, call: FinishedCall) -> None:
        value, error = call.value, call.error
        if isinstance(value, Swept):
            self._swept(value)
        elif call.key == _LISTING:
            self._listed(value, error)
        elif call.key in (_STATE, _DOMAINS):
            self._state_read(call.key, value, error)
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
        if swept.flaws and broker not in self._flawed:
            log.warning("%s: rates that are negative or no numbers are taken for 0: %d", broker, swept.flaws)
        self._flawed = self._flawed | {broker} if swept.flaws else self._flawed - {broker}
        self._tell_odd(broker, ", ".join(swept.report.odd), "fields of its report that no broker has so are left out")
        self._round.outbox.append(swept)
        self._states |= {key_of(state): state for state in self._state_of(swept)}

    def _tell_odd(self, what: str, odd: str, meaning: str) -> None:
        """Log what is *odd* when that has changed."""
        if odd and odd != self._odd.get(what):
            log.warning("%s: %s: %s", what, meaning, odd)
        self._odd.pop(what, None)
        if odd:
            self._odd[what] = odd

    def _failed(self, broker: str, why: str) -> None:
        self._metrics.no_sweep()
        if self._health.failed(broker, self._round.interval):
            log.warning("%s gives no sweep and is reported missing: %s", broker, why)

    def _publish(self) -> None:
        # Apart from each other: a state that the log refuses, as one that is too large, holds up no sweep.
        current, swept, states = self._round, self._round.outbox, list(self._states.values())
        if swept and self._now_ms() >= current.outbox_again_ms:
            if self._written(_SWEEPS, [record for each in swept for record in each.records], len(swept)):
                current.outbox = []
            else:
                current.outbox_again_ms = self._now_ms() + _LOOK_MS
        if states and not current.states_refused:
            current.states_refused = not self._written(_STATES, list(records(states)), len(states))
            if not current.states_refused:
                self._due.written(states, current.interval)
                self._states = {}

    def _written(self, kind: str, published: list[KeyValue], number: int) -> bool:
        """Whether *published*, *number* of a *kind*, are in the log; without time left they are not."""
        left = (self._round.interval + PUBLISH_SHARE * self._deadline_ms - self._now_ms()) / 1000
        if left <= 0:
            return False
        try:
            self._log.publish(published, max(left, _STEP_SECONDS))
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            if kind not in self._unpublished:
                log.warning("not published, and kept while it is time: %s: %s", counted(number, kind), error)
            self._unpublished.add(kind)
            self._metrics.not_published(sweeps=kind == _SWEEPS)
            return False
        size = sum(len(value) for _, value in published)
        self._metrics.published(sweeps=number if kind == _SWEEPS else 0, records=len(published), size=size)
        if kind in self._unpublished:
            log.info("%ss can be published again", kind)
            self._unpublished.discard(kind)
        return True

    # what changes seldom

    def _read_state(self) -> None:
        interval, current = self._round.interval, self._round
        whole = interval // self._period_ms % self._every == 0
        if current.read or self._past(PUBLISH_SHARE):
            return
        current.read = True
        if whole or self._domains is None:
            self._reading.submit(_DOMAINS, self._state.domains)
        if self._ticks.leads:
            everything = whole or not self._knows_all
            known = self._due.bundles(interval) if everything else frozenset()
            self._reading.submit(_STATE, lambda: self._state.read(interval, whole=everything, known=known))

    def _state_read(self, what: str, value: object, error: BaseException | None) -> None:
        if isinstance(value, Found) and self._is_early(value.states):
            return  # it was read before the clock was set back
        if isinstance(value, Found):
            if value.leader != self._pulsar_leader:
                log.info("Pulsar's own load manager is led by %s", value.leader or "nobody")
            self._pulsar_leader, self._knows_all = value.leader, True
            self._states |= {key_of(state): state for state in self._due.of(value.states, self._round.interval)}
        elif isinstance(value, dict):
            self._domains = value
        before, why = self._unread.pop(what, ""), "" if error is None else str(error)
        if why:
            self._unread[what] = why
            if why != before:
                log.warning("the %s could not be read: %s", what, why)
        elif before:
            log.info("the %s can be read again", what)

    def _is_early(self, states: Iterable[State]) -> bool:
        """Whether any of *states* is of an interval that has not come."""
        return any(not isinstance(each, BundleData) and each.version > self._round.interval for each in states)

    def _state_of(self, swept: Swept) -> list[State]:
        broker = swept.name.broker
        if self._domains is None:  # soon
            return []
        why = ""
        try:
            state = broker_state(
                self._cluster,
                broker,
                swept.report,
                version=swept.name.interval,
                failure_domain=self._domains.get(broker),
                capacity=self._overrides.of(broker),
            )
        except ValueError as error:  # its failure domain has a name that is none
            why = printable(str(error))
        self._tell_odd(f"state of {broker}", why, "it cannot be published")
        if why:
            return []
        return self._due.of([state], swept.name.interval)

    # leading

    def _list_brokers(self) -> None:
        if not self._round.listed and not self._past(PUBLISH_SHARE):
            self._round.listed = self._calls.submit(_LISTING, self._state.admin.brokers)

    def _listed(self, brokers: tuple[str, ...] | None, error: BaseException | None) -> None:
        if brokers is None:
            log.warning("the active brokers are not known, so they are taken to be those of before: %s", error)
        else:
            self._ticks.active = brokers
        if not self._ticks.leads or self._view is None:
            return
        shares = share_out(self._view.members, self._view.shares, self._ticks.active)
        if shares != {name: tuple(held) for name, held in self._view.shares.items()}:
            log.info("shared out: %s", ", ".join(f"{name}: {len(held)}" for name, held in shares.items()))
            self._group.share(shares)
            self._looked_ms = 0.0

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
            if not late and is_time and self._now_ms() >= current.again_ms and self._has_right_clock():
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
            self._step_back(f"interval {utc(current.interval)} could not be ended: {error}")

    def _end(self, current: _Round) -> None:
        roster = self._ticks.end(current.interval, anybody_asked=bool(current.asked))
        if roster:
            silent = sum(sweep is None for sweep in roster.values())
            self._metrics.ticked(current.interval, self._now_ms(), brokers=len(roster), silent=silent)
