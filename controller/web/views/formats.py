"""Numbers, times and names as the pages write them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import quote

_RANGE: Final = re.compile(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}")
_PREFIXES: Final = ("", "k", "M", "G", "T")
#: What is written for a value that is not known.
UNKNOWN: Final = "?"
#: Resources of brokers, as people call them.
RESOURCE_NAMES: Final[Mapping[str, str]] = {
    "cpu": "CPU",
    "memory": "Heap memory",
    "directMemory": "Direct memory",
    "bandwidthIn": "Bandwidth in",
    "bandwidthOut": "Bandwidth out",
}


def clock(time_ms: int, now_ms: int) -> str:
    """A time in UTC: 14:31 today, with the date on other days, and with the year in other years.

    A time in whole seconds has them, 14:31:10, as otherwise intervals shorter than a minute look alike.
    """
    form = "%H:%M:%S" if time_ms % 60_000 and time_ms % 1000 == 0 else "%H:%M"
    try:
        at, now = (datetime.fromtimestamp(each // 1000, UTC) for each in (time_ms, now_ms))
    except (OverflowError, ValueError, OSError):  # no time that a calendar has
        return f"{time_ms} ms"
    if at.date() == now.date():
        return f"{at:{form}}"
    return f"{at.day} {at:%b} {at:{form}}" if at.year == now.year else f"{at.day} {at:%b %Y} {at:{form}}"


def clock_seconds(time_ms: int) -> str:
    """A time of the day in UTC with seconds: 14:31:22."""
    return iso(time_ms)[11:19]


def iso(time_ms: int) -> str:
    """A time for the attribute datetime: 2026-11-26T14:31:00Z."""
    try:
        return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return ""


def span(seconds: float) -> str:
    """A length of time in at most two units: 38 s, 19 min, 2 h 40 min, 3 d 4 h."""
    seconds = max(0, round(seconds))
    if seconds < 120:
        return f"{seconds} s"
    days, rest = divmod(round(seconds / 60), 1440)
    hours, minutes = divmod(rest, 60)
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return " ".join(parts[:2])


def percent(value: float | None) -> str:
    """A usage without its unit: 84, or 0.4 below one."""
    if value is None:
        return UNKNOWN
    return f"{value:.0f}" if value >= 1 or value == 0 else f"{value:.1f}"


def of_resource(name: str) -> str:
    """The resource *name* within a sentence: CPU, bandwidth in."""
    text = RESOURCE_NAMES.get(name, name)
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def whole(value: float | None) -> str:
    """A number without fraction: 12,480."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """A number with at most three digits that matter: 12.5k, 3.1M."""
    if value is None:
        return UNKNOWN
    power = 0
    while abs(value) >= 9_999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    if power == 0:
        return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.1f}"
    return f"{value:.0f}{_PREFIXES[power]}" if abs(value) >= 100 else f"{value:.1f}{_PREFIXES[power]}"


def signed(value: float) -> str:
    """A difference with a true minus sign: +4, −13."""
    text = f"{abs(value):.0f}"
    return text if text == "0" else f"{'−' if value < 0 else '+'}{text}"


def sentence(text: str) -> str:
    """*text* with a capital and a full stop."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


@dataclass(frozen=True, slots=True)
class BundleLabel:
    """A bundle as its namespace and its range, since the range is never cut."""

    whole: str
    namespace: str
    range: str

    @classmethod
    def of(cls, bundle: str) -> Self:
        """*bundle*; what does not look like one is all namespace."""
        namespace, _, hashes = bundle.rpartition("/")
        if namespace and _RANGE.fullmatch(hashes):
            return cls(bundle, namespace, hashes)
        return cls(bundle, bundle, "")


@dataclass(frozen=True, slots=True)
class BrokerNames:
    """Brokers without the beginning and the ending that all of them share; the foot of the page states both once.

    "broker-4" for "pulsar-broker-4.pulsar-headless.svc:8080": the last part before what differs stays.  Addresses lose
    their port at most, as "0.1" says nothing.
    """

    beginning: str = ""
    ending: str = ""
    #: What follows *beginning* in all names, too: left off only where there is no room, as below bars.
    kind: str = ""

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """For a cluster with these brokers.  Nothing is left off of a single one."""
        brokers = sorted(set(names))
        if len(brokers) < 2:
            return cls()
        shared = _shared_beginning([name[::-1] for name in brokers])[::-1]
        # Cut where a part of the name begins; "10.0.1.1" must not become "10.0.1".
        are_addresses = all(re.fullmatch(r"[\d.]+(:\d+)?", name) for name in brokers)
        marks = ":" if are_addresses else ".:"
        start = min((at for mark in marks if (at := shared.find(mark)) >= 0), default=len(shared))
        ending = shared[start:]
        first = _shared_beginning([name.removesuffix(ending) for name in brokers])
        first = first[: max(map(first.rfind, ".:" if are_addresses else "-.")) + 1]
        cut = 0 if are_addresses else max(map(first[:-1].rfind, "-.")) + 1
        return cls(first[:cut], ending, first[cut:])

    def label(self, broker: str) -> str:
        """*broker* as pages write it."""
        return broker.removesuffix(self.ending).removeprefix(self.beginning) or broker

    def whole(self, text: str, brokers: Iterable[str]) -> str:
        """The one of *brokers* that pages write as *text*; where there is none, *text*."""
        return next((broker for broker in brokers if self.label(broker) == text), text)

    def shortest(self, broker: str) -> str:
        """The part of *broker* that differs from the others."""
        return self.label(broker).removeprefix(self.kind) or broker


def _shared_beginning(texts: Sequence[str]) -> str:
    # Of all texts the first and the last in order differ soonest.
    first, last = min(texts), max(texts)
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:same]


def mean_of(usages: Iterable[float | None]) -> float | None:
    """The mean of those that are known; None: none is."""
    known = [usage for usage in usages if usage is not None]
    return sum(known) / len(known) if known else None


def total(counts: Mapping[str, int]) -> int:
    """The sum of all counts."""
    return sum(counts.values())


def path(name: str) -> str:
    """*name* as a part of an address; slashes stay, since bundles have them."""
    return quote(name, safe="/:@,")


#: What templates use.
FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "bundle": BundleLabel.of,
    "clock": clock,
    "clock_seconds": clock_seconds,
    "iso": iso,
    "path": path,
    "percent": percent,
    "sentence": sentence,
    "span": span,
    "whole": whole,
}
