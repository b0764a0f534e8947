"""What brokers with ExtensibleLoadManagerImpl publish of their load: the topic of their broker load data.

A broker publishes when its load has changed by some percent, else every quarter of an hour; the topic keeps nothing.
So for some time after its start a reader does not know of every broker.

Pulsar: BrokerLoadDataReporter, TableViewLoadDataStoreImpl
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import pulsar

from controller.adapters.network.tls import Tls
from controller.adapters.pulsar.client_access import client_access
from controller.adapters.pulsar.credentials import Credentials
from controller.model.errors import TrimtabError, WireError
from controller.settings.redaction import redacted
from controller.wire.base import read_object

log = logging.getLogger(__name__)

_TOPIC: Final = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
#: Data older than this is forgotten.  Pulsar: loadBalancerBrokerLoadDataTTLInSeconds
_TIME_TO_LIVE_SECONDS: Final = 1800.0
#: A broker withdraws its data while a bundle comes or goes, and publishes anew within seconds.
_WITHDRAWN_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 5.0
#: The thread comes round once a second.  Its calls of the library take half a minute at most.
_HANGS_SECONDS: Final = 120.0
#: Between two threads, where one after the other ends or hangs.
_LONGEST_PAUSE_SECONDS: Final = 300.0
#: What is published while the connection is lost is not heard.
_AWAY_SECONDS: Final = 30.0
#: More brokers than any cluster has.
_MOST_BROKERS: Final = 20_000


class PulsarLoadData:
    """Broker -> its last load data, kept up to date by a thread that starts with the first question.

    While the thread does not read, load data may be missed.  What was heard before counts for a minute more then, and
    the brokers' load metrics after that.  A thread that ended, or hangs, is replaced, and the log says so.
    """

    def __init__(
        self,
        service_url: Callable[[], str],
        credentials: Callable[[], Credentials],
        tls: Tls,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service_url, self._credentials, self._tls, self._clock = service_url, credentials, tls, clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        #: Broker -> load data, and until when it counts.
        self._known: dict[str, tuple[Mapping[str, Any], float]] = {}
        #: The number of the thread that is to read, when it last came round, and how long the next one is put off.
        self._turn, self._beat, self._pause = 0, 0.0, _RETRY_SECONDS
        #: When a thread may be replaced at the earliest.
        self._next_start = 0.0

    def of(self, broker: str) -> Mapping[str, Any] | None:
        """*broker*'s last load data; None: none came yet, or too long ago, or some may have been missed."""
        with self._lock:
            if not self._closed.is_set():
                self._have_a_reader()
            load, until = self._known.get(broker, ({}, -math.inf))
            return load if self._clock() < until else None

    def close(self) -> None:
        """End the connection."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def receive(self, broker: str, value: bytes) -> None:
        """*broker* published *value*; an empty one withdraws its earlier data."""
        now = self._clock()
        with self._lock:
            if value:
                try:
                    self._known[broker] = read_object(value), now + _TIME_TO_LIVE_SECONDS
                except WireError as error:
                    log.warning("cannot read load data of %.100s: %s", broker, error)
                if len(self._known) > _MOST_BROKERS:
                    self._known = {name: each for name, each in self._known.items() if now < each[1]}
                    while len(self._known) > _MOST_BROKERS:  # the oldest first
                        self._known.pop(next(iter(self._known)))
            elif broker in self._known:
                load, until = self._known[broker]
                self._known[broker] = load, min(until, now + _WITHDRAWN_SECONDS)

    def _have_a_reader(self) -> None:
        """Start a thread where there is none, or the last one ended or hangs; with the lock."""
        now = self._clock()
        if self._thread is not None:
            hangs = now - self._beat > _HANGS_SECONDS
            if (self._thread.is_alive() and not hangs) or now < self._next_start:
                return
            what = f"has made no progress for {now - self._beat:.0f} s" if hangs else "has ended"
            log.error("the thread that reads %s %s; starting another one", _TOPIC, what)
            self._may_have_missed(now)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        self._turn += 1
        self._beat, self._next_start = now, now + self._pause
        self._thread = threading.Thread(target=self._read, args=[self._turn], name="broker load data", daemon=True)
        self._thread.start()

    def _may_have_missed(self, now: float) -> None:
        """Let what was heard so far count for a minute more, as of *now*; with the lock."""
        soon = now + _WITHDRAWN_SECONDS
        self._known = {broker: (load, min(until, soon)) for broker, (load, until) in self._known.items()}

    def _is_to_read(self, turn: int) -> bool:
        """Whether the thread *turn* is to go on; counts as a sign of life."""
        with self._lock:
            mine = turn == self._turn and not self._closed.is_set()
            if mine:
                self._beat = self._clock()
            return mine

    def _read(self, turn: int) -> None:
        last_message = ""
        while self._is_to_read(turn):
            try:
                self._follow(turn)
            except Exception as error:  # also what the client library raises and does not name
                with self._lock:
                    self._may_have_missed(self._clock())
                message = f"{type(error).__name__}: {redacted(str(error))}"
                if message != last_message:
                    log.warning("cannot read %s; using the load metrics of the brokers instead: %s", _TOPIC, message)
                last_message = message
                self._closed.wait(_RETRY_SECONDS)

    def _follow(self, turn: int) -> None:
        client = self._client()
        try:
            reader = client.create_reader(_TOPIC, pulsar.MessageId.latest)
            away_since: float | None = None
            while self._is_to_read(turn):
                if reader.is_connected():
                    away_since, self._pause = None, _RETRY_SECONDS
                elif away_since is None:
                    away_since = self._clock()
                elif self._clock() - away_since > _AWAY_SECONDS:
                    raise TrimtabError("the connection to the broker is lost")
                try:
                    message = reader.read_next(timeout_millis=1000)
                except pulsar.Timeout:
                    continue
                self.receive(message.partition_key(), message.data())
        finally:
            client.close()

    def _client(self) -> pulsar.Client:
        url = self._service_url()
        if not url:
            raise TrimtabError("the cluster's data have no service URL: set service_url in [collector]")
        return pulsar.Client(
            url,
            **client_access(self._credentials, self._tls),
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
