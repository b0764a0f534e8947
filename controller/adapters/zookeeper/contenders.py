"""The election recipe: every process has an ephemeral, sequential node in one folder; the lowest sequence leads.

    <folder>/<id>-<sequence>

A node ends with its session.  Callers decide what to do as the leader, and when the connection is lost.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kazoo.exceptions import NoNodeError

#: ZooKeeper appends so many digits to the name of a sequential node.
_SEQUENCE_DIGITS: Final = 10

#: Waits for the answer to a request of kazoo about a node, and raises kazoo's error or what the caller makes of it.
Ask: TypeAlias = Callable[[Any, str], Any]


class Contenders:
    """The nodes in *folder*, seen by the process whose *own_id* no other process has."""

    def __init__(self, client: Any, folder: str, own_id: str, ask: Ask, value: bytes = b"") -> None:
        """*value*: what this process's node holds, for people who ask."""
        self._client, self._folder, self._own_id, self._ask = client, folder, own_id, ask
        self._value = value

    def names(self, on_change: Callable[[], None] | None = None) -> list[str]:
        """The nodes' names, the one that leads first; none where the folder does not exist.

        *on_change* is called once, by a thread of kazoo's, when a node has come or gone.
        """
        watch = None if on_change is None else lambda _: on_change()
        try:
            names: list[str] = self._ask(self._client.get_children_async(self._folder, watch=watch), self._folder)
        except NoNodeError:
            return []
        return sorted(names, key=lambda name: name[-_SEQUENCE_DIGITS:])

    def own(self, names: Sequence[str]) -> list[str]:
        """Those of *names* that are this process's.

        Found by the id: a connection that breaks while a node is created does not say whether it was.
        """
        return [name for name in names if name.startswith(f"{self._own_id}-")]

    def enter(self) -> None:
        """Create this process's node, the last in the order."""
        self._ask(self._client.ensure_path_async(self._folder), self._folder)
        node = f"{self._folder}/{self._own_id}-"
        self._ask(self._client.create_async(node, self._value, ephemeral=True, sequence=True), self._folder)


def id_of(name: str) -> str:
    """The id of the process that created the node *name*."""
    return name[: -_SEQUENCE_DIGITS - 1]
