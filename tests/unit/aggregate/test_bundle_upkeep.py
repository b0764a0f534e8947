"""A bundle's averages and its preallocated rate while brokers list it, stop listing it, or list it again."""

from collections.abc import Mapping, Sequence

from controller.aggregate.shard.fold import ShardState
from controller.aggregate.snapshot import Snapshot
from tests.records import LEFT, PERIOD, RIGHT
from tests.rounds import close_round


def rounds(*intervals: Mapping[str, Sequence[str]]) -> tuple[ShardState, Snapshot]:
    """Close one interval for each mapping of broker -> bundles it lists; in interval i every rate is i."""
    state = ShardState(shard=0, shards=1)
    for number, listed in enumerate(intervals, 1):
        stats = (number, number, number, number, 0, 0, 0)
        of_brokers = {broker: dict.fromkeys(bundles, stats) for broker, bundles in listed.items()}
        state, snapshot = close_round(state, number, of_brokers, bundle_ttl_ms=2 * PERIOD)
    return state, snapshot


def test_both_averages_move_once_an_interval_also_when_the_bundle_moves() -> None:
    state, snapshot = rounds({"a:1": [LEFT]}, {"a:1": [], "b:1": [LEFT]}, {"a:1": [LEFT]})
    assert snapshot.short_term.tolist() == snapshot.long_term.tolist() == [[2, 2, 2, 2]]
    assert (state.bundles.short_samples.tolist(), state.bundles.long_samples.tolist()) == ([3], [3])


def test_an_unlisted_bundle_keeps_its_averages_for_its_time_to_live_but_is_not_in_the_view() -> None:
    state, snapshot = rounds({"a:1": [LEFT, RIGHT]}, {"a:1": [LEFT]}, {"a:1": [LEFT]})
    assert (snapshot.names, state.bundles.names) == ([LEFT], [LEFT, RIGHT])
    _, snapshot = rounds({"a:1": [LEFT, RIGHT]}, {"a:1": [LEFT]}, {"a:1": [LEFT, RIGHT]})
    assert snapshot.long_term[1].tolist() == [2, 2, 2, 2]  # (1 + 3) / 2
