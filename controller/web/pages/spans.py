"""Spans of the past that people choose: as epoch ms in links, as dates in forms, and the usual ones."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from starlette.exceptions import HTTPException

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
#: So many days are offered one by one.
_DAYS: Final = 7
#: Hours of the spans that end with the newest interval.
_LAST_HOURS: Final = (1, 12, 24)


@dataclass(frozen=True, slots=True)
class SpanChoice:
    """A span that a link offers; times in epoch ms."""

    label: str
    since: int
    until: int


def time_of(name: str, text: str) -> int:
    """The time that the parameter *name* gives: epoch ms, or a date and time in UTC as forms send it, 2026-06-02T14:30.

    HTTPException 400 for anything else.
    """
    if text.isascii() and text.isdigit() and len(text) < 17:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
        time_ms = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        time_ms = -1
    if time_ms < 0:
        raise HTTPException(400, f"{name} must be a time, as 2026-06-02T14:30 in UTC or in epoch ms, not {text[:40]!r}")
    return time_ms


def form_time(time_ms: int, *, round_up: bool = False) -> str:
    """*time_ms* for an input of the type datetime-local, in UTC and whole minutes; "" for what no calendar has."""
    minute = -(-time_ms // _MINUTE_MS) if round_up else time_ms // _MINUTE_MS
    try:
        return f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%dT%H:%M}"
    except (OverflowError, ValueError, OSError):
        return ""


def usual_spans(oldest_ms: int | None, end_ms: int) -> tuple[SpanChoice, ...]:
    """The last hours before *end_ms*, and each day in UTC since *oldest_ms*, the newest first.

    Only what has data, so that none is offered twice or in vain.
    """
    if oldest_ms is None or oldest_ms >= end_ms:
        return ()
    made = []
    for hours in _LAST_HOURS:
        since = end_ms - hours * _HOUR_MS
        made.append(SpanChoice(f"Last {hours} h" if hours > 1 else "Last hour", max(since, oldest_ms), end_ms))
        if since <= oldest_ms:
            return tuple(made)
    today = end_ms // _DAY_MS * _DAY_MS
    for begin in range(today, today - _DAYS * _DAY_MS, -_DAY_MS):
        if begin + _DAY_MS > oldest_ms and begin < end_ms:
            day = datetime.fromtimestamp(begin / 1000, UTC)
            made.append(SpanChoice(f"{day:%a} {day.day} {day:%b}", max(begin, oldest_ms), min(begin + _DAY_MS, end_ms)))
    return tuple(made)
