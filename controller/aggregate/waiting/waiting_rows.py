"""Tables of rows that wait for their interval to close: claims, headers and facts."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.rows import NUMBERS, STATS, DatedRows, Partition
from controller.model.load import Bools, Floats, Ints, ragged
from controller.model.topic_kinds import KindFlags

#: Columns with a row for each topic in detail, not for each row of the table.
_OF_TOPICS: Final = ("detail_position", "detail_load", "detail_segment")


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingRows:
    """Every field is a column; a stored state has them in the order of the fields.

    A column is (n,) of whole numbers unless ``WIDE`` or ``TYPES`` names it.
    """

    #: Column -> width of each of its rows.
    WIDE: ClassVar[Mapping[str, int]] = {}
    #: Column -> type of its values.
    TYPES: ClassVar[Mapping[str, type]] = {}

    #: T of the interval, UNDUE or LATE: see intervals.
    due: Ints
    #: Place of the record in the log: METRICS or RESULTS, partition, offset.
    source: Ints
    partition: Ints
    offset: Ints
    #: Bytes that had arrived in its partition up to and including its record: see limits.
    upto: Ints

    def __len__(self) -> int:
        return len(self.due)

    @classmethod
    def empty(cls) -> Self:
        """No rows."""
        shape = {f.name: (0, cls.WIDE[f.name]) if f.name in cls.WIDE else 0 for f in fields(cls)}
        return cls(**{name: np.empty(each, cls.TYPES.get(name, np.int64)) for name, each in shape.items()})

    @classmethod
    def of(cls, rows: DatedRows, chosen: Ints, **others: NDArray[Any]) -> Self:
        """The *chosen* of *rows*; *others* are the columns that *rows* has in another form, of the chosen rows."""
        names = (f.name for f in fields(cls) if f.name not in others)
        return cls(**others, **_take_rows({name: getattr(rows, name) for name in names}, chosen))

    @property
    def place(self) -> Ints:
        """(n, 3) source, partition and offset."""
        return np.stack([self.source, self.partition, self.offset], axis=1)

    def of_partition(self, partition: Partition) -> Bools:
        """(n,) whether each row comes from *partition*."""
        mask: Bools = (self.source == partition[0]) & (self.partition == partition[1])
        return mask

    def columns(self) -> dict[str, NDArray[Any]]:
        """Name -> column."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def take(self, mask: Bools) -> Self:
        """Only the rows in *mask*, (n,)."""
        return self if mask.all() else type(self)(**_take_rows(self.columns(), np.flatnonzero(mask)))

    def with_rows(self, later: Self) -> Self:
        """These rows, and then those of *later*."""
        if not len(later):
            return self
        others = later.columns()
        return type(self)(**{name: np.concatenate([column, others[name]]) for name, column in self.columns().items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingClaims(WaitingRows):
    """Statements of records that a broker serves a bundle with some load, in any order.

    One row for each bundle and record (TOPIC: for each topic and record).  ``broker`` and ``sweep`` are positions in
    the shard's pool of names, ``bundle`` is a row of its known bundles.  ``kind`` is one of rows' kinds.
    """

    WIDE: ClassVar[Mapping[str, int]] = {"stats": len(STATS), "topic": 3, "detail_load": 4}
    TYPES: ClassVar[Mapping[str, type]] = {"stats": np.float64, "detail_load": np.float64, "kinds": np.uint8}

    kind: Ints
    broker: Ints
    sweep: Ints
    chunk: Ints
    last_update: Ints
    bundle: Ints
    #: (n, 7): see rows.STATS.
    stats: Floats
    #: (n,) flags of topic_kinds.
    kinds: KindFlags
    #: (n, 3) hash of the topic's name, its ring position and its code of segment_code, TOPIC only.
    topic: Ints
    #: (n,) number of topics in the three columns below, which hold the topics of row 0, then of row 1, and so on.
    detail_size: Ints
    detail_position: Ints
    detail_load: Floats
    detail_segment: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingHeaders(WaitingRows):
    """SWEEP and REPORT rows; ``broker`` and ``sweep`` are positions in the shard's pool of names."""

    WIDE: ClassVar[Mapping[str, int]] = {"numbers": NUMBERS}
    TYPES: ClassVar[Mapping[str, type]] = {"numbers": np.float64}

    broker: Ints
    sweep: Ints
    chunk: Ints
    chunks: Ints
    last_update: Ints
    #: (n, NUMBERS): see rows.
    numbers: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingFacts(WaitingRows):
    """Facts that wait for the next tick of their partition."""

    TYPES: ClassVar[Mapping[str, type]] = {"texts": np.object_}

    #: JSON of each (see facts), since most batches do not read them.
    texts: NDArray[np.object_]

    def in_order(self) -> list[str]:
        """The texts, ordered by interval, then by their place in the log."""
        texts: list[str] = self.texts[np.lexsort((self.offset, self.partition, self.source, self.due))].tolist()
        return texts


def _take_rows(columns: Mapping[str, NDArray[Any]], chosen: Ints) -> dict[str, NDArray[Any]]:
    """The *chosen* rows of *columns*, with their topics."""
    topics = ragged(columns["detail_size"], chosen) if "detail_size" in columns else chosen
    return {name: column[topics if name in _OF_TOPICS else chosen] for name, column in columns.items()}
