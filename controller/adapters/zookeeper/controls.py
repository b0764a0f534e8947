"""The operator's controls in ZooKeeper, beside the election."""

from typing import Any, Final

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from controller.adapters.election.controls import ABSENT
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.model.controls import OperatorControls
from controller.model.errors import ControlsUnreachableError, TrimtabError
from controller.model.leadership import epoch_of
from controller.wire.controls import encode_controls, stored_controls

_ANSWER_SECONDS: Final = 3.0


class ZooKeeperControls:
    """ControlStore in the node ``<path>/<cluster>/controls``; connects when it is first used."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        root = f"{path.rstrip('/')}/{cluster}"
        self._node, self._epoch, self._access = f"{root}/controls", f"{root}/epoch", access
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)
        self._client = self._connection.client

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        content = self._get(self._node)
        if content is None:
            return OperatorControls(), ABSENT
        value, version = content
        return stored_controls(value, self._where(self._node)), version

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        return self._put(self._node, encode_controls(controls), version)

    def version(self) -> int:
        """See ControlStore."""
        content = self._get(self._node)
        return ABSENT if content is None else content[1]

    def epoch(self) -> int:
        """See ControlStore."""
        content = self._get(self._epoch)
        return 0 if content is None else epoch_of(content[0]) or 0

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        while True:
            content = self._get(self._epoch)
            stored, version = (0, ABSENT) if content is None else (epoch_of(content[0]) or 0, content[1])
            if stored >= epoch or self._put(self._epoch, b"%d" % epoch, version):
                return

    def close(self) -> None:
        """See ControlStore."""
        self._connection.close()

    def _get(self, node: str) -> tuple[bytes, int] | None:
        """What *node* holds, as of all changes that were acknowledged before: a server may lag behind the others."""
        try:
            self._ask(node, "sync_async", node)
            value, stat = self._ask(node, "get_async", node)
        except NoNodeError:
            return None
        return bytes(value), int(stat.version)

    def _put(self, node: str, value: bytes, version: int) -> bool:
        try:
            if version == ABSENT:
                self._ask(node, "ensure_path_async", node.rpartition("/")[0])
                self._ask(node, "create_async", node, value)
            else:
                self._ask(node, "set_async", node, value, version=version)
        except (NodeExistsError, BadVersionError, NoNodeError):
            return False
        return True

    def _ask(self, node: str, request: str, *arguments: Any, **more: Any) -> Any:
        try:
            with self._connection.asking(node, _ANSWER_SECONDS, (NoNodeError, NodeExistsError, BadVersionError)):
                return getattr(self._client, request)(*arguments, **more).get(timeout=_ANSWER_SECONDS)
        except TrimtabError as error:
            raise ControlsUnreachableError(str(error)) from error

    def _where(self, node: str) -> str:
        return f"{node} in ZooKeeper at {self._access.hosts}"
