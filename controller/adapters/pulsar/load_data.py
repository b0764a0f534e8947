"""What brokers with ExtensibleLoadManagerImpl publish of their load: the topic of their broker load data.

A broker publishes when its load has changed by some percent, else every quarter of an hour; the topic keeps nothing.
So for some time after its start a reader does not know of every broker.

Pulsar: BrokerLoadDataReporter, TableViewLoadDataStoreImpl
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import pulsar

from controller.adapters.network.tls import Tls
from controller.adapters.pulsar.client_access import client_access
from controller.adapters.pulsar.credentials import Credentials
from controller.model.errors import TrimtabError, WireError
from controller.wire.base import read_object

log = logging.getLogger(__name__)

_TOPIC: Final = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
#: Data older than this is forgotten.  Pulsar: loadBalancerBrokerLoadDataTTLInSeconds
_TIME_TO_LIVE_SECONDS: Final = 1800.0
#: A broker withdraws its data while a bundle comes or goes, and publishes anew within seconds.
_WITHDRAWN_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 5.0
#: More brokers than any cluster has.
_MOST_BROKERS: Final = 20_000


class PulsarLoadData:
    """Broker -> its last load data, kept up to date by a thread that starts with the first question."""

    def __init__(self, service_url: Callable[[], str], credentials: Callable[[], Credentials], tls: Tls) -> None:
        self._service_url, self._credentials, self._tls = service_url, credentials, tls
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        #: Broker -> load data, and until when it counts.
        self._known: dict[str, tuple[Mapping[str, Any], float]] = {}

    def of(self, broker: str) -> Mapping[str, Any] | None:
        """*broker*'s last load data; None: none came yet, or too long ago."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._read, name="broker load data", daemon=True)
                self._thread.start()
            load, until = self._known.get(broker, ({}, 0.0))
        return load if time.monotonic() < until else None

    def close(self) -> None:
        """End the connection."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def heard(self, broker: str, value: bytes) -> None:
        """*broker* published *value*; an empty one withdraws its earlier data."""
        now = time.monotonic()
        with self._lock:
            if value:
                try:
                    self._known[broker] = read_object(value), now + _TIME_TO_LIVE_SECONDS
                except WireError as error:
                    log.warning("load data of %.100s cannot be read: %s", broker, error)
                if len(self._known) > _MOST_BROKERS:
                    self._known = {name: each for name, each in self._known.items() if now < each[1]}
                    while len(self._known) > _MOST_BROKERS:  # the oldest first
                        self._known.pop(next(iter(self._known)))
            elif broker in self._known:
                load, until = self._known[broker]
                self._known[broker] = load, min(until, now + _WITHDRAWN_SECONDS)

    def _read(self) -> None:
        said = ""
        while not self._closed.is_set():
            try:
                self._follow()
            except (pulsar.PulsarException, TrimtabError) as error:
                if str(error) != said:
                    log.warning(
                        "%s cannot be read; the load metrics of the brokers are used instead: %s", _TOPIC, error
                    )
                said = str(error)
                self._closed.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        client = self._client()
        try:
            reader = client.create_reader(_TOPIC, pulsar.MessageId.latest)
            while not self._closed.is_set():
                try:
                    message = reader.read_next(timeout_millis=1000)
                except pulsar.Timeout:
                    continue
                self.heard(message.partition_key(), message.data())
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
