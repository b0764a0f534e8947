"""A shard's state as one versioned blob, which Spark's state store keeps between batches.

The parts that most batches do not touch are stored as in memory (columns, text), so they are not parsed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.blobs import (
    names_from_bytes,
    names_from_lines,
    names_to_bytes,
    pack,
    text_from_bytes,
    text_to_bytes,
    unpack,
)
from controller.aggregate.columns.rows import NUMBERS
from controller.aggregate.kept.bundles import KnownBundles
from controller.aggregate.kept.fact_text import fact_from_json, fact_to_json
from controller.aggregate.kept.seeds import Seeds
from controller.aggregate.kept.states import States
from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.shard.state_blob_v1 import waiting_and_kept
from controller.aggregate.ticks.intervals import TickClock
from controller.aggregate.waiting.claims import Claims
from controller.aggregate.waiting.headers import WaitingFacts, WaitingHeaders
from controller.aggregate.waiting.limits import ArrivedBytes
from controller.model.errors import StateError
from controller.model.records import Tick
from controller.model.topic_kinds import UNLISTED

#: Increase it when the layout changes, and migrate in :func:`load`.
VERSION = 4
#: Version 3: no kinds of topics, neither of bundles nor of brokers.
#: Version 2: besides, the states of namespaces and brokers are a list, and each has its policies in full.
#: Version 1: besides, one name in each line; everything but claims and averages as JSON.
_READ = (1, 2, 3, VERSION)
_OLDEST = _READ[0]
#: The last version without kinds of topics.
_WITHOUT_KINDS = 3

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
        "texts": names_to_bytes(state.facts.texts),
        "seeded": names_to_bytes(state.seeds.names),
    }
    for name in _STATES:
        states = getattr(state, name)
        arrays |= {name: text_to_bytes(states.text), f"{name}.written": states.written}
    arrays |= _prefix(_BUNDLE, state.bundles.arrays()) | _prefix(_CLAIM, state.claims.columns())
    arrays |= _prefix(_HEADER, state.headers.columns()) | _prefix(_FACT, state.facts.columns())
    return pack(VERSION, header, arrays | _prefix(_SEED, state.seeds.arrays()))


def load(blob: bytes) -> ShardState:
    """The state that :func:`dump` wrote, in this version or an earlier one.

    Raises StateError for another version, or if the blob is damaged or cut off.
    """
    version, header, arrays = unpack(blob, versions=_READ)
    if version <= _WITHOUT_KINDS:
        arrays = _with_kinds(arrays)
    names_of = names_from_lines if version == _OLDEST else names_from_bytes
    ticks = [fact_from_json(item) for item in header["rosters"]]
    clock = TickClock(
        ticked={(source, partition): t for source, partition, t in header["ticked"]},
        rosters={tick.interval: tick for tick in ticks if isinstance(tick, Tick)},
        closed=header["closed"],
    )
    pool, names, columns = names_of(arrays["pool"]), names_of(arrays["names"]), _prefixed(arrays, _BUNDLE)
    if any(len(column) != len(names) for column in columns.values()):
        raise StateError(f"stored state has {len(names)} names of bundles, but a column has another number of rows")
    claims = _prefixed(arrays, _CLAIM)
    if version == _OLDEST:
        pool, rest = waiting_and_kept(header, pool)
        claims["upto"] = np.zeros(len(claims["due"]), np.int64)
    else:
        rest = _rest(header, arrays)
    return ShardState(
        shard=header["shard"],
        shards=header["shards"],
        clock=clock,
        pool=pool,
        bundles=KnownBundles(names=names, **columns),
        claims=Claims(**claims),
        **rest,
        **{name: header.get(name, 0) for name in _COUNTS},
    )


def _with_kinds(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """*arrays* of a version without kinds of topics: those of bundles are unknown, and brokers switch none off."""
    found = dict(arrays)
    found[f"{_CLAIM}kinds"] = np.full(len(arrays[f"{_CLAIM}due"]), UNLISTED, np.uint8)
    numbers = f"{_HEADER}numbers"
    if numbers in found:  # version 1 has them in its JSON
        found[numbers] = np.pad(found[numbers], ((0, 0), (0, NUMBERS - found[numbers].shape[1])))
    return found


def _rest(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {
        "headers": WaitingHeaders(**_prefixed(arrays, _HEADER)),
        "facts": WaitingFacts(texts=names_from_bytes(arrays["texts"]), **_prefixed(arrays, _FACT)),
        "seeds": Seeds(names=names_from_bytes(arrays["seeded"]), **_prefixed(arrays, _SEED)),
        "arrivals": ArrivedBytes(
            size={(source, partition): size for source, partition, size in header["arrived"]},
            ticked={(source, partition): size for source, partition, size in header["arrived_ticked"]},
            newest={(source, partition): tuple(rest) for source, partition, *rest in header["newest"]},
        ),
        "torn": frozenset((due, source, partition) for due, source, partition in header["torn"]),
        **{name: States(text=text_from_bytes(arrays[name]), written=arrays[f"{name}.written"]) for name in _STATES},
    }


def _prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {prefix + name: array for name, array in arrays.items()}


def _prefixed(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
