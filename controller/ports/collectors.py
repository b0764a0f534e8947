"""The collectors of a cluster: which of them leads, which brokers each one sweeps, and the log that they write to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller.wire.chunks import Arrived, KeyValue


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


class CollectorLog(Protocol):
    """The metrics topic as collectors see it.  Used from one thread.

    Every failure is a TrimtabError; after one the log can be used on, and nothing is written later by itself.
    """

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        """Append *records* to the metrics topic; returns when all are there, fails when that takes longer."""
        ...

    def lead(self, since_ms: int) -> None:
        """Begin to write the ticks.  Whoever wrote them before is fenced: no tick of its own comes after this.

        ``arrived`` then begins with what was appended at *since_ms* or later.  LogOfflineError where ticks could not
        be written now.
        """
        ...

    def arrived(self) -> Iterator[Arrived]:
        """The sweeps and ticks that came since the last call, in the log's order; the first time, up to its end.

        To be read to its end; nothing is kept of what was read.
        """
        ...

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """End *interval* in all partitions of the metrics and result topics, or in none.

        LeadershipLostError where another one leads by now; LogOfflineError where a partition of them is offline.
        """
        ...

    def follow(self) -> None:
        """Write no more ticks, until ``lead``."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...
