"""Pulsar's own metadata store, read only: the averages and quotas that it keeps of bundles.

Pulsar: LoadBalanceResources
"""

import logging
from collections.abc import Iterator
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

#: Under the store's root; what the first has goes before what the second has, as in Pulsar.
_KINDS: Final = {"bundle_data": "/loadbalance/bundle-data", "resource_quota": "/loadbalance/resource-quota"}
_ANSWER_SECONDS: Final = 10.0
_SESSION_SECONDS: Final = 30.0


class PulsarMetadata:
    """The metadata store in ZooKeeper at *hosts*, host:port[,...][/chroot].  Used from one thread."""

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._client: KazooClient | None = None

    def of_namespace(self, namespace: str) -> dict[str, tuple[str, bytes]]:
        """Bundle -> (``bundle_data`` or ``resource_quota``, JSON as it is stored).  TrimtabError: no answer."""
        try:
            client = self._connected()
            found: dict[str, tuple[str, bytes]] = {}
            for kind, root in reversed(_KINDS.items()):
                node = f"{root}/{namespace}"
                for name, content in self._children(client, node):
                    found[f"{namespace}/{name}"] = kind, content
            return found
        except (KazooException, KazooTimeoutError) as error:
            raise TrimtabError(f"Pulsar's ZooKeeper at {self._hosts}: {error!r}") from error

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None

    def _connected(self) -> KazooClient:
        if self._client is None:
            client = KazooClient(hosts=self._hosts, timeout=_SESSION_SECONDS, read_only=True)
            try:
                client.start(timeout=_ANSWER_SECONDS)
            except BaseException:
                client.stop()
                raise
            self._client = client
        return self._client

    def _children(self, client: KazooClient, node: str) -> Iterator[tuple[str, bytes]]:
        try:
            names: list[str] = client.get_children_async(node).get(timeout=_ANSWER_SECONDS)
        except NoNodeError:
            return
        # All at once: one round trip for a namespace.
        asked: list[tuple[str, Any]] = [(name, client.get_async(f"{node}/{name}")) for name in sorted(names)]
        for name, answer in asked:
            try:
                content, _ = answer.get(timeout=_ANSWER_SECONDS)
            except NoNodeError:  # split or deleted since
                continue
            if content:
                yield name, content
