"""Requests about single nodes, each answered within a few seconds, for the stores of controls and of proposals."""

from typing import Any, Final

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.model.errors import ControlsUnreachableError, TrimtabError

_ANSWER_SECONDS: Final = 3.0
_EXPECTED: Final = (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError)


class NodeClient:
    """Connects when it is first used.  ControlsUnreachableError where nothing answers in time."""

    def __init__(self, access: ZooKeeperAccess, session_timeout_seconds: float) -> None:
        self._access = access
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)

    def get(self, node: str) -> tuple[bytes, int] | None:
        """What *node* holds, and its version, as of all changes that were acknowledged before: a server may lag behind
        the others.  None where there is no such node."""
        try:
            self.ask(node, "sync_async", node)
            value, stat = self.ask(node, "get_async", node)
        except NoNodeError:
            return None
        return bytes(value), int(stat.version)

    def ask(self, node: str, request: str, *arguments: Any, **more: Any) -> Any:
        """The answer to *request*, a method of kazoo's client, about *node*; errors of kazoo for nodes that are not
        there, or are there already, or changed."""
        try:
            with self._connection.asking(node, _ANSWER_SECONDS, _EXPECTED):
                return getattr(self._connection.client, request)(*arguments, **more).get(timeout=_ANSWER_SECONDS)
        except TrimtabError as error:
            raise ControlsUnreachableError(str(error)) from error

    def where(self, node: str) -> str:
        """*node* as messages name it."""
        return f"{node} in ZooKeeper at {self._access.hosts}"

    def close(self) -> None:
        """End the session, and the connection."""
        self._connection.close()
