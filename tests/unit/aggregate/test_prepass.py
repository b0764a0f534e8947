"""Where ticks are added to a recording."""

import pytest

from controller.aggregate.ticks.prepass import SILENCE_MS, Header, place_ticks
from tests.records import PERIOD, T


def chunk(broker: str, at: int, sweep: str = "s", chunk: int = 0, of: int = 1) -> Header:
    """A chunk of a sweep, *at* periods after T."""
    return Header(broker=broker, time_ms=T + at * PERIOD, sweep_id=sweep, chunk=chunk, chunks=of)


def report(broker: str, at_ms: int) -> Header:
    return Header(broker=broker, time_ms=T + at_ms)


def placed(*headers: Header | None) -> list[tuple[int, int, dict[str, str | None]]]:
    """For every tick: (index of the record before it, periods after T, roster)."""
    ticks = place_ticks(headers, period_ms=PERIOD)
    return [(tick.after, (tick.interval - T) // PERIOD, dict(tick.roster)) for tick in ticks]


def test_an_empty_recording_gets_no_ticks() -> None:
    assert placed() == []
    assert placed(None, None) == []


def test_an_interval_ends_after_the_last_of_its_sweeps() -> None:
    assert placed(chunk("a", 0), chunk("b", 0), chunk("a", 1), chunk("b", 1)) == [
        (1, 0, {"a": "s", "b": "s"}),
        (3, 1, {"a": "s", "b": "s"}),
    ]


def test_a_sweep_is_complete_with_its_last_chunk_in_any_order() -> None:
    assert placed(chunk("a", 0, chunk=2, of=3), chunk("a", 0, chunk=0, of=3), chunk("a", 0, chunk=1, of=3)) == [
        (2, 0, {"a": "s"})
    ]


def test_a_repeated_chunk_does_not_complete_a_sweep() -> None:
    assert placed(chunk("a", 0, chunk=0, of=2), chunk("a", 0, chunk=0, of=2)) == [(1, 0, {"a": None})]


def test_the_first_complete_sweep_of_a_broker_counts() -> None:
    headers = [
        chunk("a", 0, "torn", chunk=0, of=2),
        chunk("a", 0, "first"),
        chunk("a", 0, "torn", chunk=1, of=2),
        chunk("a", 0, "second"),
    ]
    assert placed(*headers) == [(1, 0, {"a": "first"})]


def test_a_broker_with_an_incomplete_sweep_is_on_the_roster_without_a_sweep() -> None:
    assert placed(chunk("a", 0), chunk("b", 0, of=2), chunk("a", 1)) == [
        (0, 0, {"a": "s", "b": None}),
        (2, 1, {"a": "s"}),
    ]


def test_an_interval_waits_for_sweeps_until_records_two_periods_ahead() -> None:
    late_but_counts = [chunk("a", 0), chunk("a", 1), chunk("b", 0)]
    assert placed(*late_but_counts)[0] == (2, 0, {"a": "s", "b": "s"})
    too_late = [chunk("a", 0), chunk("b", 0, of=2), chunk("a", 2), chunk("b", 0, chunk=1, of=2)]
    assert placed(*too_late) == [(0, 0, {"a": "s", "b": None}), (2, 2, {"a": "s"})]


def test_ticks_stay_in_the_order_of_their_intervals() -> None:
    headers = [chunk("a", 1), chunk("a", 0), chunk("b", 0)]
    assert placed(*headers) == [(2, 0, {"a": "s", "b": "s"}), (2, 1, {"a": "s"})]


def test_an_interval_without_sweeps_has_no_tick() -> None:
    assert [interval for _, interval, _ in placed(chunk("a", 0), chunk("a", 5))] == [0, 5]


def test_other_records_do_not_move_a_tick() -> None:
    headers = [None, chunk("a", 0), None, report("z", 5), chunk("a", 1), None]
    assert placed(*headers) == [(1, 0, {"a": "s"}), (4, 1, {"a": "s"})]


@pytest.mark.parametrize("chunks", [1 << 62])
def test_a_sweep_with_too_many_chunks_is_never_complete(chunks: int) -> None:
    assert placed(chunk("a", 0, of=chunks)) == [(0, 0, {"a": None})]


def test_load_reports_give_a_tick_when_their_time_passes_a_period() -> None:
    headers = [report("a", -10), report("b", 0), report("a", 1), report("b", PERIOD), report("a", PERIOD + 1)]
    assert placed(*headers) == [
        (1, 0, {"a": None, "b": None}),
        (3, 1, {"a": None, "b": None}),
        (4, 2, {"a": None, "b": None}),
    ]


def test_a_broker_with_a_recent_report_stays_on_the_roster() -> None:
    minutes = SILENCE_MS // 60_000
    ticks = placed(report("a", 0), report("b", 0), *(report("a", i * 60_000) for i in range(1, minutes + 3)))
    there = [at for _, at, roster in ticks if "b" in roster]
    assert there == list(range(minutes))
    assert all("a" in roster for _, _, roster in ticks)


def test_a_gap_in_all_reports_gets_no_ticks() -> None:
    year = 365 * 24 * 3600 * 1000
    ticks = placed(report("a", 0), report("a", year))
    assert len(ticks) == SILENCE_MS // PERIOD + 1
    assert ticks[-1] == (1, year // PERIOD, {"a": None})


def test_a_report_out_of_order_does_not_change_the_ticks() -> None:
    assert placed(report("a", 1), report("b", -5 * PERIOD), report("a", PERIOD + 1)) == [
        (1, 1, {"a": None, "b": None}),
        (2, 2, {"a": None, "b": None}),
    ]
