"""Numbers that stored states, and what is dropped of a flood, depend on."""

import json

import numpy as np
import pytest

from controller.aggregate.columns.blobs import unpack
from controller.aggregate.columns.rows import FACT
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import FoldOptions, ShardState
from controller.aggregate.state.facts import fact_from_text, fact_to_text
from controller.aggregate.waiting.limits import ArrivedBytes, WaitLimits
from controller.model.errors import StateError
from controller.wire.rows import rows_from_records
from tests.folds import NO_DETAIL, A, Shard, place, sweep, ticked
from tests.records import LEFT, RIGHT, T, broker_sweep, bundle_stats, load_report, namespace_state, topic_stats


def test_states_are_of_version_4_and_snapshots_of_version_5() -> None:
    snapshot = Shard().feed(sweep(A, 0, LEFT), ticked(0, A))[0].to_blob()
    state = state_blob.dump(ShardState(shard=0, shards=1))
    assert unpack(state, versions=(4,)).version == 4
    assert unpack(snapshot, versions=(5,)).version == 5
    assert state[:4] == snapshot[:4] == b"TRIM"
    length = int.from_bytes(state[4:12], "little")
    assert json.loads(state[12 : 12 + length])["version"] == 4
    with pytest.raises(StateError, match="stored state has version 4, this trimtab reads 5"):
        unpack(state, versions=(5,))


def test_rows_that_wait_take_as_many_bytes_as_the_limit_counts() -> None:
    limits = NO_DETAIL.__class__(topics=3, sessions=1e9, msg_rate=1e18, throughput=1e18)
    records = [
        broker_sweep(bundleStats=[bundle_stats(LEFT, topics=3), bundle_stats(RIGHT, topics=2)]),
        topic_stats(),
        {"v": 1, "type": "broker_load", "cluster": "demo", "report": load_report()},
        namespace_state(),
        ticked(0, A),
    ]
    rows = rows_from_records([place((0, 0), i, record) for i, record in enumerate(records)], limits)
    texts = {i: fact_to_text(fact) for i, fact in rows.facts.items() if rows.kind[i] == FACT}
    (fact,) = texts.values()
    # A sweep of a bundle with three topics kept and one without; a topic; a report of two bundles; a fact; a tick.
    sizes = [240 + 160 + 3 * 40 + 160, 160, 240 + 160 + 160, 100 + len(fact), 0]
    upto = ArrivedBytes().upto(rows, rows.offset, texts)
    assert sorted(set(upto.tolist())) == sorted({*np.cumsum(sizes).tolist()})


def test_a_fact_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(StateError, match="a fact of kind 'Odd', which this trimtab does not know"):
        fact_from_text('{"is":"Odd"}')


def test_without_settings_sweeps_of_ten_intervals_wait_and_any_number_of_bytes() -> None:
    assert WaitLimits() == WaitLimits(intervals=10, size=1 << 62)


def test_what_was_torn_is_forgotten_with_its_interval() -> None:
    shard = Shard(options=FoldOptions(bundle_ttl_ms=0, detail=NO_DETAIL, waiting=WaitLimits(size=2_000)))
    flood = [sweep("made-up:8080", 0, f"a/b/0x{i:08x}_0x{i + 1:08x}") for i in range(20)]
    shard.feed(sweep(A, 0, LEFT), *flood)
    assert shard.state.torn == {(T, 0, 0)}
    (snapshot,) = shard.feed(ticked(0, A))
    assert snapshot.torn == ((0, 0),)
    assert shard.state.torn == frozenset()
