"""How long PeakShedder waits, in numbers: after brokers came or went, over rounds, and after plans of no use."""

from dataclasses import replace
from typing import Final

import pytest

from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory, PendingUndo
from controller.strategies.shedding.peak_shedder.patience import (
    MOST_GONE,
    after_plan,
    after_rest,
    came_or_went,
    held,
    helpers,
    is_resting,
    relieved,
    returned,
    unproven_ms,
    unsettled_ms,
    with_help,
    with_relief,
    with_roster,
    with_round,
    with_splits,
)
from controller.strategies.view_builder import Broker, Bundle, cluster_view

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
BUSY: Final = PeakHistory(
    brokers=("a", "b"),
    changed_ms=HOUR,
    apart_ms=5 * MINUTE,
    promises={"x": MovePromise(source="a", destination="b")},
    undo={"x": PendingUndo(source="a", destination="b", noted_ms=0)},
    rest=3,
    rested=3,
    plan=(("x", "b"),),
)


def seen(memory: PeakHistory, at_ms: int, *brokers: str, missing: tuple[str, ...] = ()) -> PeakHistory:
    return with_roster(memory, cluster_view(*map(Broker, brokers), missing=missing, as_of_ms=at_ms))


def test_the_first_roster_is_no_change_and_brokers_without_data_belong_to_it() -> None:
    found = seen(PeakHistory(rest=2), HOUR, "b", missing=("a",))
    assert found == PeakHistory(brokers=("a", "b"), rest=2)
    assert seen(found, 2 * HOUR, "a", "b") is found


def test_with_other_brokers_promises_undoings_rests_and_plans_end() -> None:
    at = HOUR + 10 * MINUTE
    found = seen(BUSY, at, "a", "c")
    assert found == PeakHistory(brokers=("a", "c"), changed_ms=at, apart_ms=10 * MINUTE, gone={"b": at})


@pytest.mark.parametrize(
    ("after_ms", "apart_ms"),
    [(0, 5 * MINUTE), (3 * MINUTE, 5 * MINUTE), (HOUR, HOUR), (HOUR + 1, 0), (-1, 0)],
)
def test_changes_within_an_hour_of_each_other_are_as_far_apart_as_the_longest_time_between_two(
    after_ms: int, apart_ms: int
) -> None:
    assert seen(BUSY, HOUR + after_ms, "a").apart_ms == apart_ms


def test_a_first_change_is_apart_from_none() -> None:
    found = seen(PeakHistory(brokers=("a", "b"), apart_ms=7), MINUTE, "a")
    assert (found.changed_ms, found.apart_ms) == (MINUTE, 0)


@pytest.mark.parametrize(
    ("changed_ms", "apart", "settle", "at", "wait"),
    [
        (-1, 0, 5.0, 0, 0),
        (0, 0, 5.0, 0, 5.0),
        (0, 0, 0.5, 0, 0.5),
        (0, 10, 0.0, 0, 0),
        (0, 0, 5.0, 2, 3.0),
        (0, 0, 5.0, 6, 0),
        (0, 10, 5.0, 0, 20.0),
        (0, 2, 5.0, 0, 5.0),
        (0, 40, 5.0, 0, 60.0),
        (0, 40, 90.0, 0, 90.0),
    ],
)
def test_after_a_change_it_waits_for_the_time_given_or_twice_the_time_between_two_changes_up_to_an_hour(
    changed_ms: int, apart: int, settle: float, at: int, wait: float
) -> None:
    memory = PeakHistory(changed_ms=changed_ms, apart_ms=apart * MINUTE)
    assert unsettled_ms(memory, at * MINUTE, settle) == wait * MINUTE


def test_of_each_broker_the_last_rounds_are_kept_a_bit_each() -> None:
    memory = PeakHistory(over={"b": 0b101, "a": 0b100, "": 0b001})
    assert with_round(memory, ("c", "b"), 3).over == {"": 0b010, "b": 0b011, "c": 0b001}
    assert list(with_round(memory, ("c", "b"), 3).over) == ["", "b", "c"]
    assert with_round(memory, (), 0).over == {}
    assert with_round(memory, ("a",), 0).over == {"a": 1}


