"""The records of a log as they lie there, byte for byte: for those who copy a log, or replay one."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

#: Topics that a recording holds.  The names of dead letters' sources would not fit a copy.
RecordedTopic: TypeAlias = Literal["metrics", "results", "commands", "journal"]
RECORDED_TOPICS: Final[tuple[RecordedTopic, ...]] = get_args(RecordedTopic)


class StoredRecord(NamedTuple):
    """One record with its place in the topic."""

    partition: int
    offset: int
    #: Epoch ms: the append time in Kafka, the file's time of modification in a folder.
    timestamp_ms: int
    #: None where it has none, as in a folder.
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class Extent(NamedTuple):
    """A part of a partition, from the offset *first* up to *end*, which does not belong to it."""

    first: int
    end: int


#: A part of a topic: partition -> its part.
Extents: TypeAlias = Mapping[int, Extent]


def offsets_in(extents: Extents) -> int:
    """How many offsets *extents* have."""
    return sum(each.end - each.first for each in extents.values())


class RecordLog(Protocol):
    """A log, or a recording of one, that is read as it lies there.  Reading has no effect on others.

    Every method may raise TrimtabError where the log cannot be read.
    """

    @property
    def where(self) -> str:
        """Where it is, for messages."""
        ...

    def extents(self, topic: RecordedTopic) -> Extents:
        """What *topic* holds now, by partition; empty where there is no such topic."""
        ...

    def counted_from(self, topic: RecordedTopic) -> str:
        """What offsets of *topic* are counted from; "" where records keep theirs for ever."""
        ...

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """Of each partition the first offset of the records from *time_ms* (epoch ms) on; the end where none are."""
        ...

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:
        """About how many records *extents* hold; None where offsets do not tell."""
        ...

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """The records in *extents*: in order within a partition, and about in the order of time over all of them.

        Offsets without a record (transactions' marks, deleted records) are left out.
        """
        ...
