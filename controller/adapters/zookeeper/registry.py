"""The registry of processes in ZooKeeper.

    <path>/<cluster>/processes/<name>   ephemeral, one a process; ends with its session

Each entry may be read by those to whom the ACL of ``processes`` gives any right, and changed by its own process alone.
So processes with different ZooKeeper users can see each other where an administrator lets them.
"""

from contextlib import suppress
from typing import Any, Final

from kazoo.exceptions import NoAuthError, NodeExistsError, NoNodeError
from kazoo.security import ACL, Permissions, make_acl

from controller.adapters.election.registry import MOST_ENTRIES, RegistryEntries, RegistryEntry
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection

_ANSWER_SECONDS: Final = 3.0
#: What getAcl shows in place of a digest to those who may not change the ACL.
_HIDDEN_DIGEST: Final = ":x"


class ZooKeeperRegistry:
    """Registry under *path* in the ZooKeeper of *access*; connects when it is first used."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        self._access, self._folder = access, f"{path.rstrip('/')}/{cluster}/processes"
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)
        self._client = self._connection.client

    def write(self, name: str, value: bytes) -> bool:
        """See Registry.  A node that ended with its session is created anew in the session of now.

        The nodes above ``processes`` are left to controllers and collectors: they get the ACL of whoever creates them,
        and an executor's user may be another one.
        """
        node = f"{self._folder}/{name}"
        with self._connection.asking(node, _ANSWER_SECONDS):
            try:
                self._ask(self._client.set_async(node, value))
            except NoNodeError:
                return self._create(node, value)
        return True

    def read(self, longest: int) -> RegistryEntries:
        """See Registry."""
        with self._connection.asking(self._folder, _ANSWER_SECONDS):
            try:
                names = sorted(self._ask(self._client.get_children_async(self._folder)))
            except NoNodeError:
                return RegistryEntries(())
            # All at once: one round trip.  Their lengths first: a node may have a megabyte.
            requests = [(name, self._client.exists_async(f"{self._folder}/{name}")) for name in names[:MOST_ENTRIES]]
            there = [(name, stat) for name, answer in requests if (stat := self._ask(answer)) is not None]
            values = {
                name: self._client.get_async(f"{self._folder}/{name}")
                for name, stat in there
                if stat.data_length <= longest
            }
            entries = [self._entry(name, stat, values.get(name)) for name, stat in there]
            return RegistryEntries(tuple(filter(None, entries)), max(0, len(names) - MOST_ENTRIES))

    def close(self) -> None:
        """See Registry.  The node ends with the session."""
        self._connection.close()

    def _entry(self, name: str, stat: Any, answer: Any | None) -> RegistryEntry | None:
        """None if it was deleted in the meantime."""
        if answer is None:
            return RegistryEntry(name, None, stat.mtime)
        try:
            value, stat = self._ask(answer)
        except NoNodeError:
            return None
        except NoAuthError:
            return RegistryEntry(name, None, stat.mtime)
        return RegistryEntry(name, value, stat.mtime)

    def _create(self, node: str, value: bytes) -> bool:
        try:
            if self._ask(self._client.exists_async(self._folder)) is None:
                with suppress(NodeExistsError):
                    self._ask(self._client.create_async(self._folder, b""))
            with suppress(NodeExistsError):  # an answer was lost: the next renewal finds it
                self._ask(self._client.create_async(node, value, acl=self._acl(), ephemeral=True))
        except NoNodeError:
            return False
        return True

    def _acl(self) -> list[ACL] | None:
        """Everything for this process, and reading for those whom the ACL of the folder names."""
        own = self._access.acl()
        if own is None:
            return None
        try:
            shared, _ = self._ask(self._client.get_acls_async(self._folder))
        except NoAuthError:
            return own
        ours = {entry.id for entry in own}
        readers = [
            make_acl(entry.id.scheme, entry.id.id, read=True)
            for entry in shared
            if entry.perms & Permissions.ALL and entry.id not in ours and not entry.id.id.endswith(_HIDDEN_DIGEST)
        ]
        return [*own, *readers]

    def _ask(self, request: Any) -> Any:
        return request.get(timeout=_ANSWER_SECONDS)
