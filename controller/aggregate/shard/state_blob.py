"""A shard's state as one versioned blob, which Spark's state store keeps between batches.

The parts that most batches do not touch are stored as in memory (columns, text), so they are not parsed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.blobs import (
    names_from_bytes,
    names_to_bytes,
    pack,
    text_from_bytes,
    text_to_bytes,
    unpack,
)
from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.state.bundles import KnownBundles, Seeds
from controller.aggregate.state.facts import fact_from_json, fact_to_json
from controller.aggregate.state.states import States
from controller.aggregate.ticks.intervals import TickClock
from controller.aggregate.waiting.limits import ArrivedBytes
from controller.aggregate.waiting.waiting_rows import WaitingClaims, WaitingFacts, WaitingHeaders
from controller.model.errors import StateError
from controller.model.records import Tick

#: Increase it when the layout changes: a state of another version is refused.
VERSION = 5

_CLAIM, _BUNDLE, _HEADER, _FACT, _SEED = "claims.", "bundles.", "headers.", "facts.", "seeds."
_STATES = ("namespaces", "brokers")
_COUNTS = ("closes", "late", "unrostered", "dropped", "dropped_states", "files")


def dump(state: ShardState) -> bytes:
    """*state* as bytes.  O(state)."""
    clock, arrivals = state.clock, state.arrivals
    header = {
        "shard": state.shard,
        "shards": state.shards,
        "ticked": [[*partition, t] for partition, t in sorted(clock.ticked.items())],
        "rosters": [fact_to_json(tick) for _, tick in sorted(clock.rosters.items())],
        "closed": clock.closed,
        "arrived": [[*partition, size] for partition, size in sorted(arrivals.size.items())],
        "arrived_ticked": [[*partition, size] for partition, size in sorted(arrivals.ticked.items())],
        "newest": [[*partition, *intervals] for partition, intervals in sorted(arrivals.newest.items())],
        "torn": sorted(state.torn),
        **{name: getattr(state, name) for name in _COUNTS},
    }
    arrays: dict[str, NDArray[Any]] = {
        "pool": names_to_bytes(state.pool),
        "names": names_to_bytes(state.bundles.names),
        "texts": names_to_bytes(state.facts.texts.tolist()),
        "seeded": names_to_bytes(state.seeds.names),
    }
    for name in _STATES:
        states = getattr(state, name)
        arrays |= {name: text_to_bytes(states.text), f"{name}.written": states.written}
    arrays |= _prefix(_BUNDLE, state.bundles.arrays()) | _prefix(_CLAIM, state.claims.columns())
    facts = {name: column for name, column in state.facts.columns().items() if name != "texts"}
    arrays |= _prefix(_HEADER, state.headers.columns()) | _prefix(_FACT, facts)
    return pack(VERSION, header, arrays | _prefix(_SEED, state.seeds.arrays()))


def load(blob: bytes) -> ShardState:
    """The state that :func:`dump` wrote.

    Raises StateError for another version, or if the blob is damaged or cut off.
    """
    _, header, arrays = unpack(blob, versions=(VERSION,))
    try:
        return _loaded(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(f"stored state is damaged: {error!r}") from error


def _loaded(header: dict[str, Any], arrays: dict[str, Any]) -> ShardState:
    ticks = [fact_from_json(item) for item in header["rosters"]]
    clock = TickClock(
        ticked={(source, partition): t for source, partition, t in header["ticked"]},
        rosters={tick.interval: tick for tick in ticks if isinstance(tick, Tick)},
        closed=header["closed"],
    )
    names, columns = names_from_bytes(arrays["names"]), _prefixed(arrays, _BUNDLE)
    if any(len(column) != len(names) for column in columns.values()):
        raise StateError(f"stored state has {len(names)} names of bundles, but a column has another number of rows")
    texts = np.array(names_from_bytes(arrays["texts"]), np.object_)
    return ShardState(
        shard=header["shard"],
        shards=header["shards"],
        clock=clock,
        pool=names_from_bytes(arrays["pool"]),
        bundles=KnownBundles(names=names, **columns),
        claims=WaitingClaims(**_prefixed(arrays, _CLAIM)),
        headers=WaitingHeaders(**_prefixed(arrays, _HEADER)),
        facts=WaitingFacts(texts=texts, **_prefixed(arrays, _FACT)),
        seeds=Seeds(names=names_from_bytes(arrays["seeded"]), **_prefixed(arrays, _SEED)),
        arrivals=ArrivedBytes(
            size={(source, partition): size for source, partition, size in header["arrived"]},
            ticked={(source, partition): size for source, partition, size in header["arrived_ticked"]},
            newest={(source, partition): tuple(rest) for source, partition, *rest in header["newest"]},
        ),
        torn=frozenset((due, source, partition) for due, source, partition in header["torn"]),
        namespaces=_states(arrays, "namespaces"),
        brokers=_states(arrays, "brokers"),
        **{name: header[name] for name in _COUNTS},
    )


def _states(arrays: dict[str, Any], name: str) -> States[Any]:
    return States(text=text_from_bytes(arrays[name]), written=arrays[f"{name}.written"])


def _prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {prefix + name: array for name, array in arrays.items()}


def _prefixed(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
