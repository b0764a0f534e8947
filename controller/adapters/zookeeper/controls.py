"""The operator's controls in ZooKeeper, beside the election."""

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from controller.adapters.election.controls import ABSENT
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.node_client import NodeClient
from controller.model.controls import OperatorControls
from controller.model.leadership import epoch_of
from controller.wire.controls import encode_controls, stored_controls


class ZooKeeperControls:
    """ControlStore in the node ``<path>/<cluster>/controls``; connects when it is first used."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        root = f"{path.rstrip('/')}/{cluster}"
        self._node, self._epoch = f"{root}/controls", f"{root}/epoch"
        self._nodes = NodeClient(access, session_timeout_seconds)

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        content = self._nodes.get(self._node)
        if content is None:
            return OperatorControls(), ABSENT
        value, version = content
        return stored_controls(value, self._nodes.where(self._node)), version

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        return self._put(self._node, encode_controls(controls), version)

    def version(self) -> int:
        """See ControlStore."""
        content = self._nodes.get(self._node)
        return ABSENT if content is None else content[1]

    def epoch(self) -> int:
        """See ControlStore."""
        content = self._nodes.get(self._epoch)
        return 0 if content is None else epoch_of(content[0]) or 0

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        while True:
            content = self._nodes.get(self._epoch)
            stored, version = (0, ABSENT) if content is None else (epoch_of(content[0]) or 0, content[1])
            if stored >= epoch or self._put(self._epoch, b"%d" % epoch, version):
                return

    def close(self) -> None:
        """See ControlStore."""
        self._nodes.close()

    def _put(self, node: str, value: bytes, version: int) -> bool:
        try:
            if version == ABSENT:
                self._nodes.ask(node, "ensure_path_async", node.rpartition("/")[0])
                self._nodes.ask(node, "create_async", node, value)
            else:
                self._nodes.ask(node, "set_async", node, value, version=version)
        except (NodeExistsError, BadVersionError, NoNodeError):
            return False
        return True
