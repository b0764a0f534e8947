"""The collectors of a cluster: which of them leads, and which brokers each one sweeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


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
        """The group as it is now; as it was last seen where that cannot be known.  Joins it where need be."""
        ...

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """Tell what was shared out; of no effect where another one has told something else since ``look``."""
        ...

    def step_back(self) -> None:
        """Let another one lead, if there is one: leave, and join again as the last with the next look that succeeds."""
        ...

    def leave(self) -> None:
        """Leave for good."""
        ...
