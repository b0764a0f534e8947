"""Maintenance windows: when commands may be issued, by cron expressions in a time zone.

A window is written as ``<cron expression of its start> for <n>h`` (or ``m`` for minutes): "0 22 * * mon-fri for 8h".
"""

import re
from collections.abc import Sequence
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
        at = datetime.fromtimestamp(time_ms // 1000, UTC).astimezone(ZoneInfo(self.time_zone))
        frozen = next((window for window in self.frozen if _holds(window, at)), None)
        if frozen is not None:
            return f"in the frozen window {frozen!r} ({self.time_zone})"
        if self.allowed and not any(_holds(window, at) for window in self.allowed):
            return f"outside of the allowed windows {', '.join(map(repr, self.allowed))} ({self.time_zone})"
        return ""


def _holds(window: str, at: datetime) -> bool:
    """Whether *at* lies in *window*: from a start on, and before its end."""
    cron, length = _parse(window)
    # In UTC, so that daylight saving time does not change the length.
    since = (at.astimezone(UTC) - length).astimezone(at.tzinfo)
    start = next(CronSim(cron, since), None)
    return start is not None and start <= at


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
