"""A snapshot: the contents of one shard at one closed interval, as a value and as a blob."""

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from controller.aggregate.columns.blobs import (
    names_from_bytes,
    names_to_bytes,
    pack,
    text_from_bytes,
    text_to_bytes,
    unpack,
)
from controller.aggregate.state.facts import fact_from_json, fact_to_json
from controller.aggregate.state.states import States
from controller.model.load import Floats, Ints
from controller.model.records import BrokerState, CommandResult, NamespaceState
from controller.model.topic_kinds import KindFlags

_VERSION = 6
_ARRAYS = (
    "owner", "load", "short_samples", "short_term", "long_samples", "long_term", "topics", "producers", "consumers",
    "detail_size", "detail_position", "detail_load", "detail_segment", "contested", "claimant", "kinds",
)  # fmt: skip
_NOTHING = np.zeros(0, np.int64)
_STATES = ("namespaces", "broker_states")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """A broker's report about itself."""

    broker: str
    last_update: int
    #: See rows.NUMBERS.
    numbers: tuple[float, ...]
    #: (source, partition) of the chunks of its sweep; empty if a load report counts.
    places: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """One shard at T: the bundles owned at T, sorted by name; shard 0 also has all that is not about bundles."""

    interval: int
    shard: int
    shards: int
    #: Active brokers, sorted; ``owner`` is a row of it.
    roster: tuple[str, ...]
    #: Roster brokers without a sweep: their reports and topic stats count.
    unswept: tuple[str, ...]
    #: Brokers with complete data (only in shard 0, as the next three).
    brokers: tuple[BrokerRow, ...]
    namespaces: States[NamespaceState]
    broker_states: States[BrokerState]
    results: tuple[CommandResult, ...]
    #: (source, partition) where this shard dropped parts of sweeps: brokers swept there have no data.
    torn: tuple[tuple[int, int], ...] = ()
    #: States of namespaces and brokers that this shard has dropped since the beginning: all of them were too long.
    dropped_states: int = 0
    #: Rows of this shard since the beginning: after their tick, of intervals without a roster, dropped because too
    #: much waited for a tick.
    late: int
    unrostered: int
    dropped: int
    names: list[str]
    owner: Ints
    #: (n, 4) msg/s and bytes/s.
    load: Floats
    #: (n,) flags of topic_kinds, as the records say; 0 where no topic is loaded.
    kinds: KindFlags
    #: Averages (n, 4) and their numbers of samples (n,), with this interval's load.
    short_samples: Ints
    short_term: Floats
    long_samples: Ints
    long_term: Floats
    topics: Ints
    producers: Ints
    consumers: Ints
    detail_size: Ints
    detail_position: Ints
    detail_load: Floats
    detail_segment: Ints
    #: Bundles that other brokers list, too: rows of ``names`` and of ``roster``.  Of a bundle's, the latest is last.
    contested: Ints = field(default_factory=lambda: _NOTHING)
    claimant: Ints = field(default_factory=lambda: _NOTHING)

    def to_blob(self) -> bytes:
        """The snapshot as bytes: a few MB for 100,000 bundles."""
        header: dict[str, Any] = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*_ARRAYS, *_STATES, "names")
        }
        header["brokers"] = [[b.broker, b.last_update, b.numbers, b.places] for b in self.brokers]
        header["results"] = [fact_to_json(result) for result in self.results]
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {name: text_to_bytes(getattr(self, name).text) for name in _STATES}
        return pack(_VERSION, header, {"names": names_to_bytes(self.names), **arrays})

    @classmethod
    def from_blob(cls, blob: bytes) -> Self:
        """The snapshot that :meth:`to_blob` wrote; raises StateError if it is damaged or of another version."""
        _, header, arrays = unpack(blob, versions=(_VERSION,))
        header["roster"], header["unswept"] = tuple(header["roster"]), tuple(header["unswept"])
        header["torn"] = _pairs(header["torn"])
        header["brokers"] = tuple(
            BrokerRow(broker=broker, last_update=at, numbers=tuple(numbers), places=_pairs(places))
            for broker, at, numbers, places in header["brokers"]
        )
        header["results"] = tuple(map(fact_from_json, header["results"]))
        names = names_from_bytes(arrays.pop("names"))
        states = {name: States(text=text_from_bytes(arrays.pop(name))) for name in _STATES}
        columns: dict[str, Any] = {**arrays, **states}
        return cls(names=names, **header, **columns)


def _pairs(listed: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((source, partition) for source, partition in listed)
