"""Reads states in parallel to the sweeps: the cluster's state, failure domains, and each broker's own state."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from controller.adapters.network.calls import Calls, FinishedCall
from controller.collector.balancing_reader import BalancingReader
from controller.collector.cluster_state import ClusterState, Reading
from controller.collector.news import News
from controller.collector.publisher import Publisher
from controller.collector.reports import BrokerReport
from controller.collector.states import State, broker_state
from controller.collector.sweeper import Swept
from controller.settings.capacity import CapacityOverrides
from controller.wire.base import printable
from controller.wire.metrics import BundleData

log = logging.getLogger(__name__)

_STATE: Final = "cluster state"
_DOMAINS: Final = "failure domains"
_LEADER: Final = "leader of Pulsar's load manager"


class StateReader:
    """Reads in a thread of its own, once an interval, and passes the states to the publisher."""

    def __init__(
        self,
        cluster: str,
        state: ClusterState,
        overrides: CapacityOverrides,
        calls: Calls,
        publisher: Publisher,
        balancing: BalancingReader,
    ) -> None:
        self._cluster, self._state, self._overrides = cluster, state, overrides
        self._calls, self._publisher, self._balancing = calls, publisher, balancing
        #: Broker -> its last report, without its bundles.
        self._reports: dict[str, BrokerReport] = {}
        #: The interval, whether in it the cluster was asked, and whether all of its state was read.
        self._interval, self._has_asked, self._knows_all = 0, False, False
        self._domains: dict[str, str] | None = None
        #: As it was read last, "" while nobody leads; None: nobody has tried to read it.
        self._pulsar_leader: str | None = None
        #: What could not be read, and which broker's state cannot be published, and why.
        self._news = News()

    def begin(self, interval: int) -> None:
        """*interval* begins."""
        self._interval, self._has_asked = interval, False
        self._balancing.begin()

    def forget(self) -> None:
        """Discard all, so that it is read again."""
        self._knows_all = False

    def ask(self, *, leads: bool, whole: bool) -> None:
        """Ask, once an interval: the leader for the cluster's state; *whole*: for all of it, also what was read."""
        if self._has_asked:
            return
        self._has_asked = True
        self._calls.submit(_LEADER, self._state.leader)
        if whole or self._domains is None:
            self._calls.submit(_DOMAINS, self._state.domains)
        if leads:
            interval, everything = self._interval, whole or not self._knows_all
            known = self._publisher.known_bundles() if everything else frozenset[str]()
            self._calls.submit(_STATE, lambda: self._state.read(interval, whole=everything, known_bundles=known))

    def collect_answers(self) -> None:
        """Process the answers."""
        for call in self._calls.finished():
            self._collect(call)
        for broker in self._balancing.collect_answers():
            if broker in self._reports:
                self._publish(broker)

    def broker(self, swept: Swept) -> None:
        """The state of a broker as its sweep has it."""
        broker = swept.name.broker
        self._reports[broker] = replace(swept.report, bundles={})
        self._publish(broker)

    def retain(self, brokers: Collection[str]) -> None:
        """Forget all but *brokers*."""
        self._reports = {broker: report for broker, report in self._reports.items() if broker in brokers}

    def _publish(self, broker: str) -> None:
        is_early = self._domains is None or self._pulsar_leader is None
        if is_early or not self._balancing.has_tried(broker):  # soon
            return
        assert self._domains is not None
        why = ""
        try:
            state = broker_state(
                self._cluster,
                broker,
                self._reports[broker],
                version=self._interval,
                failure_domain=self._domains.get(broker),
                capacity=self._overrides.of(broker),
                settings=self._balancing.of(broker),
                leads=broker == self._pulsar_leader,
            )
        except ValueError as error:  # its failure domain has a name that is none
            why = printable(str(error))
        else:
            self._publisher.states([state])
        if self._news.is_news(broker, why) and why:
            log.warning("cannot publish the state of %s: %s", broker, why)

    def _collect(self, call: FinishedCall) -> None:
        reading = call.value
        if isinstance(reading, Reading) and self._is_early(reading.states):
            return  # it was read before the clock was set back
        if isinstance(reading, Reading):
            self._knows_all = True
            self._publisher.states(reading.states)
        elif call.key == _LEADER:
            self._led_by(reading if isinstance(reading, str) else self._pulsar_leader or "")
        elif isinstance(reading, dict):
            self._domains = reading
        why = "" if call.error is None else str(call.error)
        if self._news.is_news(call.key, why):
            if why:
                log.warning("cannot read the %s: %s", call.key, why)
            else:
                log.info("the %s can be read again", call.key)

    def _led_by(self, leader: str) -> None:
        """Publish the states of the broker that leads now and of the one that does no more."""
        before, self._pulsar_leader = self._pulsar_leader, leader
        if leader == before:
            return
        log.info("Pulsar's own load manager is led by %s", leader or "nobody")
        for broker in [*self._reports] if before is None else [before, leader]:
            if broker in self._reports:
                self._publish(broker)

    def _is_early(self, states: Iterable[State]) -> bool:
        """Whether any of *states* is of an interval that has not come."""
        return any(not isinstance(each, BundleData) and each.version > self._interval for each in states)
