"""The history of bundles: packed into the memory and back, as bundles come, go and are out of sight."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from controller.model.load import ClusterView
from controller.model.packed import pack_halves, unpack_bytes, unpack_halves
from controller.planning.foresight.bundle_history import BundleHistory
from controller.planning.foresight.foresee import error_of, followed, foreseen
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
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
    [[later]] = foreseen(view, history, minutes=30).later
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


def test_a_bundle_takes_9_bytes_with_its_name_17_and_2_for_each_hour_and_2_while_far_off() -> None:
    many = tuple(f"{number:05}" for number in range(3000))
    memory = PeakHistory()
    for hour in range(25):
        memory = after(memory, many, [1.0] * 3000, hour * HOUR)
    text = sum(map(len, (memory.keys, memory.level, memory.trend, memory.error, memory.streak, *memory.hours.values())))
    assert text * 3 / 4 / 3000 == pytest.approx(17 + 2 * 24)
    assert memory.far == ""
    memory = after(memory, many, [5.0] * 3000, 25 * HOUR)
    assert len(memory.far) * 3 / 4 / 3000 == pytest.approx(2)


@pytest.mark.parametrize("field", ["keys", "level", "trend", "error", "streak"])
@pytest.mark.parametrize("text", ["", "AAA=", "not base64", "AA=="])
def test_columns_that_do_not_fit_together_begin_anew(field: str, text: str) -> None:
    damaged = replace(steady(), **{field: text})  # type: ignore[arg-type]
    assert levels(after(damaged, NAMES, (1.0, 2.0, 3.0), 9 * MINUTE), NAMES) == [1, 2, 3]


def test_a_memory_knows_what_was_far_off_and_one_that_does_not_jumps_to_the_load_of_now() -> None:
    changed = after(steady(), NAMES, (10.0, 20.0, 60.0), 6 * MINUTE)
    burst = (10.0, 20.0, 500.0)
    assert levels(after(changed, NAMES, burst, 7 * MINUTE), NAMES) == [10, 20, 60]
    for unknown in ("", "not base64", "AAAAAAAA"):
        older = replace(changed, far=unknown)
        assert levels(after(older, NAMES, burst, 7 * MINUTE), NAMES) == [10, 20, 500]


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


def test_the_level_at_the_end_of_an_hour_is_that_of_the_last_round_in_it() -> None:
    memory = after(steady(rounds=59), ("a", "b", "d"), (10.0, 20.0, 40.0), 61 * MINUTE)
    assert list(memory.hours) == ["00"]
    assert unpack_halves(memory.hours["00"]).tolist() == [10, 20, 0, 30]
    assert after(memory, ("a", "b", "d"), (1.0, 2.0, 3.0), 3 * HOUR).hours == memory.hours, "an hour was missed"


def test_of_an_hour_that_comes_again_half_is_new() -> None:
    memory = replace(steady(rounds=59), hours={"00": pack_halves(load([30.0, 20.0, 10.0]))})
    found = after(memory, NAMES, (10.0, 20.0, 30.0), 61 * MINUTE)
    assert unpack_halves(found.hours["00"]).tolist() == [20, 20, 20]


def test_the_day_is_that_of_the_bundles_in_sight_and_of_new_ones_it_is_not_known() -> None:
    memory = steady()
    for hour in range(25):
        memory = after(memory, NAMES, (10.0, 20.0, 30.0), hour * HOUR)
    day = BundleHistory.read(memory, ("b", "d")).day()
    assert day is not None
    assert day.levels.tolist() == [[20, 0]] * 24


@pytest.mark.parametrize(("in_sight", "out", "kept"), [(1, 1000, 1001), (1, 1001, 1), (1200, 1200, 2400), (1, 2, 3)])
def test_bundles_out_of_sight_are_kept_while_they_are_no_more_than_1000_or_those_in_sight(
    in_sight: int, out: int, kept: int
) -> None:
    names = [f"{number:05}" for number in range(in_sight + out)]
    memory = steady(names, [1.0] * len(names), 1)
    assert len(BundleHistory.read(memory, names[:in_sight]).keys) == kept


def view_of(at: int, **mbytes: float) -> ClusterView:
    bundles = {name: Bundle(msg_rate_in=10.0, msg_rate_out=20.0, mbytes_in=each) for name, each in mbytes.items()}
    return cluster_view(Broker("a:8080", bundles=bundles), as_of_ms=at)


def test_the_load_foreseen_is_the_level_in_the_proportions_of_the_short_term_average() -> None:
    first = view_of(0, a=1.0, b=3.0)
    history = followed(first, BundleHistory.read(PeakHistory(), ("a", "b")))
    # A burst: of each KiB/s and message there is twice as much.
    twice = replace(
        first, bundles=replace(first.bundles, load=2 * first.bundles.load, short_term=2 * first.bundles.load)
    )
    assert foreseen(twice, history, minutes=60).load.tolist() == [
        [10, 20, 2**20, 0],
        [10, 20, 3 * 2**20, 0],
    ]
    unknown = replace(first, bundles=replace(first.bundles, short_term=0 * first.bundles.load))
    assert foreseen(unknown, history, minutes=60).load.tolist() == first.bundles.load.tolist()


def test_a_trend_is_told_with_its_minutes_where_any_bundle_changes_by_a_hundredth() -> None:
    view = view_of(0, a=1.0, b=1.0)
    history = followed(view, BundleHistory.read(PeakHistory(), ("a", "b")))
    level = history.followed.level

    def later(trend: float, minutes: float) -> list[tuple[str, list[float], float]]:
        error = np.zeros(2)
        trended = replace(
            history, followed=replace(history.followed, trend=np.array([trend, 0.0]) * level, error=error)
        )
        found = foreseen(view, trended, minutes=minutes).later
        return [(one.label, [round(each, 4) for each in one.ratio.tolist()], one.minutes) for [one] in found]

    assert later(0.1, 2.0) == [("in 2 min", [1.171, 1.0], 2.0)]
    assert later(-0.1, 0.5) == [("in 0.5 min", [0.9538, 1.0], 0.5)]
    assert later(0.005, 2.0) == []


def test_the_next_day_is_looked_at_in_six_groups_of_four_hours() -> None:
    # The third has twice the load at 06:00, the end of the hour 5.
    hours = {f"{hour:02}": pack_halves(load([10.0, 20.0, 60.0 if hour == 5 else 30.0])) for hour in range(24)}
    memory = replace(steady(), hours=hours, day_skill=0.2)
    view = cluster_view(
        Broker("a:8080", bundles={name: Bundle(msg_rate_in=10.0) for name in NAMES}), as_of_ms=26 * HOUR + 30 * MINUTE
    )
    history = BundleHistory.read(memory, NAMES)
    groups = foreseen(view, history, minutes=60).later
    assert [[each.label for each in group] for group in groups] == [
        [f"at {(hour + ahead) % 24:02}:30" for ahead in range(4)] for hour in range(3, 27, 4)
    ]
    assert {each.minutes for group in groups for each in group} == {60.0}
    ratios = [each.ratio.tolist() for group in groups for each in group]
    assert ratios == [[1, 1, 1.5] if at in (2, 3) else [1, 1, 1] for at in range(24)]
    no_better = BundleHistory.read(replace(memory, day_skill=0.1), NAMES)
    assert foreseen(view, no_better, minutes=60).later == []


def test_the_error_is_the_share_of_all_load() -> None:
    history = BundleHistory.read(steady(rounds=1), NAMES)
    assert error_of(history) == pytest.approx(0.09, rel=1e-3)
    assert error_of(BundleHistory.read(PeakHistory(), NAMES)) == 0.0
    small = BundleHistory.read(steady(seen=(0.1, 0.2, 0.3), rounds=1), NAMES)
    assert error_of(small) == pytest.approx(0.09, rel=0.01)


def test_it_is_remembered_when_more_than_a_tenth_of_the_load_jumped() -> None:
    for seen, jumped in ((16.0, -1), (17.0, 9 * MINUTE)):
        memory = steady(rounds=8)
        for at in (8, 9, 10):
            memory = after(memory, NAMES, (seen, 20.0, 30.0), at * MINUTE)
        assert memory.jumped_ms == jumped


def hourly(loads: Sequence[Sequence[float]]) -> PeakHistory:
    """The memory after hours with these loads, each for eight rounds."""
    memory = PeakHistory()
    for hour, seen in enumerate(loads):
        for at in range(8):
            memory = after(memory, NAMES, seen, hour * HOUR + at * 8 * MINUTE)
    return memory


def test_yesterday_has_skill_where_it_foretells_today_better_than_the_load_of_some_hours_before() -> None:
    day = [(30.0, 10.0, 20.0) if hour < 12 else (10.0, 30.0, 20.0) for hour in range(24)]
    assert hourly(day).day_skill == 0.0
    assert hourly([*day, *day]).day_skill > 0.3
    # A leak that goes on is not what yesterday had.
    leak = [(60.0 - hour, 10.0 + hour, 20.0) for hour in range(48)]
    assert hourly(leak).day_skill < 0.0


def test_load_shifts_by_the_share_that_is_on_other_bundles_an_hour_later() -> None:
    assert hourly([(10.0, 20.0, 30.0)]).shifting == -1.0
    assert hourly([(10.0, 20.0, 30.0)] * 3).shifting == pytest.approx(0.0, abs=1e-3)
    # A rhythm that all bundles have shifts nothing.
    assert hourly([(10.0, 20.0, 30.0), (20.0, 40.0, 60.0)] * 2).shifting == pytest.approx(0.0, abs=5e-3)
    assert hourly([(10.0, 20.0, 30.0), (22.0, 20.0, 18.0), (1.0, 1.0, 1.0)]).shifting == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(("others", "kept"), [(1000, 1001), (1001, 1)])
def test_as_many_as_1000_bundles_out_of_sight_are_remembered(others: int, kept: int) -> None:
    many = tuple(f"{number:05}" for number in range(others + 1))
    memory = after(steady(many, [1.0] * len(many), 1), many[:1], (5.0,), 2 * MINUTE)
    assert len(BundleHistory.read(memory, many[:1]).keys) == kept


def test_columns_that_do_not_fit_together_lose_their_hours() -> None:
    memory = replace(steady(), hours={"00": pack_halves(load([1.0, 2.0, 3.0]))})
    assert BundleHistory.read(replace(memory, level=""), NAMES).hours == {}


def test_text_with_other_letters_in_between_is_no_column() -> None:
    assert unpack_bytes("AA==").tolist() == [0]
    assert unpack_bytes("A!A==").tolist() == []
