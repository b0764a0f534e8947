"""States and stored averages are forgotten if they are not written again; batches without them do not parse them."""

from dataclasses import replace
from typing import Any

import pytest

from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import fold
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state import bundles, states
from controller.aggregate.state.bundles import Seeds
from controller.aggregate.state.states import States
from controller.model.records import BundleSeed, NamespaceState
from controller.wire.rows import rows_from_records
from tests.folds import NO_DETAIL, OPTIONS, A, Shard, sweep, ticked
from tests.records import LEFT, RIGHT, broker_state, bundle_data, namespace_state

TTL = 5
FORGETS = replace(OPTIONS, state_ttl=TTL)


def closing(shard: Shard, n: int, *records: dict[str, Any]) -> Snapshot:
    (snapshot,) = shard.feed(*records, sweep(A, n, LEFT), ticked(n, A))
    return snapshot


def namespaces(snapshot: Snapshot) -> list[str]:
    return [state.namespace for state in snapshot.namespaces]


@pytest.mark.slow
def test_a_namespace_is_forgotten_some_intervals_after_its_last_record() -> None:
    shard = Shard(options=FORGETS)
    kept, gone = namespace_state(namespace="a/kept"), namespace_state(namespace="a/gone")
    assert namespaces(closing(shard, 0, kept, gone)) == ["a/gone", "a/kept"]
    known = [namespaces(closing(shard, n, *[kept] * (n % 3 == 0))) for n in range(1, 12)]
    assert known[:TTL] == [["a/gone", "a/kept"]] * TTL
    assert known[TTL:] == [["a/kept"]] * (11 - TTL)


def test_a_lower_version_does_not_count_and_does_not_extend_the_time_to_live() -> None:
    shard = Shard(options=FORGETS)
    closing(shard, 0, namespace_state(namespace="a/b", version=9, antiAffinityGroup="old"))
    seen = []
    for n in range(1, 9):
        again = namespace_state(namespace="a/b", version=1, antiAffinityGroup="new")
        seen.append([state.anti_affinity_group for state in closing(shard, n, again).namespaces])
    assert (seen[0], seen[-1]) == (["old"], ["new"])


def test_brokers_are_forgotten_like_namespaces() -> None:
    shard = Shard(options=FORGETS)
    assert len(closing(shard, 0, broker_state()).broker_states) == 1
    assert [len(closing(shard, n).broker_states) for n in range(1, 8)] == [1] * TTL + [0] * (7 - TTL)


def test_intervals_without_ticks_do_not_age_states() -> None:
    """After days without a collector the namespaces are still known."""
    shard = Shard(options=FORGETS)
    closing(shard, 0, namespace_state(namespace="a/b"))
    assert namespaces(closing(shard, 5_000)) == ["a/b"]


@pytest.mark.slow
def test_without_a_time_to_live_nothing_is_forgotten() -> None:
    shard = Shard(options=replace(OPTIONS, state_ttl=None))
    closing(shard, 0, namespace_state(namespace="a/b"))
    assert [namespaces(closing(shard, n)) for n in range(1, 30)][-1] == ["a/b"]


def test_stored_averages_are_dropped_when_the_bundle_is_seen_or_after_their_time_to_live() -> None:
    shard = Shard(options=FORGETS)
    closing(shard, 0, bundle_data(bundle=LEFT), bundle_data(bundle=RIGHT))
    assert shard.state.seeds.names == [RIGHT]
    sizes = []
    for n in range(1, 8):
        closing(shard, n)
        sizes.append(len(shard.state.seeds))
    assert sizes == [1] * (TTL - 1) + [0] * (8 - TTL)


def test_a_batch_without_states_does_not_parse_the_stored_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard(options=FORGETS)
    closing(shard, 0, *(namespace_state(namespace=f"a/{i}") for i in range(3)))
    shard.feed(namespace_state(namespace="a/waits"))

    def parse(text: str) -> list[Any]:
        raise AssertionError("nobody asked for them")

    for name in "bcdefgh":
        # What was parsed last is remembered: no more of the states above is, behind these.
        list(States.of([NamespaceState(namespace=f"{name}/ns", version=1, boundaries=(0, 1))]))
    monkeypatch.setattr(states, "states_from_text", parse)
    stored = state_blob.dump(shard.state)
    state, _ = fold(state_blob.load(stored), rows_from_records([], NO_DETAIL), FORGETS)
    assert state_blob.dump(state) == stored
    shard.state = replace(state, facts=state.facts.take(state.facts.due > 0))
    Snapshot.from_blob(closing(shard, 1).to_blob())


def test_namespaces_are_bounded_and_the_last_written_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "LARGEST", 4_000)
    shard = Shard()
    for n in range(20):
        snapshot = closing(shard, n, *(namespace_state(namespace=f"a/{n:03d}-{i}") for i in range(5)))
    known = namespaces(snapshot)
    assert 10 <= len(known) < 40
    assert known[-10:] == [f"a/{n:03d}-{i}" for n in (18, 19) for i in range(5)]
    assert known[0] > "a/010"


def test_how_many_namespaces_were_dropped_is_counted_and_outlives_the_state_s_storage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(states, "LARGEST", 4_000)
    shard, named = Shard(), list[str]()
    for n in range(20):
        written = [namespace_state(namespace=f"a/{n:03d}-{i}") for i in range(5)]
        snapshot = closing(shard, n, *written)
        named += [each["namespace"] for each in written]
        shard.state = state_blob.load(state_blob.dump(shard.state))
        assert len(namespaces(snapshot)) + Snapshot.from_blob(snapshot.to_blob()).dropped_states == len(named)
    assert snapshot.dropped_states > 50
    dropped = snapshot.dropped_states
    for n in range(20, 30):
        snapshot = closing(shard, n, *(broker_state(broker=f"b-{n}-{i}:8080") for i in range(5)))
    assert len(snapshot.broker_states) + snapshot.dropped_states == dropped + 50, "and of brokers likewise"
    assert snapshot.dropped_states > dropped + 10


def test_stored_averages_count_as_no_more_samples_than_averages_here() -> None:
    load = (1.0, 2.0, 3.0, 4.0)
    found = Seeds.of(
        BundleSeed(bundle=name, short_term_samples=n, short_term=load, long_term_samples=n, long_term=load)
        for name, n in (("a", 3), ("b", 5000))
    )
    assert (found.short_samples.tolist(), found.long_samples.tolist()) == ([3, 10], [3, 1000])


def test_stored_averages_are_bounded_and_the_last_written_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MAX_SEEDS", 2)
    shard = Shard()
    names = [f"a/b/0x{i:08x}_0x{i + 1:08x}" for i in range(5)]
    for n, name in enumerate(names):
        closing(shard, n, bundle_data(bundle=name))
    assert shard.state.seeds.names == names[-2:]
