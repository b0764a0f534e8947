"""The one place that makes kazoo's client: with the credentials, the ACL and the TLS of a ZooKeeperAccess.

kazoo reports a connection before it has authenticated, and after a refusal its client never tries again by itself:
``ZooKeeperConnection.open`` returns when the server has answered a first request, and says why where it refuses.
"""

import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, SASLException, SessionClosedRequireSaslError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState, KeeperState

from controller.adapters.network.deadline import Deadline
from controller.adapters.zookeeper import session as zookeeper_session
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.model.errors import TrimtabError
from controller.settings.redaction import redacted

#: kazoo's own logger.  At DEBUG kazoo writes credentials into the log; below ERROR it tells every attempt to connect,
#: while controller.adapters.outages says once that ZooKeeper cannot be reached.
_KAZOO_LOG: Final = logging.getLogger("controller.adapters.kazoo")
_KAZOO_LOG.setLevel(logging.ERROR)
#: Said, with a trace, at each attempt to connect to a server that is no ZooKeeper; an outage is said once, too.
_KAZOO_LOG.addFilter(lambda record: not str(record.msg).startswith("Exception raised during deserialization"))

_POLL_SECONDS: Final = 0.1
_PROBE_SECONDS: Final = 1.5
#: kazoo's own retry delays grow to an hour; a process that was cut off should be back within a second.
_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}


class ZooKeeperConnection:
    """``client``, a KazooClient for *access*; nodes that it creates get the ACL of *access*."""

    def __init__(self, access: ZooKeeperAccess, *, session_seconds: float, read_only: bool = False) -> None:
        self.access = access
        self._seconds = session_seconds
        self._auth_failed, self._ended = False, True
        self.client: Any = KazooClient(
            hosts=access.hosts,
            timeout=session_seconds,
            read_only=read_only,
            connection_retry=_RECONNECT,
            handler=_Handler(access.context()),
            use_ssl=access.tls is not None,
            default_acl=access.acl(),
            logger=_KAZOO_LOG,
            **access.credentials(),
        )
        self.client.add_listener(self._on_state)
        self.client._connection._authenticate_with_sasl = _refusing(self.client._connection._authenticate_with_sasl)

    @property
    def auth_failed(self) -> bool:
        """True once the server has refused the credentials."""
        return self._auth_failed

    @property
    def ended(self) -> bool:
        """True if only ``open`` can reconnect: it was not called, or failed, or the credentials were refused."""
        return self._ended or self._auth_failed

    def begin(self) -> None:
        """Connect in the background, and again after every loss, until ``close``."""
        self.client.stop()
        self._auth_failed = self._ended = False
        self.client.start_async()

    def open(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Connect, and return True when the server answers; False as soon as *stop* says to give up.

        TrimtabError where it does not answer within *seconds*, or refuses; then the client is stopped.
        """
        self.client.stop()
        self._auth_failed = self._ended = False
        deadline = Deadline.after(seconds)
        connected = self.client.start_async()
        try:
            while not stop():
                if connected.wait(_POLL_SECONDS) and self._answers():
                    return True
                if self._auth_failed:
                    raise self.access.refusal(AuthFailedError())
                if deadline.passed:
                    raise self._silence(seconds)
        except BaseException:
            self._ended = True
            self.client.stop()
            raise
        return False

    @contextmanager
    def asking(self, node: str, seconds: float, expected: tuple[type[KazooException], ...] = ()) -> Iterator[None]:
        """For requests about *node*, each answered within *seconds*: TrimtabError for all but *expected* answers.

        Connects first where only ``open`` does.  Without a connection it fails at once, while kazoo would wait for one.
        """
        where = f"{node} in ZooKeeper at {self.access.hosts}"
        try:
            if self.ended:
                self.open(seconds)
            if not self.client.connected:
                raise TrimtabError(f"{where}: no connection")
            yield
        except expected:
            raise
        except KazooTimeoutError as error:
            raise TrimtabError(f"{where}: no answer within {seconds:g} s") from error
        except KazooException as error:
            raise self.access.refusal(error, node) from error
        except OSError as error:
            raise TrimtabError(f"{where}: {redacted(repr(error))}") from error

    def close(self) -> None:
        """End the session, and the connection."""
        self.client.stop()
        self.client.close()

    def _answers(self) -> bool:
        try:
            # A request that needs no permission: an answer shows that the server accepted our credentials.
            self.client.exists_async("/").get(timeout=min(self._seconds, _PROBE_SECONDS))
        except (SessionClosedRequireSaslError, AuthFailedError) as error:
            raise self.access.refusal(error) from error
        except (KazooException, KazooTimeoutError):
            return False
        return True

    def _silence(self, seconds: float) -> TrimtabError:
        """The error for a server that did not answer.  Asks once more for the reason, since kazoo only logs it."""
        section = self.access.auth_section.partition(".")[0]
        try:
            zookeeper_session.granted_timeout_ms(self.access, self._seconds, answer_seconds=_PROBE_SECONDS)
            why = "it opens sessions but does not answer requests"
        except TrimtabError as error:
            why = str(error)
        return TrimtabError(
            f"ZooKeeper at {self.access.hosts} did not answer within {seconds:g} s:"
            f" is it running, and is [{section}] right?  {why}"
        )

    def _on_state(self, state: str) -> None:
        if state == KazooState.LOST:
            # kazoo closes the client right after this: only now is it visible that the credentials were refused.
            self._auth_failed = self.client.client_state == KeeperState.AUTH_FAILED
            self._ended = self.client.client_state == KeeperState.CLOSED


def _refusing(authenticate: Callable[..., None]) -> Callable[..., None]:
    """*authenticate*, kazoo's SASL exchange, with every refusal raised as the one that kazoo expects there.

    A server that demands SASL answers a wrong password with an error of its own, which ends kazoo's thread.
    """

    def refusing(*arguments: Any) -> None:
        try:
            authenticate(*arguments)
        except (SessionClosedRequireSaslError, SASLException) as error:
            raise AuthFailedError(repr(error)) from error

    return refusing


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads and sockets, with our TLS: kazoo's own always trusts the system's authorities as well."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: object) -> socket.socket:
        connection = socket.create_connection(address, timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return connection
        try:
            return self._context.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise

    def select(self, readers: Any, writers: Any, errors: Any, timeout: float | None) -> Any:
        # select does not see data that TLS has decrypted already.
        ready = [each for each in readers if isinstance(each, ssl.SSLSocket) and each.pending()]
        return (ready, [], []) if ready else super().select(readers, writers, errors, timeout)
