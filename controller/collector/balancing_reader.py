"""Reads each broker's effective settings once an interval, in parallel to its sweep and without delaying it.

Used are the switches of its own balancing, and which kinds of topics it serves.
"""

import logging
from collections.abc import Collection
from functools import partial
from typing import Final

from controller.adapters.network.calls import Calls
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.collector.news import News
from controller.collector.states import BrokerSettings
from controller.model.balancing import balancing_of
from controller.model.errors import TrimtabError
from controller.model.topic_kinds import NON_PERSISTENT, PERSISTENT, serves
from controller.wire.base import printable

log = logging.getLogger(__name__)

#: Bytes of a broker's settings at most; some six hundred settings have 25,000.
_LARGEST: Final = 1 << 20
#: Those of a broker of which nothing could be read.
_UNKNOWN: Final = BrokerSettings(balancing=None, persistent_topics=None, non_persistent_topics=None)


class BalancingReader:
    """Reads the effective settings of each swept broker.  For one thread."""

    def __init__(self, admin: PulsarAdmin, calls: Calls, *, timeout_seconds: float) -> None:
        self._admin, self._calls, self._timeout_seconds = admin, calls, timeout_seconds
        #: Broker -> its settings as they were read last.  Where that failed, its balancing is unknown, and which kinds
        #: of topics it serves is what was read before: that changes with a restart alone.
        self._known: dict[str, BrokerSettings] = {}
        #: Brokers whose answer of this interval has not come.
        self._open: set[str] = set()
        self._answering: set[str] = set()
        self._news = News()

    def begin(self) -> None:
        """Begin an interval: brokers that did not answer in the last one count as not read."""
        for broker in self._open:
            self._failed(broker, "no answer within the interval")
        self._open.clear()
        self._answering.clear()
        self._calls.renew()

    def retain(self, brokers: Collection[str]) -> None:
        """Forget all but *brokers*."""
        self._known = {broker: known for broker, known in self._known.items() if broker in brokers}
        self._news.retain(brokers)

    def ask(self, broker: str) -> None:
        """Ask *broker*."""
        self._open.add(broker)
        self._calls.submit(broker, partial(self._read, broker))

    def add_workers_for_stuck(self, now: float, patience: float, *, limit: int) -> None:
        """See ``Calls.add_workers_for_stuck``."""
        self._calls.add_workers_for_stuck(now, patience, answering=self._answering, limit=limit)

    @property
    def waiting(self) -> int:
        """How many brokers are still to be asked."""
        return self._calls.waiting

    def is_awaited(self, broker: str) -> bool:
        """Whether *broker* is asked just now, and did not fail to answer the last time."""
        known = self._known.get(broker)
        return broker in self._open and (known is None or known.balancing is not None)

    def has_tried(self, broker: str) -> bool:
        """Whether reading the settings of *broker* has succeeded or failed yet."""
        return broker in self._known

    def of(self, broker: str) -> BrokerSettings | None:
        """The settings of *broker* as far as they are known; None: nobody has tried to read them yet."""
        return self._known.get(broker)

    def collect_answers(self) -> list[str]:
        """Process the answers; returns the brokers whose settings changed."""
        changed = []
        for call in self._calls.finished():
            broker, before = call.key, self._known.get(call.key)
            self._open.discard(broker)
            if call.error is None:
                self._known[broker] = call.value
                if self._news.is_news(broker, ""):
                    log.info("the balancing switches of %s can be read again", broker)
            else:
                known = isinstance(call.error, TrimtabError | ValueError)
                self._failed(broker, str(call.error) if known else repr(call.error))
            if self._known[broker] != before:
                changed.append(broker)
        return changed

    def _failed(self, broker: str, why: str) -> None:
        self._known[broker] = self._known.get(broker, _UNKNOWN)._replace(balancing=None)
        if self._news.is_news(broker, printable(why)):
            log.warning(
                "whether %s balances by itself cannot be read: %s; if this persists, no commands are "
                "issued in mode active, see brokers_balance_unknown in [guardrails]",
                broker,
                printable(why),
            )

    def _read(self, broker: str) -> BrokerSettings:
        answering = partial(self._answering.add, broker)
        return read_broker_settings(self._admin.within(self._timeout_seconds, answering), broker)


def read_broker_settings(admin: PulsarAdmin, broker: str) -> BrokerSettings:
    """The effective settings of *broker*.  PulsarError, or ValueError if its answer lacks the balancing switches."""
    settings = admin.reading_at_most(_LARGEST).configuration(broker)
    return BrokerSettings(
        balancing=balancing_of(settings),
        persistent_topics=serves(settings, PERSISTENT),
        non_persistent_topics=serves(settings, NON_PERSISTENT),
    )
