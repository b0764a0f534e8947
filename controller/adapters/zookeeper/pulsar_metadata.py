"""Pulsar's own metadata store, read only: the averages and quotas that it keeps of bundles.

Pulsar: LoadBalanceResources
"""

import logging
from collections.abc import Collection, Iterator
from typing import Any, Final

from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.model.errors import TrimtabError
from controller.settings.redaction import redacted

log = logging.getLogger(__name__)

#: Under the store's root; what the first has goes before what the second has, as in Pulsar.
_KINDS: Final = {"bundle_data": "/loadbalance/bundle-data", "resource_quota": "/loadbalance/resource-quota"}
_ANSWER_SECONDS: Final = 10.0
_SESSION_SECONDS: Final = 30.0


class PulsarMetadata:
    """The metadata store in the ZooKeeper of *access*.  Used from one thread."""

    def __init__(self, access: ZooKeeperAccess) -> None:
        self._access = access
        self._connection: ZooKeeperConnection | None = None

    def of_namespace(self, namespace: str, skip: Collection[str] = ()) -> dict[str, tuple[str, bytes]]:
        """Bundle -> (``bundle_data`` or ``resource_quota``, JSON as it is stored), without the bundles to *skip*.

        TrimtabError: no answer.
        """
        node = ""
        try:
            client = self._connected()
            loads: dict[str, tuple[str, bytes]] = {}
            for kind, root in reversed(_KINDS.items()):
                node = f"{root}/{namespace}"
                for name, content in self._children(client, node, f"{namespace}/", skip):
                    loads[f"{namespace}/{name}"] = kind, content
            return loads
        except NoAuthError as error:
            raise self._access.refusal(error, node) from error
        except (KazooException, KazooTimeoutError) as error:
            raise TrimtabError(f"Pulsar's ZooKeeper at {self._access.hosts}: {redacted(repr(error))}") from error

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Any:
        if self._connection is not None and self._connection.ended:
            self.close()  # the server refused our credentials, after which kazoo gives up
        if self._connection is None:
            connection = ZooKeeperConnection(self._access, session_seconds=_SESSION_SECONDS, read_only=True)
            connection.open(_ANSWER_SECONDS)
            self._connection = connection
        return self._connection.client

    def _children(self, client: Any, node: str, prefix: str, skip: Collection[str]) -> Iterator[tuple[str, bytes]]:
        try:
            names: list[str] = client.get_children_async(node).get(timeout=_ANSWER_SECONDS)
        except NoNodeError:
            return
        # All at once: one round trip for a namespace.
        requests: list[tuple[str, Any]] = [
            (name, client.get_async(f"{node}/{name}")) for name in sorted(names) if prefix + name not in skip
        ]
        for name, answer in requests:
            try:
                content, _ = answer.get(timeout=_ANSWER_SECONDS)
            except NoNodeError:  # split or deleted since
                continue
            if content:
                yield name, content