def test_a_broker_is_held_over_its_limit_in_so_many_of_the_last_rounds_and_in_one_at_least() -> None:
    memory = PeakHistory(over={"a": 0b101})
    assert [held(memory, "a", hold, 3) for hold in (0, 1, 2, 3)] == [True, True, True, False]
    assert held(memory, "a", 9, 2)
    assert held(PeakHistory(over={"a": 1}), "a", 1, 3)
    assert not held(memory, "b", 0, 3)
    assert not held(memory, "b", 1, 0)


def test_a_rest_lasts_its_rounds_unless_the_highest_usage_rises_by_two_points() -> None:
    memory = PeakHistory(rest=1, rested_at=0.5)
    assert [is_resting(memory, peak) for peak in (0.1, 0.52, 0.53)] == [True, True, False]
    assert not is_resting(PeakHistory(rest=0, rested_at=0.5), 0.1)
    assert [after_rest(PeakHistory(rest=rest)).rest for rest in (3, 1, 0)] == [2, 0, 0]


def test_after_plans_of_no_use_come_rests_of_1_3_7_and_then_10_rounds() -> None:
    memory, rests = PeakHistory(), []
    for peak in (0.5, 0.6, 0.7, 0.8, 0.9):
        memory = after_plan(memory, peak, moved=False)
        rests.append((memory.rest, memory.rested, memory.rested_at))
    assert rests == [(1, 1, 0.5), (3, 3, 0.6), (7, 7, 0.7), (10, 10, 0.8), (10, 10, 0.9)]
    memory = after_plan(memory, 0.9, moved=True)
    assert (memory.rest, memory.rested, memory.rested_at) == (0, 0, 0.0)


def test_a_jump_of_load_counts_for_the_minutes_of_the_option() -> None:
    assert unproven_ms(PeakHistory(), HOUR, 60.0) == 0
    jumped = PeakHistory(jumped_ms=HOUR)
    waits = [unproven_ms(jumped, HOUR + after * MINUTE, 2.0) for after in range(4)]
    assert waits == [2 * MINUTE, MINUTE, 0, 0]
    assert unproven_ms(jumped, HOUR, 0.0) == 0


def test_a_split_counts_in_its_round_and_in_the_next_one() -> None:
    view = cluster_view(Broker("a", bundles={"b0": Bundle()}))
    memory, counts = PeakHistory(), []
    for splitting in ({"b0"}, (), (), {"b0"}, {"b0"}, ()):
        memory = with_splits(memory, replace(view, splitting=frozenset(splitting)))
        counts.append(memory.splits > 0)
    assert counts == [True, True, False, True, True, True]


def test_helpers_are_remembered_for_a_day_while_they_are_there() -> None:
    memory = with_help(PeakHistory(brokers=("a", "b", "c"), helped={"c": 0}), HOUR, ("b", "a"))
    assert list(memory.helped.items()) == [("a", HOUR), ("b", HOUR), ("c", 0)]
    assert sorted(helpers(memory, 24 * HOUR - 1)) == ["a", "b", "c"]
    assert sorted(helpers(memory, 24 * HOUR)) == ["a", "b"]
    assert with_help(memory, 24 * HOUR, ()).helped == {"a": HOUR, "b": HOUR}
    assert helpers(memory, HOUR - 1) == ["c"]
    assert seen(memory, 2 * HOUR, "b", "c").helped == {"b": HOUR, "c": 0}


