"""Where bundles are in a replay while the recording goes another way; and how recorded bundles are divided."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state.states import States
from controller.model.decision import Action, Command, Reason, Verdict
from controller.model.names import BundleName
from controller.model.records import BrokerState, NamespaceState
from controller.model.topic_kinds import BOTH, NON_PERSISTENT, PERSISTENT
from controller.offline.counterfactual.partition import Cuts, children, parts_of
from controller.offline.counterfactual.places import PlaceChange, Places
from controller.offline.counterfactual.recorded import RecordedCommands
from controller.offline.counterfactual.world import Lookups, serving

PERIOD = 60_000
A, B, C = "a:8080", "b:8080", "c:8080"
LEFT, RIGHT = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"
QUARTERS = ["t/n/0x00000000_0x40000000", "t/n/0x40000000_0x80000000"]
LATER = "t/n/0x80000000_0xffffffff"


def snapshot(number: int, owners: dict[str, str], roster: tuple[str, ...] = (A, B, C), **columns: Any) -> Snapshot:
    names, n = sorted(owners), len(owners)
    ints, floats = np.ones(n, np.int64), np.full((n, 4), 10.0)
    fields: dict[str, Any] = {
        "load": floats,
        "kinds": np.ones(n, np.uint8),
        "topics": ints,
        "producers": ints,
        "consumers": ints,
        "detail_size": np.zeros(n, np.int64),
        "detail_position": np.zeros(0, np.int64),
        "detail_load": np.zeros((0, 4)),
        "detail_segment": np.zeros(0, np.int64),
        **columns,
    }
    return Snapshot(
        interval=number * PERIOD,
        shard=0,
        shards=1,
        roster=roster,
        unswept=(),
        brokers=(),
        namespaces=States[NamespaceState].of(()),
        broker_states=States[BrokerState].of(()),
        results=(),
        late=0,
        unrostered=0,
        dropped=0,
        names=names,
        owner=np.array([roster.index(owners[name]) for name in names], np.int64),
        short_samples=ints,
        short_term=floats,
        long_samples=ints,
        long_term=floats,
        **fields,
    )


def command(bundle: str, source: str, destination: str = "", *, number: int = 1, action: Action = "unload") -> Command:
    return Command(
        id=f"{number}/{action}/{bundle}",
        action=action,
        cluster="x",
        bundle=bundle,
        interval=number * PERIOD,
        expires_at_ms=(number + 5) * PERIOD,
        mode="active",
        source=source,
        why=Verdict(subject=bundle, reason=Reason.OVERLOADED),
        destination=destination,
    )


def places(*commands: Command, known: bool = True) -> Places:
    made = Places(RecordedCommands(commands, PERIOD, known=known))
    made.advance(snapshot(1, {LEFT: A, RIGHT: B}))
    return made


def test_a_bundle_stays_where_a_command_moved_it_that_the_replay_did_not_issue() -> None:
    replay = places(command(LEFT, A, B))
    assert not replay.advance(snapshot(2, {LEFT: B, RIGHT: B})).moves
    assert replay.owner(LEFT) == A


def test_a_bundle_goes_where_a_command_moved_it_that_the_replay_issued_too() -> None:
    moves = command(LEFT, A, B)
    replay = places(moves)
    replay.followed.add(moves.id)
    assert replay.advance(snapshot(2, {LEFT: B, RIGHT: B})).moves == [PlaceChange(LEFT, A, B)]
    assert (replay.owner(LEFT), replay.elsewhere) == (B, {})


@pytest.mark.parametrize(("known", "owner"), [(True, B), (False, A)])
def test_a_move_by_somebody_else_is_followed_where_a_journal_shows_that_it_was(known: bool, owner: str) -> None:
    replay = places(known=known)
    replay.advance(snapshot(2, {LEFT: B, RIGHT: B}))
    assert replay.owner(LEFT) == owner


@pytest.mark.parametrize("known", [True, False])
def test_bundles_of_a_broker_that_left_go_where_they_went(known: bool) -> None:
    replay = places(known=known)
    assert not replay.advance(snapshot(2, {LEFT: C, RIGHT: B}, (B, C))).moves
    assert (replay.owner(LEFT), replay.elsewhere) == (C, {})


def test_bundles_of_a_broker_that_left_are_looked_up_where_the_replay_has_gone_another_way() -> None:
    replay = places()
    replay.put(RIGHT, C)
    replay.advance(snapshot(2, {LEFT: C, RIGHT: B}, (B, C)))
    assert replay.elsewhere[LEFT] == A  # gone: the world looks it up


def test_a_bundle_that_is_elsewhere_takes_no_part_in_recorded_moves_until_they_meet() -> None:
    replay = places(command(LEFT, A, B), command(LEFT, B, C, number=2))
    replay.put(LEFT, C)
    replay.advance(snapshot(2, {LEFT: B, RIGHT: B}))
    assert (replay.owner(LEFT), replay.elsewhere) == (C, {LEFT: C})
    replay.advance(snapshot(3, {LEFT: C, RIGHT: B}))
    assert (replay.owner(LEFT), replay.elsewhere) == (C, {})


def test_a_bundle_that_was_not_listed_for_a_while_is_where_it_was() -> None:
    replay = places()
    replay.advance(snapshot(2, {RIGHT: B}))
    assert replay.owner(LEFT) == A


# ---- splits ----


def split_recording(*commands: Command, follow: bool, known: bool = True) -> Places:
    replay = places(*commands, known=known)
    replay.followed |= {each.id for each in commands if follow}
    replay.advance(snapshot(2, {QUARTERS[0]: A, QUARTERS[1]: C, RIGHT: B}))
    return replay


def test_a_split_that_the_replay_issued_too_is_followed() -> None:
    replay = split_recording(command(LEFT, A, action="split"), follow=True)
    assert [replay.owner(name) for name in (LEFT, *QUARTERS)] == ["", A, C]


def test_a_bundle_stays_whole_that_the_replay_did_not_split_and_does_not_lose_its_later_neighbours() -> None:
    replay = split_recording(command(LEFT, A, action="split"), follow=False)
    assert [replay.owner(name) for name in (LEFT, *QUARTERS, RIGHT)] == [A, "", "", B]
    assert replay.cuts.of == {"t/n": [0, 1 << 31, 0xFFFFFFFF]}


def test_the_replay_may_split_later_what_the_recording_split_and_both_are_alike_then() -> None:
    replay = split_recording(command(LEFT, A, action="split"), follow=False)
    assert replay.split(LEFT, (1 << 30,)) == QUARTERS
    replay.advance(snapshot(3, {QUARTERS[0]: A, QUARTERS[1]: C, RIGHT: B}))
    assert not replay.cuts.of
    assert replay.elsewhere == {QUARTERS[1]: A}


def test_the_replay_may_split_what_the_recording_has_whole() -> None:
    replay = places()
    parts = replay.split(RIGHT, (0xC0000000,))
    assert [replay.owner(name) for name in (RIGHT, *parts, LEFT)] == ["", B, B, A]


# ---- parts of bundles ----


def test_cuts_know_the_bundle_around_a_position() -> None:
    cuts = Cuts()
    cuts.add("t/n", (0, 100, 50))
    assert cuts.has(BundleName("t/n", 50, 100))
    assert not cuts.has(BundleName("t/n", 0, 100))
    assert cuts.around("t/n", 60) == BundleName("t/n", 50, 100)
    assert [cuts.around("t/n", at) for at in (0, 50, 100, 500)] == [None] * 4
    assert cuts.around("t/other", 5) is None
    assert children(BundleName("t/n", 0, 100), (100, 7, 0)) == [
        "t/n/0x00000000_0x00000007",
        "t/n/0x00000007_0x00000064",
    ]


def test_a_part_gets_the_load_of_the_topics_in_it() -> None:
    columns: dict[str, Any] = {
        "detail_size": np.array([3, 0]),
        "detail_position": np.array([5, 1 << 30, (1 << 30) + 1]),
        "detail_load": np.array([[6.0, 0, 0, 0], [1, 0, 0, 0], [3, 0, 0, 0]]),
        "detail_segment": np.zeros(3, np.int64),
        "load": np.array([[20.0, 8, 0, 0], [7, 7, 7, 7]]),
        "topics": np.array([3, 1]),
    }
    shown = snapshot(1, {LEFT: A, RIGHT: B}, **columns)
    first, second = parts_of(
        shown, np.array([0, 1]), [BundleName("t/n", 0, 1 << 30), BundleName("t/n", 1 << 30, 1 << 31)]
    )
    # Of the first column 6 of 10; where no topic has load, half of the range.
    assert first.load.tolist() == [12, 4, 0, 0]
    assert second.load.tolist() == [8, 4, 0, 0]
    assert (first.position.tolist(), second.position.tolist()) == ([5], [1 << 30, (1 << 30) + 1])
    assert (first.counts[0], second.counts[0]) == (1, 2)


@given(
    st.lists(st.integers(1, 0xFFFFFFFE), max_size=6),
    st.lists(st.integers(1, 0xFFFFFFFE), max_size=6),
    st.lists(st.integers(0, 0xFFFFFFFE), max_size=12),
)
def test_the_parts_of_a_namespace_carry_all_of_it_however_it_is_cut(
    theirs: list[int], mine: list[int], topics: list[int]
) -> None:
    ends = sorted({0, 0xFFFFFFFF, *theirs})
    bundles = [BundleName("t/n", *each) for each in pairwise(ends)]
    row = np.searchsorted(ends, topics, side="right") - 1
    order = np.argsort(row, kind="stable")
    columns: dict[str, Any] = {
        "detail_size": np.bincount(row, minlength=len(bundles)).astype(np.int64),
        "detail_position": np.array(topics, np.int64)[order],
        "detail_load": np.ones((len(topics), 4)),
        "detail_segment": np.zeros(len(topics), np.int64),
        "load": np.arange(4.0 * len(bundles)).reshape(-1, 4),
    }
    shown = snapshot(1, {str(bundle): A for bundle in bundles}, **columns)
    wanted = [BundleName("t/n", *each) for each in pairwise(sorted({0, 0xFFFFFFFF, *mine}))]
    parts = parts_of(shown, np.arange(len(bundles)), wanted)
    assert np.allclose(sum(part.load for part in parts), shown.load.sum(axis=0))
    assert sum(len(part.position) for part in parts) == len(topics)
    assert all((part.load >= 0).all() for part in parts)


# ---- lookups ----


def test_a_lookup_gives_a_bundle_to_the_broker_with_the_fewest_of_its_namespace_then_with_the_fewest_messages() -> None:
    last = snapshot(1, {LEFT: A, RIGHT: B, "t/m/0x00000000_0xffffffff": C})
    evenly = Lookups(last, evenly=True)
    assert evenly.chosen(LEFT, (A, B, C)) == C
    evenly.came(LEFT, C, 20.0)
    assert evenly.chosen(RIGHT, (A, B, C)) == A
    by_rate = Lookups(last, evenly=False)
    by_rate.came(LEFT, A, 5.0)
    assert by_rate.chosen(RIGHT, (A, B)) == B
    assert Lookups(None, evenly=True).chosen(LEFT, (B, A)) == A


def test_a_bundle_is_looked_up_on_brokers_that_serve_its_kinds_of_topics_and_on_any_where_none_does() -> None:
    states = [BrokerState(broker=A, version=1, non_persistent_topics=False)]
    recorded = replace(snapshot(0, {LEFT: A}), broker_states=States[BrokerState].of(states))
    assert [list(serving(recorded, kinds, (A, B))) for kinds in (0, PERSISTENT, NON_PERSISTENT, BOTH)] == [
        [A, B],
        [A, B],
        [B],
        [B],
    ]
    assert list(serving(recorded, NON_PERSISTENT, (A,))) == [A]
