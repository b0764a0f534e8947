"""How long PeakShedder waits, in numbers: after brokers came or went, over rounds, and after plans of no use."""

from typing import Final

import pytest

from controller.strategies.shedding.peak_shedder.memory import Absence, MovePromise, PeakHistory, Rest
from controller.strategies.shedding.peak_shedder.patience import (
    MOST_AWAY,
    after_plan,
    after_rest,
    held,
    is_resting,
    just_away,
    unproven_ms,
    unsettled_ms,
    with_roster,
    with_round,
)
from controller.strategies.view_builder import Broker, cluster_view

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
BUSY: Final = PeakHistory(
    brokers=("a", "b"),
    changed_ms=HOUR,
    apart_ms=5 * MINUTE,
    promises={"x": MovePromise(source="a", destination="b")},
    rest=Rest(left=3, rounds=3),
)


def seen(memory: PeakHistory, at_ms: int, *brokers: str, missing: tuple[str, ...] = ()) -> PeakHistory:
    return with_roster(memory, cluster_view(*map(Broker, brokers), missing=missing, as_of_ms=at_ms))


def test_the_first_roster_is_no_change_and_brokers_without_data_belong_to_it() -> None:
    found = seen(PeakHistory(rest=Rest(left=2)), HOUR, "b", missing=("a",))
    assert found == PeakHistory(brokers=("a", "b"), rest=Rest(left=2))
    assert seen(found, 2 * HOUR, "a", "b") is found


def test_with_other_brokers_promises_and_rests_end() -> None:
    at = HOUR + 10 * MINUTE
    found = seen(BUSY, at, "a", "c")
    assert found == PeakHistory(
        brokers=("a", "c"), changed_ms=at, apart_ms=10 * MINUTE, away={"b": Absence(gone_ms=at)}
    )


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
    assert with_round(memory, ("c", "b")).over == {"": 0b010, "b": 0b011, "c": 0b001}
    assert list(with_round(memory, ("c", "b")).over) == ["", "b", "c"]
    assert with_round(PeakHistory(over={"a": 0b100}), ()).over == {}


def test_a_broker_is_held_over_its_limit_in_so_many_of_the_last_rounds_and_in_one_at_least() -> None:
    memory = PeakHistory(over={"a": 0b101})
    assert [held(memory, "a", hold) for hold in (0, 1, 2, 3)] == [True, True, True, False]
    assert held(PeakHistory(over={"a": 0b111}), "a", 9)
    assert not held(memory, "b", 0)


def test_a_rest_lasts_its_rounds_unless_something_has_got_worse_or_more_bundles_may_move() -> None:
    memory = PeakHistory(rest=Rest(left=1, rounds=1, excess=0.3, over=2, movable=9))
    assert is_resting(memory, 0.32, 2, 9)
    assert not is_resting(memory, 0.33, 2, 9)
    assert not is_resting(memory, 0.3, 3, 9)
    assert not is_resting(memory, 0.3, 2, 10)
    assert not is_resting(PeakHistory(), 0.1, 0, 0)
    assert [after_rest(PeakHistory(rest=Rest(left=rounds))).rest.left for rounds in (3, 1, 0)] == [2, 0, 0]


def test_after_plans_of_no_use_come_rests_of_1_3_7_and_then_10_rounds() -> None:
    memory, rests = PeakHistory(), []
    for _ in range(5):
        memory = after_plan(memory, 0.5, 1, 2, moved=False)
        rests.append(memory.rest.left)
    assert rests == [1, 3, 7, 10, 10]
    assert memory.rest == Rest(left=10, rounds=10, excess=0.5, over=1, movable=2)
    assert after_plan(memory, 0.9, 1, 2, moved=True).rest == Rest()


def weight(memory: PeakHistory, at_ms: int) -> float:
    return float(just_away(memory, cluster_view(Broker("a"), Broker("b"), as_of_ms=at_ms))[1])


def test_a_broker_counts_as_just_away_the_less_the_longer_it_was_away_and_is_back() -> None:
    for away, hours, left in ((0, 0, 1.0), (60, 0, 0.75), (240, 0, 0.0), (0, 12, 0.5), (120, 12, 0.25), (0, 25, 0.0)):
        memory = seen(PeakHistory(brokers=("a", "b")), HOUR, "a")
        memory = seen(memory, HOUR + away * MINUTE, "a", "b")
        assert weight(memory, HOUR + away * MINUTE + hours * HOUR) == pytest.approx(left)


def test_of_brokers_that_are_away_no_more_are_remembered_than_a_cluster_can_have_the_last_ones() -> None:
    names = tuple(f"{number:05}" for number in range(MOST_AWAY + 5))
    memory = seen(PeakHistory(brokers=names[:5]), HOUR, *names[5:])
    memory = seen(memory, HOUR + MINUTE, "x")
    assert len(memory.away) == MOST_AWAY
    assert names[0] not in memory.away
    assert names[-1] in memory.away
    assert seen(memory, 6 * HOUR, "y").away == {"x": Absence(gone_ms=6 * HOUR)}


def test_a_broker_that_goes_again_is_away_from_then_on() -> None:
    memory = seen(PeakHistory(brokers=("a", "b")), HOUR, "a")
    memory = seen(memory, HOUR + MINUTE, "a", "b")
    assert memory.away == {"b": Absence(gone_ms=HOUR, back_ms=HOUR + MINUTE)}
    assert seen(memory, 2 * HOUR, "a").away == {"b": Absence(gone_ms=2 * HOUR)}


def test_a_jump_of_load_counts_for_the_minutes_of_the_option() -> None:
    assert unproven_ms(PeakHistory(), HOUR, 60.0) == 0
    jumped = PeakHistory(jumped_ms=HOUR)
    waits = [unproven_ms(jumped, HOUR + after * MINUTE, 2.0) for after in range(4)]
    assert waits == [2 * MINUTE, MINUTE, 0, 0]
    assert unproven_ms(jumped, HOUR, 0.0) == 0
