"""Times, amounts and counts as people read them."""

import pytest

from controller.wire.readable import ago, amounts, compared, counted, duration, in_number, lasting, utc


def test_a_time_is_iso_in_utc_to_the_second() -> None:
    assert utc(1_795_303_560_999) == "2026-11-21T23:26:00Z"
    assert utc(0) == "1970-01-01T00:00:00Z"


def test_a_time_that_no_calendar_has_is_shown_as_it_is() -> None:
    assert utc(10**18) == f"{10**18} ms"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (119.4, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2 h"), (172_800, "2 days")],
)
def test_a_length_of_time_is_told_in_the_largest_unit_of_which_there_are_two(seconds: float, said: str) -> None:
    assert lasting(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (3_600, "1 h"),
        (9_600, "2 h 40 min"),
        (86_400, "1 day"),
        (3 * 86_400 + 4 * 3_600 + 5 * 60, "3 days 4 h"),
        (2 * 86_400 + 60, "2 days 1 min"),
    ],
)
def test_how_long_something_takes_is_told_in_at_most_two_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_time_ahead_is_not_told_as_past() -> None:
    assert ago(10_000, 4_000) == "6 s ago"
    assert ago(4_000, 10_000) == "in 6 s"


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 bundles"), (1, "1 bundle"), (2, "2 bundles"), (12_345, "12,345 bundles")]
)
def test_one_is_singular_and_all_else_plural(number: int, said: str) -> None:
    assert counted(number, "bundle") == said


@pytest.mark.parametrize(
    ("journalled", "said"),
    [
        ("96 bundles on 1 brokers: 1 unloads", "96 bundles on 1 broker: 1 unload"),
        ("1 splits, 11 unloads, 1,201 commands held back", "1 split, 11 unloads, 1,201 commands held back"),
        ("0.1 unloads", "0.1 unloads"),
        ("100027 bundles on 1000 brokers: 12 unloads", "100,027 bundles on 1,000 brokers: 12 unloads"),
        (
            "2 bundles on broker-1234 and 0x12345678 are held back",
            "2 bundles on broker-1234 and 0x12345678 are held back",
        ),
        (
            "9 bundles on 2 brokers: Paused, 0 commands held back",
            "9 bundles on 2 brokers: Paused, there was nothing to do",
        ),
        (
            "9 bundles on 2 brokers: Paused, 10 commands held back",
            "9 bundles on 2 brokers: Paused, 10 commands held back",
        ),
    ],
)
def test_a_journalled_summary_is_read_in_singular_and_plural(journalled: str, said: str) -> None:
    assert in_number(journalled) == said


def test_a_plural_of_its_own_is_used() -> None:
    assert [counted(n, "query", "queries") for n in (1, 2)] == ["1 query", "2 queries"]


@pytest.mark.parametrize(
    ("observed", "limit", "unit", "said"),
    [
        (0.736071, 0.516652, "usage", "usage 74 % against 52 %"),
        (0.5, None, "usage", "usage 50 %"),
        (0.05, 0.632727, "usage", "usage 5 % against 63 %"),
        (0.0042, 0.05, "usage", "usage 0.42 % against 5 %"),
        (1200.0, 1000.0, "topics", "1,200 against 1,000 topics"),
        (0.0, 1.0, "cuts", "0 against 1 cut"),
        (1.0, None, "sessions", "1 session"),
        (1.0, 4.0, "rounds", "1 against 4 rounds"),
        (12_345.678, 10_000.0, "msg/s", "12,346 against 10,000 msg/s"),
        (1.2345, None, "MB/s", "1.23 MB/s"),
        (62_914_600.0, 46_603_400.0, "bytes/s", "60 against 44.4 MB/s"),
        (100.0, 1023.0, "bytes/s", "100 against 1,023 bytes/s"),
        (2048.0, None, "bytes/s", "2 kB/s"),
        (50.0, 40.0, "% above the lowest message rate", "50 % against 40 % above the lowest message rate"),
        (1.0, 12.0, "unloads in 3600 s", "1 against 12 unloads in 60 min"),
        (1.0, 12.0, "commands in flight", "1 against 12 commands in flight"),
        (1.0, None, "", "1"),
        (float("inf"), 3.0, "", "inf against 3"),
    ],
)
def test_what_was_seen_is_compared_with_the_limit_in_its_unit(
    observed: float, limit: float | None, unit: str, said: str
) -> None:
    assert compared(observed, limit, unit) == said


@pytest.mark.parametrize(
    ("observed", "limit", "said"),
    [
        (0.8504, 0.85, "usage 85.04 % against 85 %"),
        (0.85, 0.85, "usage 85 % against 85 %"),
        (0.1 + 0.2, 0.3, "usage 30 % against 30 %"),
        (0.8500000001, 0.85, "usage 85.00000001 % against 85 %"),
        (0.85000000001, 0.85, "usage 85 % against 85 %"),
    ],
)
def test_numbers_look_alike_only_where_they_differ_by_rounding_alone(observed: float, limit: float, said: str) -> None:
    assert compared(observed, limit, "usage") == said


def test_amounts_have_their_unit_each() -> None:
    assert amounts((0.736071, 0.516652), "usage") == ["74 %", "52 %"]
    assert amounts((1.0, 2.0), "rounds") == ["1 round", "2 rounds"]
    assert amounts((3.0,), "") == ["3"]
