"""The load of the time of day, from the levels at the ends of its hours."""

import numpy as np

from controller.planning.foresight.day import HOUR_MS, HOURS, DayProfile, with_day


def profile(**levels: float) -> DayProfile:
    """One row; the hours that are not named are not known."""
    column = np.zeros((HOURS, 1))
    for hour, level in levels.items():
        column[int(hour[1:])] = level
    return DayProfile(levels=column)


def test_between_two_hours_the_level_goes_straight_also_where_it_is_small() -> None:
    # The level is 0.4 at 01:00, 0.8 at 02:00 and 0.2 at 03:00: the ends of the hours 0, 1 and 2.
    day = profile(h0=0.4, h1=0.8, h2=0.2)
    assert day.ratio(HOUR_MS, 1).tolist() == [0.8 / 0.4]
    half_past_one = HOUR_MS + HOUR_MS // 2
    assert np.allclose(day.ratio(half_past_one, 1), [0.5 / 0.6])


def test_where_an_hour_is_not_known_the_load_is_taken_to_stay() -> None:
    assert profile(h0=0.4, h1=0.8).ratio(HOUR_MS, 2).tolist() == [1.0]
    assert profile(h0=0.4).ratio(HOUR_MS // 2, 1).tolist() == [1.0]


def test_a_load_becomes_at_most_ten_times_as_large_or_as_small() -> None:
    for times, taken_for in ((9.0, 9.0), (10.0, 10.0), (11.0, 10.0)):
        day = profile(h0=1.0, h1=times, h2=1.0, h3=1.0)
        assert day.ratio(HOUR_MS, 1).tolist() == [taken_for]
        assert day.ratio(2 * HOUR_MS, 1).tolist() == [1 / taken_for]


def test_where_an_hour_before_or_after_is_not_known_the_load_is_taken_to_stay_in_between() -> None:
    half_past_one = HOUR_MS + HOUR_MS // 2
    assert profile(h1=0.8, h2=0.8).ratio(half_past_one, 1).tolist() == [1.0]
    assert profile(h0=0.8, h1=0.8).ratio(half_past_one, 1).tolist() == [1.0]
    assert profile(h1=0.8, h2=0.8).ratio(HOUR_MS, 1).tolist() == [1.0]


def test_a_day_is_known_where_any_load_is_known_at_all_hours_however_small() -> None:
    known = np.full((HOURS, 1), 0.5)
    assert DayProfile(levels=known).is_known
    gap = known.copy()
    gap[7] = 0.0
    assert not DayProfile(levels=gap).is_known
    assert DayProfile(levels=np.hstack([gap, known])).is_known


def test_of_an_hour_half_is_new_where_there_was_one_and_no_load_is_next_to_nothing() -> None:
    assert with_day(np.array([0.0, 10.0, 0.5, 0.0]), np.array([8.0, 20.0, 1.5, 0.0])).tolist() == [8, 15, 1, 1e-6]
