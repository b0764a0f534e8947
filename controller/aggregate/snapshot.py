"""A snapshot: what one shard says of one closed interval, as a value and as a blob."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from controller.aggregate.columns import names_from_bytes, names_to_bytes, pack, unpack
from controller.model.load import Floats, Ints
from controller.model.records import BrokerState, CommandResult, NamespaceState

_VERSION = 3
_ARRAYS = (
    "owner", "load", "short_samples", "short_term", "long_samples", "long_term", "topics", "producers", "consumers",
    "detail_size", "detail_position", "detail_load",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """What a broker says of itself: see rows.NUMBERS."""

    broker: str
    last_update: int
    numbers: tuple[float, ...]


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
    namespaces: tuple[NamespaceState, ...]
    broker_states: tuple[BrokerState, ...]
    results: tuple[CommandResult, ...]
    late: int
    unrostered: int
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
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*_ARRAYS, "names")
        }
        for name in ("brokers", "namespaces", "broker_states", "results"):
            header[name] = [asdict(item) for item in header[name]]
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return pack(_VERSION, header, {"names": names_to_bytes(self.names), **arrays})

    @classmethod
    def from_blob(cls, blob: bytes) -> Self:
        """What :meth:`to_blob` wrote."""
        _, header, arrays = unpack(blob, versions=(_VERSION,))
        header["roster"], header["unswept"] = tuple(header["roster"]), tuple(header["unswept"])
        header["brokers"] = tuple(BrokerRow(**item | {"numbers": tuple(item["numbers"])}) for item in header["brokers"])
        header["namespaces"] = tuple(namespace_state(item) for item in header["namespaces"])
        header["broker_states"] = tuple(broker_state(item) for item in header["broker_states"])
        header["results"] = tuple(CommandResult(**item) for item in header["results"])
        names = names_from_bytes(arrays.pop("names"))
        columns: dict[str, Any] = arrays
        return cls(names=names, **header, **columns)


def namespace_state(item: dict[str, Any]) -> NamespaceState:
    """A NamespaceState from its JSON form."""
    return NamespaceState(
        **item | {"boundaries": tuple(item["boundaries"]), "isolation_policies": tuple(item["isolation_policies"])}
    )


def broker_state(item: dict[str, Any]) -> BrokerState:
    """A BrokerState from its JSON form."""
    return BrokerState(**item | {"capacity": tuple((name, limit) for name, limit in item["capacity"])})
