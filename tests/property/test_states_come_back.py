"""Every state can be read back from its blob, whatever characters its names have."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.aggregate.columns.blobs import names_from_bytes, names_to_bytes, pack, unpack
from controller.aggregate.columns.rows import NUMBERS
from controller.aggregate.kept.bundles import KnownBundles
from controller.aggregate.kept.fact_text import fact_from_text, fact_to_text
from controller.aggregate.kept.seeds import Seeds
from controller.aggregate.kept.states import States
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import ShardState
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.waiting.claims import Claims
from controller.aggregate.waiting.headers import WaitingFacts, WaitingHeaders
from controller.aggregate.waiting.limits import ArrivedBytes
from controller.model.errors import StateError
from controller.model.records import BrokerState, BundleSeed, CommandResult, NamespaceState
from controller.model.topic_kinds import UNLISTED

#: Line breaks of every kind, other control characters, halves of surrogate pairs, nothing at all.
NAMES = st.text(
    st.sampled_from("a\n\r\0\x0b\x1e\x85\u2028\u2029\ud83d\ude00ü😀") | st.characters(exclude_categories=()), max_size=6
)


def same(one: Any, other: Any) -> bool:
    """Whether the two are the same down to the last bit."""
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def state_of(names: list[str]) -> ShardState:
    """A state with each of *names* wherever one can be."""
    n = len(names)
    whole = np.arange(n, dtype=np.int64)
    shape = {"stats": (n, 7), "topic": (n, 2), "detail_load": (n, 4)}
    columns: dict[str, Any] = {
        f.name: np.ones(shape.get(f.name, (n,)), np.float64 if f.name in ("stats", "detail_load") else np.int64)
        for f in fields(Claims)
    }
    load = (1.0, 2.0, 3.0, 4.0)
    seeds = [
        BundleSeed(bundle=name, short_term_samples=1, short_term=load, long_term_samples=1, long_term=load)
        for name in names
    ]
    places = [(0, i) for i in range(n)]
    counts = {f.name: whole for f in fields(WaitingHeaders) if f.name != "numbers"}
    columns["kinds"] = np.ones(n, np.uint8)
    return ShardState(
        shard=0,
        shards=2,
        pool=names,
        bundles=KnownBundles.of(names),
        claims=Claims(**columns | {"broker": whole, "sweep": whole, "bundle": whole}),
        headers=WaitingHeaders(**counts, numbers=np.ones((n, NUMBERS))),
        facts=WaitingFacts(
            due=whole, source=whole, partition=whole, offset=whole, upto=whole,
            texts=[fact_to_text(CommandResult(id=name, status="done", detail=name)) for name in names],
        ),
        seeds=Seeds.of(seeds, 3),
        namespaces=States.of([NamespaceState(namespace=name, version=1, boundaries=(0, 7)) for name in names], 4),
        brokers=States.of([BrokerState(broker=name, version=1, failure_domain=name) for name in names], 5),
        arrivals=ArrivedBytes(
            size=dict.fromkeys(places, 9), ticked=dict.fromkeys(places, 3), newest=dict.fromkeys(places, (7, 8))
        ),
        torn=frozenset((i, 0, 1) for i in range(n)),
        closes=6,
        late=1,
        unrostered=2,
        dropped=3,
        files=4,
    )  # fmt: skip


def snapshot_of(names: list[str]) -> Snapshot:
    n = len(names)
    counts, rates = np.ones(n, np.int64), np.ones((n, 4))
    whole = (
        "owner",
        "topics",
        "producers",
        "consumers",
        "detail_size",
        "detail_position",
        "short_samples",
        "long_samples",
    )
    columns: dict[str, Any] = dict.fromkeys(whole, counts)
    columns |= dict.fromkeys(("load", "short_term", "long_term", "detail_load"), rates)
    columns["kinds"] = np.ones(n, np.uint8)
    namespaces = States.of(NamespaceState(namespace=name, version=1, boundaries=(0,)) for name in names).for_snapshot()
    return Snapshot(
        interval=1, shard=0, shards=1, roster=tuple(names), unswept=tuple(names), brokers=(), namespaces=namespaces,
        broker_states=States.of(()), results=(), torn=((0, 1),), late=0, unrostered=0, dropped=0, names=names,
        **columns,
    )  # fmt: skip


@given(st.lists(NAMES))
def test_names_come_back_from_their_bytes(names: list[str]) -> None:
    assert names_from_bytes(names_to_bytes(names)) == names


@given(st.lists(NAMES, unique=True))
def test_a_state_comes_back_from_its_blob(names: list[str]) -> None:
    state = state_of(sorted(names))
    assert same(state_blob.load(state_blob.dump(state)), state)


@given(st.lists(NAMES, unique=True))
def test_a_snapshot_comes_back_from_its_blob(names: list[str]) -> None:
    snapshot = snapshot_of(names)
    assert same(Snapshot.from_blob(snapshot.to_blob()), snapshot)


def of_version_1(names: list[str]) -> bytes:
    """A state with *names* as the release before stored it: names one a line, and much in JSON."""
    at = {"due": -1, "source": 0, "partition": 0, "offset": 0}
    load = [1.0, 2.0, 3.0, 4.0]
    said = {"chunk": 0, "chunks": 1, "last_update": 1}
    # Those of the first name; the others were not of shard 0.
    numbers = [[1.0] * NUMBERS, *[None] * len(names)]
    samples = {"short_term_samples": 1, "short_term": load, "long_term_samples": 1, "long_term": load}
    space = {"version": 1, "boundaries": [0, 7], "anti_affinity_group": "", "isolation_policies": []}
    header = {
        "shard": 0,
        "shards": 2,
        "ticked": [[0, 0, 5]],
        "rosters": [{"is": "Tick", "interval": 6, "metrics_partitions": 1, "results_partitions": 1, "roster": []}],
        "closed": 5,
        "headers": [
            at | said | {"broker": f"{name}-broker", "sweep": name, "numbers": its}
            for name, its in zip(names, numbers, strict=False)
        ],
        "facts": [at | {"fact": {"is": "CommandResult", "id": name, "status": "done"}} for name in names],
        "seeds": [{"is": "BundleSeed", "bundle": name, **samples} for name in names],
        "namespaces": [{"is": "NamespaceState", "namespace": name, **space} for name in names],
        "brokers": [{"is": "BrokerState", "broker": name, "version": 1, "capacity": [["cpu", 2.0]]} for name in names],
        "late": 1,
        "unrostered": 2,
        "files": 3,
    }
    lines = np.frombuffer("\n".join(names).encode(), np.uint8)
    claims = Claims.empty().take(np.zeros(0, np.int64))
    arrays = {"pool": lines, "names": lines}
    arrays |= {f"bundles.{name}": array for name, array in KnownBundles.of(names).arrays().items()}
    arrays |= {f"claims.{name}": array for name, array in claims.columns().items() if name != "upto"}
    return pack(1, header, arrays)


@pytest.mark.parametrize("names", [[], ["a/b/0x00000000_0xffffffff"], ["ü", "z"]])
def test_a_state_of_version_1_is_migrated(names: list[str]) -> None:
    state = state_blob.load(of_version_1(names))
    assert (state.clock.closed, list(state.clock.rosters)) == (5, [6])
    assert (state.late, state.unrostered, state.files) == (1, 2, 3)
    assert state.bundles.names == names
    assert [(h.broker, h.sweep, h.numbers) for h in state.headers.named(state.pool)] == [
        (f"{name}-broker", name, ((0.0 if nth else 1.0),) * NUMBERS) for nth, name in enumerate(names)
    ]
    assert [fact_from_text(text) for text in state.facts.texts] == [CommandResult(id=n, status="done") for n in names]
    assert (state.seeds.names, state.seeds.long_term.shape) == (sorted(names), (len(names), 4))
    assert [s.namespace for s in state.namespaces] == [s.broker for s in state.brokers] == sorted(names)
    assert [s.capacity for s in state.brokers] == [(("cpu", 2.0),)] * len(names)
    assert same(state_blob.load(state_blob.dump(state)), state)


def test_a_state_of_version_1_split_by_a_line_break_is_refused() -> None:
    with pytest.raises(StateError, match="3 names of bundles"):
        state_blob.load(of_version_1(["a\nb", "c"]))


def test_topics_that_waited_in_a_state_of_version_3_are_of_unknown_kinds() -> None:
    state = state_of(["a", "b"])
    _, header, arrays = unpack(state_blob.dump(state), versions=(state_blob.VERSION,))
    old = {name: array for name, array in arrays.items() if name != "claims.kinds"}
    old["headers.numbers"] = old["headers.numbers"][:, :-1]
    older = state_blob.load(pack(3, header, old))
    assert older.claims.kinds.tolist() == [UNLISTED, UNLISTED]
    assert older.headers.numbers.tolist() == [[1.0] * (NUMBERS - 1) + [0.0]] * 2
    kept = replace(older.claims, kinds=state.claims.kinds), replace(older.headers, numbers=state.headers.numbers)
    assert same(replace(older, claims=kept[0], headers=kept[1]), state)


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(StateError, match="version 5, this trimtab reads 1, 2, 3, 4"):
        state_blob.load(pack(5, {}, {}))


def test_a_blob_whose_lengths_do_not_add_up_is_refused() -> None:
    blob = state_blob.dump(state_of(["a", "b"]))
    for cut in (0, 3, 4, 11, 12, 40, len(blob) // 2, len(blob) - 1):
        with pytest.raises(StateError):
            state_blob.load(blob[:cut])
    with pytest.raises(StateError, match="columns end at byte"):
        state_blob.load(blob + b"x")
    huge = blob[:4] + (1 << 62).to_bytes(8, "little") + blob[12:]
    with pytest.raises(StateError, match="cut off"):
        state_blob.load(huge)


@pytest.mark.parametrize("count", [1 << 62, (1 << 64) - 1])
def test_a_number_of_names_is_checked_before_anything_is_allocated_by_it(count: int) -> None:
    stored = count.to_bytes(8, "little") + b"\0" * 16
    with pytest.raises(StateError, match="cut off"):
        names_from_bytes(np.frombuffer(stored, np.uint8))
