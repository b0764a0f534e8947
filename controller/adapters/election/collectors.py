"""The collectors of a cluster: which of them leads, and which brokers each one sweeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller.model.errors import WireError
from controller.wire.base import read_object


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """The group as one member last saw it."""

    me: str
    #: The one that leads comes first.
    members: tuple[str, ...] = ()
    shares: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def leads(self) -> bool:
        """Whether this member leads."""
        return self.members[:1] == (self.me,)

    @property
    def share(self) -> tuple[str, ...]:
        """This member's brokers."""
        return tuple(self.shares.get(self.me, ()))


class CollectorGroup(Protocol):
    """One collector's membership of the group.  Used from one thread."""

    def look(self) -> GroupView:
        """The group as it is now, or as last seen if it cannot be read. Joins it if necessary."""
        ...

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """Publish the shares; no effect if another member has published others since ``look``."""
        ...

    def step_back(self) -> None:
        """Let another member lead, if there is one: leave, and rejoin as the last one at the next successful look."""
        ...

    def leave(self) -> None:
        """Leave for good."""
        ...


def shares_in(stored: bytes) -> dict[str, list[str]]:
    """Member -> brokers, as *stored* says them; none where it says anything else: the leader then shares out anew."""
    try:
        shares = read_object(stored)
    except WireError:
        return {}
    lists = all(isinstance(brokers, list) for brokers in shares.values())
    return shares if lists and all(isinstance(name, str) for brokers in shares.values() for name in brokers) else {}
