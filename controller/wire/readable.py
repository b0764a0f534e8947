"""Times, amounts and counts as people read them: ISO 8601 in UTC, with a unit, singular or plural.

Nothing that is journalled is made of them: how they look may change.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Final

#: Significant digits of a percentage, and of any other number that is not whole.
_OF_PERCENT, _OF_OTHERS = 2, 3
#: From here on compact numbers are given in thousands, and in millions; and their significant digits.
MANY, MILLION, _OF_COMPACT = 10_000, 1_000_000, 4
#: Values that are equal in so many digits differ by the rounding of arithmetic alone.
_MOST_DIGITS: Final = 10
#: Pulsar's kB, MB and GB are powers of 1024.
_BYTES: Final = ("bytes/s", "kB/s", "MB/s", "GB/s")
#: Units of which there can be one.
_ONE: Final = {
    "brokers": "broker",
    "bundles": "bundle",
    "commands": "command",
    "connections": "connection",
    "cuts": "cut",
    "intervals": "interval",
    "intervals since then": "interval since then",
    "namespaces": "namespace",
    "points": "point",
    "rounds": "round",
    "samples": "sample",
    "sessions": "session",
    "splits": "split",
    "standard deviations": "standard deviation",
    "topics": "topic",
    "unloads": "unload",
}
#: One of several, as journalled summaries count: no digit before the 1.
_ONE_OF_MANY: Final = re.compile(r"(?<![\d.,])1 (brokers|bundles|commands|connections|splits|unloads)\b")
#: A count of something, no part of a name: a word follows it.
_LARGE: Final = re.compile(r"(?<![\w.,:/-])\d{4,}(?= [a-z])")
_IN_SECONDS: Final = re.compile(r"\bin (\d+) s$")
#: Figures of ``simulate``, ``compare`` and ``what-if``, in a line each.
FIGURE_MEANINGS: Final[Mapping[str, str]] = {
    "balance max/mean": "usage of the fullest broker over the mean, averaged over time",
    "balance sd": "standard deviation of the brokers' usage, in percentage points",
    "time over limit": "share of brokers and intervals above the limit, in percent",
    "intervals to balance": "intervals from an event until the cluster is balanced",
    "moves": "bundles that were unloaded",
    "splits": "bundles that were split",
    "failed commands": "commands that failed or have no known result",
    "moves undone": "moves whose bundle came back to the broker that it had left",
    "moves redundant": "moves that change nothing about where bundles end",
    "bundles moved twice": "moves of a bundle within 30 minutes of its move before",
    "thrash": "how much load goes back and forth; 0: it never turns",
    "connections disturbed": "producers and consumers that had to reconnect (sessions)",
    "messages disturbed": "messages that waited while a bundle moved",
}


def utc(time_ms: int) -> str:
    """*time_ms*, epoch ms, for example an interval T: 2025-01-01T00:00:00Z."""
    try:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):  # no time that a calendar has
        return f"{time_ms} ms"


def ago(now_ms: float, then_ms: float) -> str:
    """How long before *now_ms* the time *then_ms* was, in seconds, minutes, hours or days."""
    seconds = (now_ms - then_ms) / 1000
    return f"{lasting(seconds)} ago" if seconds >= 0 else f"in {lasting(-seconds)}"


def lasting(seconds: float) -> str:
    """A length of time in the largest unit of which there are two: 119 s, 2 min, 36 h, 2 days."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def duration(seconds: float) -> str:
    """A length of time in at most two units: 90 s, 50 min, 2 h 40 min, 3 days 4 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    days, hours = divmod(hours, 24)
    units = [(counted(days, "day"), days), (f"{hours} h", hours), (f"{minutes} min", minutes)]
    return " ".join([text for text, number in units if number][:2])


def counted(number: int, one: str, many: str = "") -> str:
    """*number* of what *one* names: 1 bundle, 3,000 bundles.  *many*: the plural where it does not end in s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def in_number(sentence: str) -> str:
    """*sentence*, as the summary of a journalled decision, with "1 unload" for "1 unloads", and 3,000 for 3000."""
    sentence = _LARGE.sub(lambda text: f"{int(text[0]):,}", sentence)
    sentence = sentence.replace(", 0 commands held back", ", there was nothing to do")
    return _ONE_OF_MANY.sub(lambda text: f"1 {_ONE[text[1]]}", sentence)


def amounts(values: Sequence[float], unit: str) -> list[str]:
    """Each of *values*, in *unit*, with its unit; with as many digits as tell different values apart.

    A "usage" is a fraction and is shown in percent; "bytes/s" are shown in kB/s, MB/s or GB/s where they are many.
    """
    texts, unit = _numbers(values, unit)
    return [f"{text} {_unit(text, unit)}".rstrip() for text in texts]


def compared(observed: float, limit: float | None, unit: str) -> str:
    """What was seen, and the limit if there is one: "usage 74 % against 52 %", "1,200 against 1,000 topics"."""
    values = [observed] if limit is None else [observed, limit]
    texts, texts_of = _numbers(values, unit)
    if unit == "usage":
        return f"usage {' against '.join(f'{text} %' for text in texts)}"
    if texts_of.startswith("%"):
        texts[:-1] = [f"{text} %" for text in texts[:-1]]
    return f"{' against '.join(texts)} {_unit(texts[-1], texts_of)}".rstrip()


def _numbers(values: Sequence[float], unit: str) -> tuple[list[str], str]:
    """*values* as text, and the unit in which they are given."""
    if unit == "usage":
        return _distinct([100 * value for value in values], _OF_PERCENT), "%"
    if unit == "bytes/s":
        sizes = [abs(value) for value in values if isfinite(value)]
        power = sum(any(size >= 1024**step for size in sizes) for step in range(1, len(_BYTES)))
        return _distinct([value / 1024**power for value in values], _OF_OTHERS), _BYTES[power]
    return _distinct(values, _OF_OTHERS), unit


def _distinct(values: Sequence[float], digits: int) -> list[str]:
    """*values* with *digits* significant digits, or as many more as tell different values apart."""
    for count in range(digits, _MOST_DIGITS + 1):
        texts = [_number(value, count) for value in values]
        if len(set(texts)) == len(set(values)):
            return texts
    return [_number(value, digits) for value in values]


def _number(value: float, digits: int) -> str:
    if not isfinite(value):
        return f"{value:g}"
    decimals = 0 if value == 0 else max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def _unit(number: str, unit: str) -> str:
    return _ONE.get(unit, unit) if number == "1" else in_time(unit)


def in_time(unit: str) -> str:
    """A *unit* as it is journalled, with its time as people say it: "unloads in 60 min" for "unloads in 3600 s"."""
    return _IN_SECONDS.sub(lambda seconds: f"in {lasting(int(seconds[1]))}", unit)


def compact(value: float) -> str:
    """A number of four digits at most."""
    if value >= MILLION:
        return f"{value / 1e6:.3g}M"
    return f"{value / 1e3:.3g}k" if value >= MANY else f"{value:.{_OF_COMPACT}g}"
