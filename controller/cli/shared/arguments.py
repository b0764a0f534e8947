"""What arguments mean: names of bundles; and times, as a date, a time of today, or a length of time ago, in UTC."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Final

import typer

from controller.model.errors import TrimtabError
from controller.model.names import parse_bundle
from controller.model.topic_name import TopicName
from controller.status.topic import scalable_topic_of

_AGO: Final = re.compile(r"(\d{1,6})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_MS: Final = 366 * _UNIT_MS["d"]
_OF_DAY: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
#: What ``time_of`` takes, for the help of options.
FORMS: Final = "2025-01-31T14:05:00Z, 14:05 (of the last 24 hours), or 90m (ago: s, m, h or d)"


def is_time(text: str) -> bool:
    """Whether *text* is one of FORMS."""
    return _read(text, now_ms=0) is not None


def time_of(text: str, *, now_ms: int, of: str) -> int:
    """The time that *text* means, epoch ms; typer.BadParameter of the option *of* where it is none of FORMS."""
    parsed = _read(text, now_ms=now_ms)
    if parsed is None:
        raise typer.BadParameter(f"{text!r} is not a time: give {FORMS}", param_hint=of)
    return parsed


def now_ms() -> int:
    """The time now, epoch ms."""
    return time.time_ns() // 1_000_000


def span_of(
    since: str | None, until: str | None, *, of: tuple[str, str] = ("--from", "--to")
) -> tuple[int | None, int | None]:
    """The times that *since* and *until* mean, epoch ms; typer.BadParameter of the options *of* where one is wrong."""
    now = now_ms()
    begin, end = (
        None if text is None else time_of(text, now_ms=now, of=option)
        for text, option in zip((since, until), of, strict=True)
    )
    if begin is not None and end is not None and begin > end:
        raise typer.BadParameter(f"it is later than {of[1]}", param_hint=of[0])
    return begin, end


def bundle_of(text: str, *, of: str) -> str:
    """*text*, the name of a bundle; typer.BadParameter of the option *of* where it is none."""
    try:
        parse_bundle(text)
    except TrimtabError as error:
        raise typer.BadParameter(str(error), param_hint=of) from error
    return text


def length_ms(text: str, *, of: str) -> int:
    """The length of time that *text* means, such as 2h, ms; typer.BadParameter of the option *of* where it is none."""
    match = _AGO.fullmatch(text)
    length = 0 if match is None else int(match[1]) * _UNIT_MS[match[2]]
    if not 0 < length <= _LONGEST_MS:
        raise typer.BadParameter(f"{text!r} is not a duration up to 366d: give 90m, 2h or 1d", param_hint=of)
    return length


def _read(text: str, *, now_ms: int) -> int | None:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    try:
        if _OF_DAY.fullmatch(text):
            of_day = datetime.strptime(text, "%H:%M:%S" if text.count(":") > 1 else "%H:%M").time()  # noqa: DTZ007 UTC
            parsed = datetime.combine(now.date(), of_day, UTC)
            parsed -= timedelta(days=parsed > now)
        elif text[:4].isdigit() and "-" in text:
            parsed = datetime.fromisoformat(text)
            parsed = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        else:
            return None
        return round(parsed.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def topic_of(text: str, *, of: str) -> TopicName:
    """The scalable topic that *text* names; typer.BadParameter of the option *of* where it names none."""
    try:
        return scalable_topic_of(text)
    except TrimtabError as error:
        raise typer.BadParameter(str(error), param_hint=of) from error
