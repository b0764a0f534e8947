"""trimtab's nodes in ZooKeeper that everybody may change, as ``trimtab doctor`` looks for them."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import ANYONE_ID_UNSAFE, Permissions

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection

_CHANGES: Final = Permissions.WRITE | Permissions.CREATE | Permissions.DELETE | Permissions.ADMIN
#: Maximum number of nodes of a kind that are checked.
_MOST_NODES: Final = 1_000


def open_nodes(access: ZooKeeperAccess, path: str, cluster: str, *, answer_seconds: float) -> tuple[str, ...]:
    """Those of the nodes of *cluster* under *path*, and *path* itself, that everybody may change.

    TrimtabError where ZooKeeper does not answer, or does not let us in.
    """
    connection = ZooKeeperConnection(access, session_seconds=answer_seconds, read_only=True)
    root = path.rstrip("/")
    with closing(connection), connection.asking(f"{root}/{cluster}", answer_seconds):
        nodes = [root, *_below(connection.client, f"{root}/{cluster}", answer_seconds)] if root else []
        return tuple(node for node in nodes if _is_open(connection.client, node, answer_seconds))


def _below(client: Any, root: str, seconds: float) -> Iterator[str]:
    waiting = [root]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        try:
            names = client.get_children_async(node).get(timeout=seconds)
        except (NoNodeError, NoAuthError):
            continue
        waiting += [f"{node}/{name}" for name in sorted(names, reverse=True)]


def _is_open(client: Any, node: str, seconds: float) -> bool:
    try:
        entries, _ = client.get_acls_async(node).get(timeout=seconds)
    except (NoNodeError, NoAuthError):  # a client that may not even read the ACL has no access
        return False
    return any(entry.id == ANYONE_ID_UNSAFE and entry.perms & _CHANGES for entry in entries)
