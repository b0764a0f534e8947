"""The level of a load: bursts do not move it, real changes do, and trends are seen."""

import numpy as np
import pytest

from controller.planning.foresight.followed import NEVER, Followed


def begun(level: float = 100.0, rows: int = 1) -> Followed:
    none = np.zeros(rows)
    unseen = Followed(level=none, trend=none, error=none, streak=np.full(rows, NEVER), far=none)
    first = np.full(rows, level)
    return unseen.after(first, first, 1.0)


def after(followed: Followed, *seen: float) -> Followed:
    for each in seen:
        load = np.full(len(followed.level), each)
        followed = followed.after(load, load, 1.0)
    return followed


def test_the_first_level_is_that_of_the_running_average() -> None:
    none = np.zeros(1)
    unseen = Followed(level=none, trend=none, error=none, streak=np.full(1, NEVER), far=none)
    assert unseen.after(np.array([500.0]), np.array([100.0]), 1.0).level[0] < 250


def test_a_constant_load_has_its_level_no_trend_and_less_and_less_error() -> None:
    found = after(begun(), *[100.0] * 50)
    assert found.level[0] == pytest.approx(100.0)
    assert found.ahead(60.0)[0] == pytest.approx(100.0)
    assert found.error[0] < 0.1


@pytest.mark.parametrize("burst", [0.0, 300.0, 1e9])
def test_a_burst_of_one_minute_changes_no_level_and_no_forecast(burst: float) -> None:
    steady = after(begun(), *[100.0] * 20)
    found = after(steady, burst)
    assert found.level[0] == steady.level[0]
    assert after(found, 100.0).level[0] == pytest.approx(100.0)
    assert after(found, 100.0).ahead(60.0)[0] == pytest.approx(100.0)


def test_bursts_on_either_side_in_turn_are_no_change() -> None:
    assert after(begun(), *[100.0] * 20, 300.0, 10.0, 300.0, 10.0).level[0] == pytest.approx(100.0, rel=0.01)


@pytest.mark.parametrize("new", [300.0, 10.0, 0.0])
def test_a_load_that_stays_elsewhere_is_the_level_after_two_minutes(new: float) -> None:
    assert after(begun(), *[100.0] * 20, new, new).level[0] == new


@pytest.mark.parametrize("burst", [9.0, 211.0])
def test_a_burst_right_after_a_change_is_not_taken_for_the_change(burst: float) -> None:
    """A real Pulsar 5.0.1, whose clients sent at once what they could not send while their segment moved."""
    before = 50.0 if burst < 23.0 else 12.0
    changed = after(begun(before), *[before] * 5, 23.0, burst)
    assert changed.level[0] == pytest.approx(23.0, rel=0.01)
    assert after(changed, 24.0, 23.0).level[0] == pytest.approx(23.0, rel=0.05)


@pytest.mark.parametrize("half", [65.0, 200.0])
def test_a_load_that_changes_within_a_round_is_the_level_after_two_whole_ones(half: float) -> None:
    new = 2 * half - 100.0
    steady = after(begun(), *[100.0] * 20)
    assert after(steady, half, new).level[0] == pytest.approx(half)
    assert after(steady, half, new, new).level[0] == pytest.approx(new)


def test_a_load_that_grows_is_foreseen_to_grow_but_not_for_ever() -> None:
    found = after(begun(), *[100.0 + 2 * minute for minute in range(60)])
    assert found.level[0] < found.ahead(10.0)[0] <= found.level[0] + 20
    assert found.ahead(60.0)[0] <= found.level[0] + 20


def test_noise_is_no_trend_and_its_size_is_the_error() -> None:
    chance = np.random.default_rng(3)
    found = begun(rows=200)
    for _ in range(100):
        load = chance.normal(100.0, 10.0, 200)
        found = found.after(load, load, 1.0)
    assert 5 < found.error.mean() < 12
    assert np.abs(found.ahead(60.0) - found.level).mean() < 2


@pytest.mark.parametrize("odd", [0.0, 1e-300, 1e15])
def test_odd_loads_give_numbers(odd: float) -> None:
    found = after(begun(odd), 1e15, 0.0, odd, 1e15, 1e15, 0.0)
    assert all(np.isfinite(each).all() for each in (found.level, found.trend, found.error, found.ahead(60.0)))
    assert (found.level >= 0).all()


def followed(level: float, trend: float, error: float, streak: int = 0, far: float = np.inf) -> Followed:
    one = (np.array([each], np.float64) for each in (level, trend, error, far))
    return Followed(**dict(zip(("level", "trend", "error", "far"), one, strict=True)), streak=np.array([streak]))


def numbers(of: Followed, seen: float, minutes: float = 2.0, at_first: float = 0.0) -> tuple[float, float, float, int]:
    found = of.after(np.array([seen]), np.array([at_first]), minutes)
    level, trend, error = (round(float(each[0]), 6) for each in (found.level, found.trend, found.error))
    return level, trend, error, int(found.streak[0])


def test_a_load_that_was_never_seen_begins_at_its_average_without_a_trend() -> None:
    assert numbers(followed(7, 0, 7, streak=NEVER), 110, at_first=100) == (103, 0, 10, 0)
    assert numbers(followed(7, 0, 7, streak=NEVER), 900, at_first=100) == (340, 0, 17, 0)


def test_load_that_jumps_counts_with_what_it_gains_or_loses() -> None:
    for streak, seen, jumped in ((0, 204, 0), (1, 204, 104), (-1, 4, 96), (-1, 204, 0), (1, 114, 0), (NEVER, 900, 0)):
        assert followed(100, 2, 4, streak=streak).jumped(np.array([float(seen)]), 2.0) == jumped
