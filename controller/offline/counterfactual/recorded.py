"""A recording, interval by interval: the load of all bundles, what was decided, and what came of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from controller.aggregate.snapshot import Snapshot
from controller.model.controls import Controls
from controller.model.journal import JournalEntry
from controller.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedInterval:
    """One closed interval."""

    #: All bundles in one shard, with all topics that the recording has.
    snapshot: Snapshot
    #: What the controller decided; None where the recording has no decision of this interval.
    entry: JournalEntry | None = None
    #: The memory of the last decision before this interval; None where it is not known.
    memory: Memory | None = None
    #: The controls of an interval that the controller took in too late to act on: it is not in the journal, and the
    #: next decision goes on from the memory after it.  None: it was decided, or nobody took it in.
    passed: Controls | None = None

    @property
    def interval(self) -> int:
        """T, epoch ms."""
        return self.snapshot.interval


class ReplayableRecording(Protocol):
    """A recording that can be read several times."""

    @property
    def cluster(self) -> str:
        """Whose load it is."""
        ...

    @property
    def period_ms(self) -> int:
        """Length of an interval."""
        ...

    def intervals(self) -> Iterator[RecordedInterval]:
        """Every closed interval, the oldest first.  TrimtabError where it cannot be read."""
        ...