def test_brokers_that_were_relieved_are_remembered_for_a_day_or_until_brokers_come_or_go() -> None:
    memory = with_relief(PeakHistory(brokers=("a", "b", "c"), relieved={"c": 0}), HOUR, ("b", "a"))
    assert list(memory.relieved.items()) == [("a", HOUR), ("b", HOUR), ("c", 0)]
    assert sorted(relieved(memory, 24 * HOUR - 1)) == ["a", "b", "c"]
    assert sorted(relieved(memory, 24 * HOUR)) == ["a", "b"]
    assert with_relief(memory, 24 * HOUR, ("b",)).relieved == {"a": HOUR, "b": 24 * HOUR}
    assert relieved(memory, HOUR - 1) == ["c"]
    assert memory.helped == {}
    assert seen(memory, 2 * HOUR, "a", "b", "c").relieved == memory.relieved
    assert seen(memory, 2 * HOUR, "a", "b", "c", "d").relieved == {}


@pytest.mark.parametrize(("away_ms", "back"), [(MINUTE, ["b"]), (HOUR, ["b"]), (HOUR + 1, [])])
def test_a_broker_that_was_away_for_an_hour_at_most_has_come_back_and_any_other_one_is_new(
    away_ms: int, back: list[str]
) -> None:
    went = seen(PeakHistory(brokers=("a", "b")), HOUR, "a")
    assert (went.gone, went.returned) == ({"b": HOUR}, {})
    at = HOUR + away_ms
    found = seen(went, at, "a", "b", "c")
    assert (found.gone, found.returned) == ({}, dict.fromkeys(back, at))
    assert [*returned(found, at)] == back


def test_that_a_broker_came_back_is_remembered_for_a_day_while_it_is_there() -> None:
    memory = PeakHistory(brokers=("a", "b", "c"), returned={"b": HOUR, "c": 0})
    assert [*returned(memory, 24 * HOUR - 1)] == ["b", "c"]
    assert [*returned(memory, 24 * HOUR)] == ["b"]
    assert seen(memory, 2 * HOUR, "a", "b", "c", "d").returned == {"b": HOUR, "c": 0}
    assert seen(memory, 24 * HOUR, "a", "b", "c", "d").returned == {"b": HOUR}
    # Of one that goes again it counts when it comes back the next time.
    again = seen(memory, 2 * HOUR, "a", "c")
    assert (again.gone, again.returned) == ({"b": 2 * HOUR}, {"c": 0})
    assert seen(again, 2 * HOUR + MINUTE, "a", "b", "c").returned == {"b": 2 * HOUR + MINUTE, "c": 0}


def test_who_is_gone_is_remembered_for_an_hour_by_name() -> None:
    memory = seen(PeakHistory(brokers=("a", "b", "c", "d")), HOUR, "d")
    assert [*memory.gone.items()] == [("a", HOUR), ("b", HOUR), ("c", HOUR)]
    later = seen(memory, 2 * HOUR, "c", "d", "e")
    assert (later.gone, later.returned) == ({"a": HOUR, "b": HOUR}, {"c": 2 * HOUR})
    assert seen(later, 2 * HOUR + 1, "c", "d").gone == {"e": 2 * HOUR + 1}
    # A clock that was set back forgets rather than believes.
    assert seen(later, HOUR - 1, "a", "c", "d", "e").returned == {}


def test_of_brokers_that_are_gone_no_more_are_remembered_than_a_cluster_can_have_the_last_ones() -> None:
    # As where names are made up, or new ones come with each start: without a bound an hour's were kept.
    first, second = ({f"{letter}-{number:05}" for number in range(MOST_GONE - 1)} for letter in "xa")
    memory = seen(PeakHistory(brokers=(*sorted(first), "z")), HOUR, "z", missing=(*second,))
    assert [*memory.gone] == sorted(first)
    memory = seen(memory, HOUR + MINUTE, "z")
    assert [*memory.gone] == [*sorted(second), "x-00000"]
    assert [*memory.gone] == sorted(memory.gone)
    assert seen(memory, HOUR + 2 * MINUTE, "z", "a-00007", "x-00000").returned == dict.fromkeys(
        ("a-00007", "x-00000"), HOUR + 2 * MINUTE
    )


def test_brokers_came_or_went_within_an_hour() -> None:
    assert [came_or_went(BUSY, HOUR + after) for after in (0, HOUR, HOUR + 1)] == [True, True, False]
    assert not came_or_went(PeakHistory(), 0)
