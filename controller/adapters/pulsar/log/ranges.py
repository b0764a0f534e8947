"""Which entries of a log in Pulsar are read next.  Pure: what a partition holds was looked up before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from controller.adapters.pulsar.log.positions import BEGINNING, Entry

#: A topic's full name and one of its partitions.
Place: TypeAlias = tuple[str, int]
#: Partition -> the last entry that is read; partitions of which nothing is read are absent, or at BEGINNING.
Read: TypeAlias = Mapping[Place, Entry]


class LedgerSize(NamedTuple):
    """A ledger of a partition, and how many entries it has."""

    ledger: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgers:
    """What a partition holds now: its ledgers, the oldest first.  The last one may grow."""

    ledgers: tuple[LedgerSize, ...]
    #: Of all entries.
    bytes: int = 0

    @property
    def end(self) -> Entry:
        """The last entry; where there is none, the place before the first one that will be."""
        for ledger, entries in reversed(self.ledgers):
            if entries:
                return Entry(ledger, entries - 1)
        return Entry(self.ledgers[0].ledger, -1) if self.ledgers else BEGINNING

    @property
    def entries(self) -> int:
        """How many there are."""
        return sum(entries for _, entries in self.ledgers)

    def after(self, start: Entry) -> int:
        """How many entries there are after *start*."""
        return sum(_rest(each, start) for each in self.ledgers)

    def advanced(self, start: Entry, limit: int) -> Entry:
        """The last of the next *limit* entries after *start*, or the end where there are fewer; *start* for none."""
        place, remaining = start, limit
        for each in self.ledgers:
            step = min(_rest(each, start), remaining)
            if step:
                place = Entry(each.ledger, each.entries - _rest(each, start) + step - 1)
                remaining -= step
        return place

    def up_to(self, end: Entry) -> "Ledgers":
        """The same without what lies after *end*."""
        cut = tuple(each._replace(entries=each.entries - _rest(each, end)) for each in self.ledgers)
        return Ledgers(ledgers=cut, bytes=self.bytes)

    def before(self, start: Entry, limit: int) -> Entry:
        """The place *limit* entries before *start*, one at least, or before the first one where there are fewer."""
        remaining = max(1, limit)
        for ledger, entries in reversed(self.ledgers):
            read = min(entries, start.entry + 1) if ledger == start.ledger else entries if ledger < start.ledger else 0
            if read >= remaining:
                return Entry(ledger, read - remaining - 1)
            remaining -= read
        return BEGINNING


class Missing(NamedTuple):
    """Entries that were not read and are gone: those after ``after`` and before ``until``."""

    partition: Place
    after: Entry
    until: Entry
    #: How many are known of; there may be more.
    known: int

    def __str__(self) -> str:
        """For a warning."""
        topic, partition = self.partition
        deleted = f"has deleted at least {self.known} entries" if self.known else "may have deleted entries"
        return (
            f"{topic}, partition {partition}: retention {deleted} that were not read, after "
            f"{self.after} and before {self.until}; continuing at {self.until}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A partition that does not reach as far as it was read: it is not the one that was read."""

    partition: Place
    read: Entry
    end: Entry


def missing(partition: Place, start: Entry, now: Ledgers, earlier: Ledgers | None) -> Missing | None:
    """What retention has deleted of *partition* behind *start*; None where all of it is there.

    *earlier* is what it held when it was last looked at.  Only that says whether the ledger of *start* had ended there;
    without it a ledger that is gone counts as one that had not.
    """
    if start == BEGINNING or not now.ledgers or start.ledger >= now.ledgers[0].ledger:
        return None
    first = now.ledgers[0].ledger
    deleted = [each for each in earlier.ledgers if each.ledger < first] if earlier else []
    known = sum(_rest(each, start) for each in deleted)
    if not known and earlier is not None and _was_whole(earlier, start, first):
        return None
    return Missing(partition, start, Entry(first, 0), known)


def replaced(partition: Place, start: Entry, now: Ledgers) -> Replaced | None:
    """Whether *partition* ends before *start*, which was read of it."""
    if start == BEGINNING or not now.ledgers:
        return None
    last = now.ledgers[-1]
    ends_before = start.ledger > last.ledger or any(
        ledger == start.ledger and start.entry >= entries and entries for ledger, entries in now.ledgers
    )
    return Replaced(partition=partition, read=start, end=now.end) if ends_before else None


def ends(read: Read, extents: Mapping[Place, Ledgers], limit: int | None) -> dict[Place, Entry]:
    """Where the next micro-batch ends in each partition: it holds *limit* entries, all that there are for None.

    Each partition gives its share of what lies ahead, and one entry at least; so *limit* is exceeded where there are
    more partitions than that.  Ends never lie before what is *read*.
    """
    ahead = {place: extent.after(read.get(place, BEGINNING)) for place, extent in extents.items()}
    total = sum(ahead.values())
    reached = {}
    for place, extent in extents.items():
        start, share = read.get(place, BEGINNING), ahead[place]
        if limit is not None and total > limit:
            share = min(share, max(1, limit * share // total))
        reached[place] = extent.advanced(start, share)
    return reached


def _rest(ledger: LedgerSize, start: Entry) -> int:
    """How many entries *ledger* has after *start*."""
    if ledger.ledger < start.ledger:
        return 0
    return max(0, ledger.entries - start.entry - 1) if ledger.ledger == start.ledger else ledger.entries


def _was_whole(earlier: Ledgers, start: Entry, first: int) -> bool:
    """Whether nothing can have lain between *start* and the ledger *first*, by what there was *earlier*."""
    # A ledger that was the last one then may have grown before it was deleted.
    return any(ledger >= first for ledger, _ in earlier.ledgers) and start.ledger >= earlier.ledgers[0].ledger
