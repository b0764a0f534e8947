"""One process's connection to the log: opened when it is needed, shared by all that read and write there."""

import threading
from collections.abc import Callable
from typing import Final, TypeVar

import pulsar

from controller.adapters.network.waiting import retry, wait_for
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, log_client, topic_name, where
from controller.adapters.pulsar.log.errors import failure
from controller.adapters.pulsar.log.unreachable import why_refused
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings

T = TypeVar("T")

_RETRY_SECONDS: Final = 0.1
#: Transient errors: a topic moves between brokers, or a broker has just started.
_PASSING: Final = (
    pulsar.ServiceUnitNotReady,
    pulsar.NotConnected,
    pulsar.ConnectError,
    pulsar.LookupError,
    pulsar.BrokerMetadataError,
    pulsar.BrokerPersistenceError,
)
#: The library's errors if brokers refuse a certificate or an expired token.
_HIDING_REFUSALS: Final = (pulsar.Timeout, pulsar.ConnectError, pulsar.NotConnected)


class LogConnection:
    """A connection to the Pulsar that *log* names; used by one thread at a time, unless a method says otherwise."""

    def __init__(self, log: PulsarLogSettings, *, seconds: float = PATIENCE_SECONDS) -> None:
        self.log, self.seconds = log, seconds
        self._client: pulsar.Client | None = None
        self._lock = threading.Lock()

    @property
    def client(self) -> pulsar.Client:
        """The client, for all threads.  TrimtabError where credentials or files cannot be used."""
        with self._lock:
            if self._client is None:
                self._client = log_client(self.log, seconds=self.seconds)
            return self._client

    def partitions(self, name: str) -> int:
        """How many partitions the topic *name* (short name) has now; 0: there is no such topic.  TrimtabError."""
        full = topic_name(self.log, name)
        try:
            names = retry(
                lambda: self.client.get_topic_partitions(full),
                self.seconds,
                again_after=is_passing,
                every=_RETRY_SECONDS,
            )
        except pulsar.TopicNotFound:
            return 0
        except pulsar.PulsarException as error:
            raise self._failure(name, error, "consume") from error
        return 0 if names == [full] else len(names)

    def existing(self, name: str, *, is_created: bool = False) -> int:
        """As ``partitions``; TrimtabError where there is no such topic.

        A broker that caches that there was none may say so for some time after another one created it.  A topic that
        *is_created* is asked for again until all of ``seconds`` have passed.
        """
        try:
            number = wait_for(lambda: self.partitions(name), self.seconds if is_created else 0.0, every=_RETRY_SECONDS)
        except TimeoutError:
            raise TrimtabError(
                f"{where(self.log, name)} does not exist as a partitioned topic or is not visible to "
                f"this user: `trimtab collect`,"
                " `run` and `execute` create what they use when they start"
            ) from None
        return number

    def patiently(self, call: Callable[[], T], name: str, operation: str) -> T:
        """What *call* returns, made again while its failure may pass by itself, for ``seconds``.  TrimtabError."""
        try:
            return retry(call, self.seconds, again_after=is_passing, every=_RETRY_SECONDS)
        except pulsar.PulsarException as error:
            raise self._failure(name, error, operation) from error

    def _failure(self, name: str, error: BaseException, operation: str) -> TrimtabError:
        """*error*, met at the topic *name*; AccessDeniedError where the brokers refuse us, and the library hides it."""
        place = where(self.log, name)
        if isinstance(error, _HIDING_REFUSALS) and (why := why_refused(self.log)):
            return AccessDeniedError(f"{place}: {why} (docs/security.md)")
        return failure(place, error, operation=operation)

    def close(self) -> None:
        """End all that was opened on it."""
        client, self._client = self._client, None
        if client is not None:
            try:
                client.close()
            except pulsar.PulsarException:
                client.shutdown()


def is_passing(error: BaseException) -> bool:
    """Whether *error* may pass by itself, so that the same call is worth a second try."""
    return isinstance(error, _PASSING)
