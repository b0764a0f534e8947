"""What a query reads next of a log in Pulsar, and what retention has taken away before."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.fetch import Range
from controller.adapters.pulsar.log.offsets import LogOffset
from controller.adapters.pulsar.log.positions import BEGINNING, Entry
from controller.adapters.pulsar.log.ranges import Ledgers, Place, ends, missing, replaced
from controller.model.errors import AccessDeniedError, StateError, TrimtabError

log = logging.getLogger(__name__)

#: So long a query that runs waits for an admin API that does not answer, seconds.
PATIENCE_SECONDS: Final = 60.0
#: The parts of one message lie within so many entries.
_PARTS_WITHIN: Final = 100
_DENIED: Final = frozenset({401, 403})


class ReplacedLogError(StateError):
    """A partition ends before what was read of it: it is another one, or a broker that has lost it still answers."""

    exit_code = 1  # the second passes by itself, so the service manager tries again


class Planner:
    """Cuts the log into micro-batches.  *look* says what each partition holds now, *warn* is told what was lost."""

    def __init__(
        self,
        look: Callable[[], Mapping[Place, Ledgers]],
        topics: Sequence[str],
        *,
        now_ms: Callable[[], int],
        warn: Callable[[str], None],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """*topics*: full names."""
        self._look, self._topics, self._now_ms, self._warn = look, tuple(topics), now_ms, warn
        self._patience_seconds = patience_seconds
        self._extents: Mapping[Place, Ledgers] = {}
        #: Where nothing may come any more: see ``end_here``.
        self._last: Mapping[Place, Entry] | None = None
        #: Partition -> how far it is read, and the later place up to which all that is gone had been read, or was told.
        self._deleted: dict[Place, tuple[Entry, Entry]] = {}
        #: Set while the log cannot be asked.
        self._give_up: Deadline | None = None

    def end_here(self) -> None:
        """From now on nothing new is read: what lies in the log now is all that there is."""
        self._extents = self._look()
        self._last = {place: extent.end for place, extent in self._extents.items()}

    def next(self, start: LogOffset, limit: int | None) -> LogOffset | None:
        """Where the next micro-batch ends, with *limit* entries in it; None where nothing new can be read just now.

        See ranges.ends.  StateError where the log is not the one that was read, TrimtabError where it cannot be asked;
        ReplacedLogError, and what may pass as well, is borne for a while.
        """
        try:
            self._look_behind(start)
        except (TrimtabError, TimeoutError) as error:
            self._bear(error)
            return None
        self._give_up = None
        reached = ends(start.read, self._within_reach(), limit)
        if all(end == start.read.get(place, BEGINNING) for place, end in reached.items()):
            return None
        return LogOffset(time_ms=max(self._now_ms(), start.time_ms), read={**start.read, **reached})

    @property
    def is_answered(self) -> bool:
        """Whether the log said what it holds when it was last asked."""
        return self._give_up is None

    def all_read(self, offset: LogOffset) -> bool:
        """Whether *offset* is the end of the log as it was last looked at."""
        reach = self._within_reach()
        return all(extent.after(offset.read.get(place, BEGINNING)) == 0 for place, extent in reach.items())

    def ranges(self, start: LogOffset, end: LogOffset) -> list[Range]:
        """What lies between two offsets, as a micro-batch reads it: a range for each partition that has some of it."""
        if not self._reaches(end):
            self._look_behind(start)  # a batch that was planned before this process began
        spans = ((place, start.read.get(place, BEGINNING), until) for place, until in end.read.items())
        return ranges((each for each in spans if each[1] < each[2]), self._extents)

    def _look_behind(self, start: LogOffset) -> None:
        """Look at the log, and tell what of it is gone that was not read."""
        strange = sorted({topic for topic, _ in start.read} - set(self._topics))
        if strange:
            raise StateError(
                f"the checkpoint has positions of {', '.join(strange)}, but [log.pulsar] names"
                f" {', '.join(self._topics)}: name the old topics, or start with a new checkpoint"
            )
        earlier, self._extents = self._extents, self._look()
        for place, now in self._extents.items():
            read = start.read.get(place, BEGINNING)
            self._look_behind_one(place, read, now, earlier.get(place))

    def _look_behind_one(self, place: Place, read: Entry, now: Ledgers, earlier: Ledgers | None) -> None:
        other = replaced(place, read, now)
        if other is not None:
            raise ReplacedLogError(
                f"{place[0]}, partition {place[1]} ends at {other.end}, but was read up to {read}: it "
                f"was deleted and recreated; start with a new checkpoint"
            )
        known_for, until = self._deleted.get(place, (read, read))
        missing_range = missing(place, until if known_for == read else read, now, earlier)
        if missing_range is not None:
            self._warn(str(missing_range))
        if now.ledgers and BEGINNING != read < (first := Entry(now.ledgers[0].ledger, -1)):
            self._deleted[place] = read, first

    def _within_reach(self) -> Mapping[Place, Ledgers]:
        """What may be read of what there is."""
        if self._last is None:
            return self._extents
        return {place: self._extents[place].up_to(end) for place, end in self._last.items() if place in self._extents}

    def _reaches(self, end: LogOffset) -> bool:
        return all(place in self._extents and self._extents[place].end >= until for place, until in end.read.items())

    def _bear(self, error: Exception) -> None:
        """Pass over an *error* that may pass by itself; raise it where it lasts, or does not pass."""
        if _stays(error) or self._last is not None:  # a query that ends would end as if it had read everything
            raise error
        if self._give_up is None:
            log.info("cannot get the end of the log in Pulsar, will retry: %s", error)
            self._give_up = Deadline.after(self._patience_seconds)
        elif self._give_up.passed:
            if isinstance(error, ReplacedLogError):
                raise error
            raise TrimtabError(f"cannot get the end of the log in Pulsar: {error}") from error


def _stays(error: Exception) -> bool:
    """Whether *error* is the same however often the log is asked."""
    if isinstance(error, ReplacedLogError):
        return False
    return isinstance(error, (StateError, AccessDeniedError)) or getattr(error, "status", 0) in _DENIED


def ranges(spans: Iterable[tuple[Place, Entry, Entry]], extents: Mapping[Place, Ledgers]) -> list[Range]:
    """A range for each of *spans*: partition, the place after which it begins, its last entry."""
    planned = []
    for (topic, partition), after, until in spans:
        extent = extents.get((topic, partition), Ledgers(ledgers=()))
        planned.append(
            Range(
                topic=topic,
                partition=partition,
                after=after,
                until=until,
                entries=extent.up_to(until).after(after),
                back=extent.before(after, _PARTS_WITHIN),
                entry_bytes=extent.bytes // max(1, extent.entries),
            )
        )
    return planned
