"""A snapshot: what one shard says of one closed interval, as a value and as a blob."""

from dataclasses import dataclass, fields
from typing import Any, Self

from controller.aggregate.columns import (
    names_from_bytes,
    names_to_bytes,
    pack,
    text_from_bytes,
    text_to_bytes,
    unpack,
)
from controller.aggregate.fact_text import fact_from_json, fact_to_json
from controller.aggregate.states import States
from controller.model.load import Floats, Ints
from controller.model.records import BrokerState, CommandResult, NamespaceState

_VERSION = 3
_ARRAYS = (
    "owner", "load", "short_samples", "short_term", "long_samples", "long_term", "topics", "producers", "consumers",
    "detail_size", "detail_position", "detail_load",
)  # fmt: skip
_STATES = ("namespaces", "broker_states")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """What a broker says of itself: see rows.NUMBERS."""

    broker: str
    last_update: int
    numbers: tuple[float, ...]
    #: Source and partition of the chunks of its sweep, where that is what counts.
    places: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """One shard at T: the bundles served then, sorted by name; from shard 0 also what came once."""

    interval: int
    shard: int
    shards: int
    #: Active brokers, sorted; ``owner`` refers to them.
    roster: tuple[str, ...]
    #: Those of the roster without a sweep: their reports and topic stats count.
    unswept: tuple[str, ...]
    #: Brokers whose data is complete (shard 0 only, like the next three).
    brokers: tuple[BrokerRow, ...]
    namespaces: States[NamespaceState]
    broker_states: States[BrokerState]
    results: tuple[CommandResult, ...]
    #: Source and partition of which parts of sweeps were dropped, in this shard: brokers there have no data.
    torn: tuple[tuple[int, int], ...] = ()
    #: Rows that came after their tick, that were never on a roster, that were dropped as too much waited for a tick:
    #: of this shard, since the beginning.
    late: int
    unrostered: int
    dropped: int = 0
    names: list[str]
    owner: Ints
    load: Floats
    #: Averages, and the number of samples in each, this interval's included.
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

    def to_blob(self) -> bytes:
        """As bytes: a few MB for 100,000 bundles."""
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
        """What :meth:`to_blob` wrote."""
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
