"""Maintenance windows: when commands may be issued, by cron expressions in a time zone.

A window is written as ``<cron expression of its start> for <n>h`` (or ``m`` for minutes): "0 22 * * mon-fri for 8h".

Where clocks change, a window begins as Debian's cron begins a job (cron(8)).  One at a certain time of the day begins
once: the first time where clocks go back, and when clocks have gone forward where its time is left out.  One whose
minute or hour begins with ``*`` begins whenever clocks show its time.  Each lasts its length, whatever clocks show.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_WINDOW: Final = re.compile(r"\s*(?P<cron>.+?)\s+for\s+(?P<number>\d{1,5})\s*(?P<unit>[hm])\s*")
_LONGEST: Final = timedelta(days=7)
_EXAMPLE: Final = "expected '<minute> <hour> <day> <month> <weekday> for <n>h', for example '0 22 * * mon-fri for 8h'"


def check_window(text: str) -> str:
    """Return *text* if it is a window; else raise ValueError."""
    _parse(text)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """The windows in which commands are allowed (none: at any time), and those in which none are."""

    time_zone: str = "UTC"
    allowed: Sequence[str] = ()
    frozen: Sequence[str] = ()

    def forbids(self, time_ms: int) -> str:
        """Why nothing may be issued at *time_ms* (epoch ms); "" where it may."""
        at, zone = datetime.fromtimestamp(time_ms // 1000, UTC), ZoneInfo(self.time_zone)
        frozen = next((window for window in self.frozen if _holds(window, at, zone)), None)
        if frozen is not None:
            return f"in the frozen window {frozen!r} ({self.time_zone})"
        if self.allowed and not any(_holds(window, at, zone) for window in self.allowed):
            return f"outside of the allowed windows {', '.join(map(repr, self.allowed))} ({self.time_zone})"
        return ""


def _holds(window: str, at: datetime, zone: ZoneInfo) -> bool:
    """Whether *at*, in UTC, lies in *window*: from a start on, and before its end."""
    cron, length = _parse(window)
    return any(at - length < start <= at for start in _starts(cron, at - length, at, zone))


def _starts(cron: str, since: datetime, until: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The starts from *since* to *until*, in UTC, and some shortly before and after them."""
    # Not CronSim's own way with time zones: it leaves out starts where clocks change by half an hour.
    days = (since + timedelta(days=day) for day in range((until - since).days + 1))
    offsets = {_offset(at, zone) for at in (*days, until)}
    last = until.replace(tzinfo=None) + max(offsets)
    at_certain_times = not any(field.startswith("*") for field in cron.split()[:2])
    for wall_time in CronSim(cron, since.replace(tzinfo=None) + min(offsets)):
        if wall_time > last:
            return
        if at_certain_times:
            yield _first_time(wall_time, zone)
        else:
            candidates = ((wall_time - offset).replace(tzinfo=UTC) for offset in offsets)
            yield from (start for start in candidates if _wall_time(start, zone) == wall_time)


def _first_time(wall_time: datetime, zone: ZoneInfo) -> datetime:
    """When clocks in *zone* show this for the first time, in UTC; where they leave it out, when they have gone on."""
    while True:
        start = wall_time.replace(tzinfo=zone).astimezone(UTC)
        if _wall_time(start, zone) == wall_time:
            return start
        wall_time += timedelta(minutes=1)


def _wall_time(at: datetime, zone: ZoneInfo) -> datetime:
    """What clocks in *zone* show."""
    return at.astimezone(zone).replace(tzinfo=None)


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _parse(window: str) -> tuple[str, timedelta]:
    match = _WINDOW.fullmatch(window)
    if match is None:
        raise ValueError(f"not a window: {_EXAMPLE}")
    number = int(match["number"])
    length = timedelta(hours=number) if match["unit"] == "h" else timedelta(minutes=number)
    if not timedelta() < length <= _LONGEST:
        raise ValueError(f"a window lasts from 1m to {_LONGEST.days * 24}h")
    if len(match["cron"].split()) != 5:
        raise ValueError(f"the cron expression {match['cron']!r} does not have five fields: {_EXAMPLE}")
    try:
        if next(CronSim(match["cron"], datetime(2024, 1, 1, tzinfo=UTC)), None) is None:
            raise ValueError(f"the cron expression {match['cron']!r} never matches a date: {_EXAMPLE}")
    except CronSimError as error:
        raise ValueError(f"the cron expression {match['cron']!r}: {error}; {_EXAMPLE}") from error
    return match["cron"], length
