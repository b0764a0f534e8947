"""Maintenance windows as a week of hours."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from controller.settings.maintenance import Maintenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """An hour of the week; x, y, width and height are percent of the picture."""

    x: float
    y: float
    width: float
    height: float
    #: open, closed, or now-open, now-closed for the hour that runs.
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """This week, from Monday on, in the time zone of the windows."""

    hours: tuple[Hour, ...]
    days: tuple[str, ...]
    words: str


def week(maintenance: Maintenance, now_ms: int) -> Week | None:
    """Each hour of this week as its middle is; None: there are no windows, so that commands are always allowed."""
    if not maintenance.allowed and not maintenance.frozen:
        return None
    zone = ZoneInfo(maintenance.time_zone)
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone)
    monday = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday())
    hours, allowed = [], 0
    for day in range(7):
        for hour in range(24):
            middle = monday + timedelta(days=day, hours=hour, minutes=30)
            is_open = not maintenance.forbids(int(middle.timestamp() * 1000))
            allowed += is_open
            is_now = day == now.weekday() and hour == now.hour
            kind = f"{'now-' if is_now else ''}{'open' if is_open else 'closed'}"
            hours.append(Hour(x=100 * hour / 24, y=100 * day / 7, width=100 / 24 - 0.25, height=100 / 7 - 2, kind=kind))
    words = f"Commands are allowed in {allowed} of 168 hours of this week, {maintenance.time_zone}"
    return Week(hours=tuple(hours), days=("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), words=words)
