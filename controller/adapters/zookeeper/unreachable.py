"""Whether ZooKeeper answers: asked in a session of its own, which stays open while it is asked again."""

import time
from typing import Final

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.unreachable import LOOK_SECONDS, NO_ANSWER, why_no_connection
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.session import NOT_ZOOKEEPER, granted_timeout_ms
from controller.model.errors import TrimtabError

_SESSION_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02
_LEAST_SECONDS: Final = 0.5


class ZooKeeperLook:
    """Looks at the ZooKeeper of *access*.  ``why`` is for one thread."""

    def __init__(self, access: ZooKeeperAccess) -> None:
        self._access = access
        self._connection = ZooKeeperConnection(access, session_seconds=_SESSION_SECONDS)

    def why(self) -> str:
        """Why it does not answer; "" where it does, also where it refuses us."""
        connection = self._connection
        if connection.auth_failed:
            return ""
        if not connection.client.connected:
            refused = self._no_connection()
            if refused:
                return refused
            if connection.ended:
                connection.begin()
        deadline = Deadline.after(LOOK_SECONDS)
        while not connection.client.connected and not connection.auth_failed and not deadline.passed:
            time.sleep(_POLL_SECONDS)
        if connection.auth_failed:
            return ""
        if not connection.client.connected:
            return self._no_session()
        try:
            connection.client.exists_async("/").get(timeout=LOOK_SECONDS)
        except KazooTimeoutError:
            return NO_ANSWER
        except KazooException:
            # It answered, or has just gone: the next look tells.
            return "" if connection.auth_failed or connection.client.connected else self._no_connection()
        return ""

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _no_session(self) -> str:
        """Why connections get no session; "" where that is a matter of TLS, of which whoever opens a session tells."""
        try:
            granted_timeout_ms(self._access, _SESSION_SECONDS, answer_seconds=_LEAST_SECONDS)
        except TrimtabError as error:
            if f"[{self._access.tls_section}]" in str(error):
                return ""
            if NOT_ZOOKEEPER in str(error):
                return NOT_ZOOKEEPER
        return "it accepts connections, but opens no session: it is starting, hangs, or has no quorum"

    def _no_connection(self) -> str:
        """Why no server can be connected to; "" where one can."""
        servers, _ = collect_hosts(self._access.hosts)
        seconds = max(_LEAST_SECONDS, LOOK_SECONDS / len(servers))
        reasons = {}
        for host, port in servers:
            reasons[f"{host}:{port}"] = why_no_connection(host.strip("[]"), int(port), seconds)
            if not reasons[f"{host}:{port}"]:
                return ""
        return next(iter(reasons.values())) if len(reasons) == 1 else "; ".join(map(": ".join, reasons.items()))
