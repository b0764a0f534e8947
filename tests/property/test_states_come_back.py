"""Every state can be read back from its blob, whatever characters its names have."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.aggregate.columns.blobs import names_from_bytes, names_to_bytes, pack
from controller.aggregate.columns.rows import NUMBERS
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import ShardState
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state.bundles import KnownBundles, Seeds
from controller.aggregate.state.facts import fact_to_text
from controller.aggregate.state.states import States
from controller.aggregate.waiting.limits import ArrivedBytes
from controller.aggregate.waiting.waiting_rows import WaitingClaims, WaitingFacts, WaitingHeaders
from controller.model.errors import StateError
from controller.model.records import BrokerState, BundleSeed, CommandResult, NamespaceState

#: Line breaks of every kind, other control characters, halves of surrogate pairs, nothing at all.
NAMES = st.text(
    st.sampled_from("a\n\r\0\x0b\x1e\x85\u2028\u2029\ud83d\ude00ü😀") | st.characters(exclude_categories=()), max_size=6
)


def same(one: Any, other: Any) -> bool:
    """Whether the two are the same down to the last bit."""
    if isinstance(one, np.ndarray):
        data = [each.tolist() if each.dtype == np.object_ else each.tobytes() for each in (one, other)]
        return bool(one.dtype == other.dtype and one.shape == other.shape and data[0] == data[1])
    if is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def state_of(names: list[str]) -> ShardState:
    """A state with each of *names* wherever one can be."""
    n = len(names)
    whole = np.arange(n, dtype=np.int64)
    shape = {"stats": (n, 7), "topic": (n, 3), "detail_load": (n, 4)}
    columns: dict[str, Any] = {
        f.name: np.ones(shape.get(f.name, (n,)), np.float64 if f.name in ("stats", "detail_load") else np.int64)
        for f in fields(WaitingClaims)
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
        claims=WaitingClaims(**columns | {"broker": whole, "sweep": whole, "bundle": whole}),
        headers=WaitingHeaders(**counts, numbers=np.ones((n, NUMBERS))),
        facts=WaitingFacts(
            due=whole, source=whole, partition=whole, offset=whole, upto=whole,
            texts=np.array(
                [fact_to_text(CommandResult(id=name, status="done", detail=name)) for name in names], np.object_
            ),
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
        "detail_segment",
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


@pytest.mark.parametrize("version", [1, 4, 6])
def test_a_state_of_another_version_is_refused(version: int) -> None:
    with pytest.raises(
        StateError, match=rf"version {version}, but this version of trimtab reads 5: .* or with a new checkpoint"
    ):
        state_blob.load(pack(version, {}, {}))


def test_a_blob_whose_lengths_do_not_add_up_is_refused() -> None:
    blob = state_blob.dump(state_of(["a", "b"]))
    for cut in (0, 3, 4, 11, 12, 40, len(blob) // 2, len(blob) - 1):
        with pytest.raises(StateError):
            state_blob.load(blob[:cut])
    with pytest.raises(StateError, match="columns end at byte"):
        state_blob.load(blob + b"x")
    huge = blob[:4] + (1 << 62).to_bytes(8, "little") + blob[12:]
    with pytest.raises(StateError, match="truncated"):
        state_blob.load(huge)


@pytest.mark.parametrize("count", [1 << 62, (1 << 64) - 1])
def test_a_number_of_names_is_checked_before_anything_is_allocated_by_it(count: int) -> None:
    stored = count.to_bytes(8, "little") + b"\0" * 16
    with pytest.raises(StateError, match="truncated"):
        names_from_bytes(np.frombuffer(stored, np.uint8))
