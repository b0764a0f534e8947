"""Maintenance windows in the nights in which clocks change, in several time zones."""

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.settings.maintenance import Maintenance

_MINUTE: Final = timedelta(minutes=1)
#: Zone -> in UTC, when its clocks go forward and back in a year.  Lord Howe's change by half an hour, Troll's by two.
_CHANGES: Final = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-10-03T15:30", "2026-04-04T15:00"),
    "Antarctica/Troll": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "Asia/Kolkata": ("2026-03-29T01:00", "2026-10-25T01:00"),
}
FORWARD, BACK = 0, 1


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def in_force(window: str, zone: str, since: datetime, minutes: int) -> list[str]:
    """The pieces of time from *since* in which *window* is in force: "00:30-01:30", in UTC."""
    frozen = Maintenance(time_zone=zone, frozen=(window,))
    times = [since + number * _MINUTE for number in range(minutes)]
    holds = [bool(frozen.forbids(ms(at))) for at in times]
    edges = [at for at, before, now in zip(times, [False, *holds], holds, strict=False) if before != now]
    edges += [times[-1]] * (len(edges) % 2)
    return [f"{start:%H:%M}-{end:%H:%M}" for start, end in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize(
    ("zone", "night", "window", "pieces"),
    [
        ("Europe/Berlin", BACK, "30 2 * * * for 1h", ["00:30-01:30"]),
        ("Europe/Berlin", BACK, "15 2 * * * for 30m", ["00:15-00:45"]),
        ("Europe/Berlin", BACK, "30 1 * * * for 2h", ["23:30-01:30"]),
        ("Europe/Berlin", BACK, "*/30 2 * * * for 10m", ["00:00-00:10", "00:30-00:40", "01:00-01:10", "01:30-01:40"]),
        ("Europe/Berlin", FORWARD, "30 2 * * * for 1h", ["01:00-02:00"]),
        ("Europe/Berlin", FORWARD, "30 1 * * * for 2h", ["00:30-02:30"]),
        ("Europe/Berlin", FORWARD, "*/30 2 * * * for 10m", []),
        ("America/New_York", BACK, "30 1 * * * for 1h", ["05:30-06:30"]),
        ("America/New_York", FORWARD, "30 2 * * * for 1h", ["07:00-08:00"]),
        ("Australia/Lord_Howe", BACK, "45 1 * * * for 1h", ["14:45-15:45"]),
        ("Australia/Lord_Howe", BACK, "*/30 2 * * * for 10m", ["15:30-15:40", "16:00-16:10"]),
        ("Australia/Lord_Howe", FORWARD, "10 2 * * * for 20m", ["15:30-15:50"]),
        ("Antarctica/Troll", BACK, "30 1 * * * for 3h", ["23:30-02:30"]),
        ("Antarctica/Troll", FORWARD, "30 2 * * * for 1h", ["01:00-02:00"]),
        ("Asia/Kolkata", BACK, "0 6 * * * for 1h", ["00:30-01:30"]),
    ],
)
def test_a_window_is_in_force_from_its_start_for_its_length(
    zone: str, night: int, window: str, pieces: list[str]
) -> None:
    since = utc(_CHANGES[zone][night]) - timedelta(minutes=150)
    assert in_force(window, zone, since, 300) == pieces


def starts(
    minutes: frozenset[int], hours: frozenset[int], certain: bool, zone: str, times: list[datetime]
) -> set[datetime]:
    """Those of *times*, one for each minute in UTC, at which a window begins: found without any cron."""
    found = set()
    before: datetime | None = None
    for at in times:
        shown = at.astimezone(ZoneInfo(zone))
        here = shown.replace(tzinfo=None)
        if shown.minute in minutes and shown.hour in hours and not (certain and shown.fold):
            found.add(at)
        while certain and before is not None and before + _MINUTE < here:  # clocks left something out
            before += _MINUTE
            if before.minute in minutes and before.hour in hours:
                found.add(at)
        before = here
    return found


@given(
    zone=st.sampled_from(sorted(_CHANGES)),
    night=st.sampled_from((FORWARD, BACK)),
    minute=st.sampled_from(("*", "*/7", "*/30", "0", "29", "30", "59", "0,45", "10-12")),
    hour=st.sampled_from(("*", "*/2", "0", "1", "2", "3", "1,2", "0-4")),
    length=st.sampled_from((1, 10, 30, 59, 60, 61, 90, 150, 24 * 60, 3 * 24 * 60)),
    days_after=st.sampled_from((0, 0, 1)),
)
@example(zone="Europe/Berlin", night=BACK, minute="30", hour="2", length=60, days_after=0)
@example(zone="Europe/Berlin", night=BACK, minute="*/30", hour="*", length=10, days_after=0)
@example(zone="Australia/Lord_Howe", night=BACK, minute="*/7", hour="2", length=1, days_after=0)
def test_a_window_is_in_force_for_exactly_its_length_after_each_start(
    zone: str, night: int, minute: str, hour: str, length: int, days_after: int
) -> None:
    middle = utc(_CHANGES[zone][night]) + timedelta(days=days_after)
    looked_at = [middle + number * _MINUTE for number in range(-200, 200, 5)]
    since = looked_at[0] - timedelta(minutes=length)
    times = [since + number * _MINUTE for number in range(length + 400)]
    certain = not (minute.startswith("*") or hour.startswith("*"))
    begun = starts(field(minute, 60), field(hour, 24), certain, zone, times)
    frozen = Maintenance(time_zone=zone, frozen=(f"{minute} {hour} * * * for {length}m",))
    ends = {start + timedelta(minutes=length) for start in begun}
    edges = {at + edge for at in begun | ends for edge in (timedelta(), -_MINUTE)} & set(times[length:])
    for at in (*looked_at, *sorted(edges)[:20]):
        expected = any(at - timedelta(minutes=length) < start <= at for start in begun)
        assert bool(frozen.forbids(ms(at))) == expected, at


def field(text: str, many: int) -> frozenset[int]:
    """The numbers that a field of a cron expression names, of 0 to *many* - 1."""
    if text.startswith("*"):
        return frozenset(range(0, many, int(text[2:] or 1)))
    if "-" in text:
        first, _, last = text.partition("-")
        return frozenset(range(int(first), int(last) + 1))
    return frozenset(map(int, text.split(",")))
