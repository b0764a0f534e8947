"""A shard's state as one versioned blob: what lies in the state store between batches."""

from dataclasses import asdict
from typing import Any

from controller.aggregate.bundles import KnownBundles
from controller.aggregate.claims import Claims
from controller.aggregate.columns import names_from_bytes, names_from_lines, names_to_bytes, pack, unpack
from controller.aggregate.intervals import Clock
from controller.aggregate.shard import Header, ShardState, WaitingFact
from controller.aggregate.snapshot import broker_state, namespace_state
from controller.model.errors import StateError
from controller.model.records import BrokerState, BundleSeed, CommandResult, Fact, NamespaceState, Tick

#: Raise it when the layout changes, and migrate in :func:`load`.
VERSION = 2
#: Names lay one a line until version 2, which stores them with their lengths.
_NAMES_IN_LINES = 1

_CLAIM, _BUNDLE = "claims.", "bundles."


def dump(state: ShardState) -> bytes:
    """*state* as bytes.  O(state)."""
    clock = state.clock
    header = {
        "shard": state.shard,
        "shards": state.shards,
        "ticked": [[*partition, t] for partition, t in sorted(clock.ticked.items())],
        "rosters": [_fact_to_json(tick) for _, tick in sorted(clock.rosters.items())],
        "closed": clock.closed,
        "headers": [asdict(h) for h in state.headers],
        "facts": [asdict(f) | {"fact": _fact_to_json(f.fact)} for f in state.facts],
        "seeds": [_fact_to_json(seed) for _, seed in sorted(state.seeds.items())],
        "namespaces": [_fact_to_json(item) for _, item in sorted(state.namespaces.items())],
        "brokers": [_fact_to_json(item) for _, item in sorted(state.brokers.items())],
        "late": state.late,
        "unrostered": state.unrostered,
        "files": state.files,
    }
    arrays = {"pool": names_to_bytes(state.pool), "names": names_to_bytes(state.bundles.names)}
    arrays |= {_BUNDLE + name: array for name, array in state.bundles.arrays().items()}
    arrays |= {_CLAIM + name: array for name, array in state.claims.columns().items()}
    return pack(VERSION, header, arrays)


def load(blob: bytes) -> ShardState:
    """What :func:`dump` wrote, now or as version 1; StateError for another version, or a blob that is cut off."""
    version, header, arrays = unpack(blob, versions=(_NAMES_IN_LINES, VERSION))
    names_of = names_from_lines if version == _NAMES_IN_LINES else names_from_bytes
    ticks = [_fact_from_json(item) for item in header["rosters"]]
    clock = Clock(
        ticked={(source, partition): t for source, partition, t in header["ticked"]},
        rosters={tick.interval: tick for tick in ticks if isinstance(tick, Tick)},
        closed=header["closed"],
    )
    facts = [f | {"fact": _fact_from_json(f["fact"])} for f in header["facts"]]
    seeds = [_fact_from_json(item) for item in header["seeds"]]
    namespaces = [_fact_from_json(item) for item in header["namespaces"]]
    brokers = [_fact_from_json(item) for item in header["brokers"]]
    names, columns = names_of(arrays["names"]), _prefixed(arrays, _BUNDLE)
    if any(len(column) != len(names) for column in columns.values()):
        raise StateError(f"stored state has {len(names)} names of bundles, but other numbers of them in its columns")
    return ShardState(
        shard=header["shard"],
        shards=header["shards"],
        clock=clock,
        pool=names_of(arrays["pool"]),
        bundles=KnownBundles(names=names, **columns),
        claims=Claims(**_prefixed(arrays, _CLAIM)),
        headers=tuple(Header(**h | {"numbers": tuple(h["numbers"])}) for h in header["headers"]),
        facts=tuple(WaitingFact(**f) for f in facts),
        seeds={seed.bundle: seed for seed in seeds if isinstance(seed, BundleSeed)},
        namespaces={item.namespace: item for item in namespaces if isinstance(item, NamespaceState)},
        brokers={item.broker: item for item in brokers if isinstance(item, BrokerState)},
        late=header["late"],
        unrostered=header["unrostered"],
        files=header["files"],
    )


def _prefixed(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _fact_to_json(fact: Fact) -> dict[str, Any]:
    return {"is": type(fact).__name__, **asdict(fact)}


def _fact_from_json(item: dict[str, Any]) -> Fact:
    said = {name: value for name, value in item.items() if name != "is"}
    match item["is"]:
        case "Tick":
            roster = said["roster"]
            return Tick(**said | {"roster": None if roster is None else tuple((b, sweep) for b, sweep in roster)})
        case "CommandResult":
            return CommandResult(**said)
        case "NamespaceState":
            return namespace_state(said)
        case "BrokerState":
            return broker_state(said)
        case _:
            terms = ("short_term", "long_term")
            return BundleSeed(**said | {term: tuple(said[term]) for term in terms})
