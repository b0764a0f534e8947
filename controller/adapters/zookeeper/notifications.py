"""The sender of notifications by ZooKeeper: of the processes that could, the one that came first.

<path>/<cluster>/notifications                          the state that the processes share
<path>/<cluster>/notifications/senders/<id>-<sequence>  ephemeral, one a process; the lowest sequence sends
"""

from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from controller.adapters.election.controls import ABSENT
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.contenders import Contenders

_ANSWER_SECONDS: Final = 3.0


class ZooKeeperNotifications:
    """NotificationStore under *path* in the ZooKeeper of *access*; connects when it is first used."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        self._root = f"{path.rstrip('/')}/{cluster}"
        self._node = f"{self._root}/notifications"
        self._folder = f"{self._node}/senders"
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)
        self._client = self._connection.client
        self._contenders = Contenders(self._client, self._folder, uuid4().hex, self._wait)

    def sends(self) -> bool:
        """See NotificationStore.  A node that ended with its session is created anew, as the last in the order."""
        with self._connection.asking(self._folder, _ANSWER_SECONDS):
            # Nodes above get the ACL of whoever creates them: controllers and collectors do, whose user may be another.
            if self._wait(self._client.exists_async(self._root)) is None:
                return False
            names = self._contenders.names()
            if not self._contenders.own(names):
                self._contenders.enter()
                names = self._contenders.names()
            own = self._contenders.own(names)
            return bool(own) and own[0] == names[0]

    def read(self) -> tuple[bytes | None, int]:
        """See NotificationStore.  As of all changes that were acknowledged before: a server may lag behind."""
        with self._connection.asking(self._node, _ANSWER_SECONDS):
            try:
                self._wait(self._client.sync_async(self._node))
                value, stat = self._wait(self._client.get_async(self._node))
            except NoNodeError:
                return None, ABSENT
        # ``enter`` creates the node above the contenders without content.
        return bytes(value) or None, int(stat.version)

    def write(self, value: bytes, version: int) -> int | None:
        """See NotificationStore."""
        with self._connection.asking(self._node, _ANSWER_SECONDS), suppress(BadVersionError, NodeExistsError):
            if version == ABSENT:
                self._wait(self._client.create_async(self._node, value))
                return 0
            stat = self._wait(self._client.set_async(self._node, value, version=version))
            return int(stat.version)
        return None

    def close(self) -> None:
        """See NotificationStore.  The node ends with the session."""
        self._connection.close()

    def _wait(self, request: Any, _: str = "") -> Any:
        return request.get(timeout=_ANSWER_SECONDS)
