"""The history of bundles: packed into the memory and back, as bundles come, go and are out of sight."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from controller.model.peak_history import PeakHistory
from controller.planning.foresight.bundle_history import BundleHistory
from controller.planning.foresight.foresee import followed, foreseen
from controller.strategies.view_builder import Broker, Bundle, cluster_view

NAMES = ("a", "b", "c")
MINUTE, HOUR = 60_000, 3_600_000


def load(of: Sequence[float]) -> np.ndarray:
    return np.array(of, np.float64)


def after(memory: PeakHistory, names: Sequence[str], seen: Sequence[float], at_ms: int) -> PeakHistory:
    return BundleHistory.read(memory, names).after(load(seen), load(seen), at_ms).written(memory)


def levels(memory: PeakHistory, names: Sequence[str]) -> list[float]:
    return [round(each) for each in BundleHistory.read(memory, names).of_view().level.tolist()]


def steady(names: Sequence[str] = NAMES, seen: Sequence[float] = (10.0, 20.0, 30.0), rounds: int = 5) -> PeakHistory:
    memory = PeakHistory()
    for number in range(rounds):
        memory = after(memory, names, seen, number * MINUTE)
    return memory


def test_what_grows_is_foreseen_as_more_than_it_is_now() -> None:
    history = BundleHistory.read(PeakHistory(), ("grows", "stays"))
    for minute in range(60):
        mbytes = {"grows": 10 + 0.2 * minute, "stays": 10.0}
        bundles = {name: Bundle(mbytes_in=each) for name, each in mbytes.items()}
        view = cluster_view(Broker("a:8080", bundles=bundles), as_of_ms=minute * MINUTE)
        history = followed(view, history)
    [[later]] = foreseen(view, history, minutes=30, by_day=False).later
    grows, stays = later.ratio.tolist()
    assert 1.02 < grows < 1.3
    assert stays == pytest.approx(1.0)


def test_levels_come_back_from_the_memory() -> None:
    assert levels(steady(), NAMES) == [10, 20, 30]


def test_a_load_that_does_not_change_leaves_the_text_as_it_is() -> None:
    one, other = steady(rounds=310), steady(rounds=311)
    assert (one.level, one.streak, one.keys, one.hours) == (other.level, other.streak, other.keys, other.hours)


def test_a_bundle_is_found_by_its_name_when_others_come_and_go() -> None:
    memory = after(steady(), ("aa", "b", "c", "d"), (1.0, 20.0, 30.0, 4.0), 6 * MINUTE)
    assert levels(memory, ("aa", "b", "c", "d")) == [1, 20, 30, 4]


def test_a_bundle_that_was_out_of_sight_still_has_its_history() -> None:
    memory = after(steady(), ("a", "c"), (10.0, 30.0), 6 * MINUTE)
    assert levels(memory, NAMES) == [10, 20, 30]


def test_bundles_out_of_sight_are_forgotten_where_they_are_many() -> None:
    many = tuple(f"{number:05}" for number in range(3000))
    memory = steady(many, [1.0] * 3000, 1)
    memory = after(memory, ("a",), (5.0,), 2 * MINUTE)
    assert len(BundleHistory.read(memory, ("a",)).keys) == 1


def test_a_bundle_takes_9_bytes_with_its_name_17_and_2_for_each_hour() -> None:
    many = tuple(f"{number:05}" for number in range(3000))
    memory = PeakHistory()
    for hour in range(25):
        memory = after(memory, many, [1.0] * 3000, hour * HOUR)
    text = sum(map(len, (memory.keys, memory.level, memory.trend, memory.error, memory.streak, *memory.hours.values())))
    assert text * 3 / 4 / 3000 == pytest.approx(17 + 2 * 24)


@pytest.mark.parametrize("field", ["keys", "level", "trend", "error", "streak"])
@pytest.mark.parametrize("text", ["", "AAA=", "not base64", "AA=="])
def test_columns_that_do_not_fit_together_begin_anew(field: str, text: str) -> None:
    damaged = replace(steady(), **{field: text})  # type: ignore[arg-type]
    assert levels(after(damaged, NAMES, (1.0, 2.0, 3.0), 9 * MINUTE), NAMES) == [1, 2, 3]


def test_a_damaged_hour_counts_as_not_known() -> None:
    memory = steady()
    for hour in range(25):
        memory = after(memory, NAMES, (10.0, 20.0, 30.0), hour * HOUR)
    assert BundleHistory.read(memory, NAMES).day() is not None
    damaged = replace(memory, hours={**memory.hours, "07": "AAAA"})
    assert BundleHistory.read(damaged, NAMES).day() is None


def test_a_day_is_known_after_a_day_and_says_what_comes() -> None:
    memory, at = PeakHistory(), 0
    for minute in range(0, 25 * 60, 5):
        at = minute * MINUTE
        daily = 100.0 + 50.0 * np.sin(2 * np.pi * minute / 1440)
        memory = after(memory, NAMES, (daily, 100.0, daily), at)
        assert (BundleHistory.read(memory, NAMES).day() is not None) == (minute >= 1440)
    day = BundleHistory.read(memory, NAMES).day()
    assert day is not None
    in_hours = {hours: day.ratio(at, hours) for hours in (5, 17)}
    assert in_hours[5][0] == pytest.approx(150 / 112, rel=0.05)
    assert in_hours[17][0] == pytest.approx(50 / 112, rel=0.1)
    assert in_hours[5][1] == pytest.approx(1.0, rel=0.01)
    assert (in_hours[5][2], in_hours[17][2]) == (in_hours[5][0], in_hours[17][0])


def test_no_bundles_have_no_history() -> None:
    memory = after(PeakHistory(), (), (), 0)
    assert (memory.level, memory.keys) == ("", "")
    assert levels(after(memory, NAMES, (1.0, 2.0, 3.0), MINUTE), NAMES) == [1, 2, 3]
