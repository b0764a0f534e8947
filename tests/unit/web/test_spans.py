"""Times of the past: the spans that people choose, and how the pages write times and reasons of decisions."""

import pytest
from starlette.exceptions import HTTPException

from controller.web.pages.spans import form_time, time_of, usual_spans
from controller.web.views.formats import clock
from controller.web.views.sentences import main_reason
from tests.invented_pages import DAY, MINUTE, T, decision_row

_HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (str(T), T),
        ("2026-11-26T14:31", T),
        ("2026-11-26T14:31:00Z", T),
        ("2026-11-26T15:31+01:00", T),
        ("2026-11-26", T - 14 * _HOUR - 31 * MINUTE),
    ],
)
def test_a_time_comes_from_a_link_or_a_form(text: str, time: int) -> None:
    assert time_of("since", text) == time


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01T00:00", "-5", "٣", "9" * 30, "0001-01-01T00:00+23:59"])
def test_what_is_no_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(HTTPException, match="since must be a time"):
        time_of("since", text)


def test_a_form_gets_back_what_it_sent_and_no_part_of_a_span_is_lost() -> None:
    assert time_of("since", form_time(T)) == T
    assert time_of("until", form_time(T + 1, round_up=True)) == T + MINUTE
    assert form_time(1 << 62) == ""


def test_each_day_with_data_is_offered() -> None:
    labels = [each.label for each in usual_spans(T - 3 * DAY, T)]
    assert labels == ["Last hour", "Last 12 h", "Last 24 h", "Thu 26 Nov", "Wed 25 Nov", "Tue 24 Nov", "Mon 23 Nov"]


def test_no_span_begins_before_the_data_or_ends_after_it() -> None:
    spans = usual_spans(T - 2 * DAY, T)
    assert all(T - 2 * DAY <= each.since < each.until <= T for each in spans)


def test_a_cluster_of_some_minutes_is_offered_them_once() -> None:
    assert [(each.since, each.until) for each in usual_spans(T - 10 * MINUTE, T)] == [(T - 10 * MINUTE, T)]
    assert usual_spans(None, T) == ()


def test_a_setting_that_excludes_something_is_no_reason_where_nothing_was_to_be_moved() -> None:
    quiet = decision_row(T, number=0, reasons={"Balanced": 3, "Excluded": 1, "BelowMinimum": 1})
    wanted = decision_row(T, number=0, reasons={"Balanced": 3, "Overloaded": 1, "Excluded": 1})
    assert (main_reason(quiet), main_reason(wanted)) == ("Balanced", "Excluded")


def test_intervals_of_one_minute_are_told_apart() -> None:
    assert [clock(T + at, T) for at in (0, 10_000, 50_000, MINUTE)] == ["14:31", "14:31:10", "14:31:50", "14:32"]
    assert clock(T + 10_000, T + DAY) == "26 Nov 14:31:10"
