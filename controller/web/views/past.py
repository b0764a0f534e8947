"""Bundles, brokers and namespaces over time: charts as SVG, and what was done to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.web.store.values import IssuedCommand, OwnedSpan, Series
from controller.web.views.chips import Chip, outcome_chips, reason_chip
from controller.web.views.formats import BrokerNames, BundleLabel, percent, short

#: The box that paths are drawn in.
_WIDTH: Final = 1000.0
_HEIGHT: Final = 100.0
#: A path has so many points at most: more than a screen has pixels help nobody.
_POINTS: Final = 1_000
#: A label needs so much of the width, percent.
_LABEL: Final = 9.0
_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000
#: Between two times below a chart, of which it has so many at most.
_STEPS_MS: Final = (*(each * _MINUTE_MS for each in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360)), _DAY_MS)
_TICKS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTime:
    """A time below a chart; x is percent of the width."""

    x: float
    #: Epoch ms.
    at: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """Who owned it; x and width are percent of the width."""

    owner: str
    label: str
    x: float
    width: float
    is_present: bool
    is_odd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Load over time, in a box of 1,000 x 100; owners below it."""

    path: str
    top: str
    words: str
    ticks: tuple[AxisTime, ...]
    owners: tuple[Owned, ...]
    #: Commands, percent of the width.
    marks: tuple[float, ...]
    #: A horizontal line, percent of the height from the top; None: none.
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A command in a table."""

    interval: int
    bundle: BundleLabel
    action: str
    source: str
    destination: str
    reason: Chip
    chips: tuple[Chip, ...]


def chart(
    series: Series,
    name: str,
    since_ms: int,
    until_ms: int,
    names: BrokerNames,
    *,
    unit: str = "/s",
    owners: Sequence[OwnedSpan] = (),
    commands: Iterable[IssuedCommand] = (),
    limit: float | None = None,
    top: float | None = None,
) -> Chart:
    """The values *name* of *series* from *since_ms* to *until_ms*.  *top*: the fixed end of the scale."""
    values = series.values.get(name, np.zeros(0))
    known = values[~np.isnan(values)] if len(values) else values
    highest = float(known.max()) if known.size else 0.0
    scale = top if top is not None else highest or 1.0
    long = max(1, until_ms - since_ms)
    written = percent if unit == "%" else short
    return Chart(
        path=_path(series.at, values, since_ms, long, scale),
        top=f"up to {written(highest)} {unit}" if known.size else "no data",
        words=f"highest {written(highest)} {unit}, last {written(float(known[-1]))} {unit}"
        if known.size
        else "no data",
        ticks=_ticks(since_ms, until_ms),
        owners=_owned(owners, since_ms, until_ms, names),
        marks=tuple(
            round(100 * (command.interval - since_ms) / long, 2)
            for command in commands
            if since_ms <= command.interval < until_ms
        ),
        limit=None if limit is None else round(100 - 100 * min(1.0, limit / scale), 1),
    )


def _path(at: NDArray[np.int64], values: NDArray[np.float64], since: int, long: int, scale: float) -> str:
    """The area below the values; it is interrupted where there is no data."""
    fold = -(-len(values) // _POINTS) if len(values) else 1
    parts: list[str] = []
    run: list[tuple[float, float]] = []
    for begin in range(0, len(values), fold):
        chunk = values[begin : begin + fold]
        known = chunk[~np.isnan(chunk)]
        if not known.size:
            parts.append(_area(run))
            run = []
            continue
        x = _WIDTH * (int(at[begin]) - since) / long
        run.append((x, _HEIGHT - _HEIGHT * min(1.0, float(known.max()) / scale)))
    parts.append(_area(run))
    return "".join(parts)


def _area(points: Sequence[tuple[float, float]]) -> str:
    if not points:
        return ""
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{points[0][0]:.1f} {_HEIGHT:.0f}L{line}L{points[-1][0]:.1f} {_HEIGHT:.0f}z"


def _ticks(since_ms: int, until_ms: int) -> tuple[AxisTime, ...]:
    """Times in UTC: the begins of days, or of shorter steps where there are not two of them."""
    long = max(1, until_ms - since_ms)
    step = next((each for each in _STEPS_MS if long / each <= _TICKS), _STEPS_MS[-1])
    made = []
    for at in range((since_ms // step + 1) * step, until_ms, step):
        x, time = round(100 * (at - since_ms) / long, 2), datetime.fromtimestamp(at / 1000, UTC)
        if x <= 100 - _LABEL / 2:
            text = f"{time:%a} {time.day} {time:%b}" if step >= _DAY_MS else f"{time:%H:%M}"
            made.append(AxisTime(x=x, at=at, text=text))
    return tuple(made)


def _owned(owners: Sequence[OwnedSpan], since_ms: int, until_ms: int, names: BrokerNames) -> tuple[Owned, ...]:
    long, made = max(1, until_ms - since_ms), []
    for number, each in enumerate(owners):
        begin, end = max(since_ms, each.since_ms), min(until_ms, each.until_ms)
        if end <= begin or not each.owner:
            continue
        width = 100 * (end - begin) / long
        made.append(
            Owned(
                owner=each.owner,
                label=names.label(each.owner) if width >= _LABEL else "",
                x=round(100 * (begin - since_ms) / long, 2),
                width=round(width, 2),
                is_present=number == len(owners) - 1,
                is_odd=number % 2 == 1,
            )
        )
    return tuple(made)


def command_lines(commands: Sequence[IssuedCommand], limit: int) -> tuple[CommandLine, ...]:
    """The newest *limit* of *commands*."""
    newest = sorted(commands, key=lambda command: -command.interval)[:limit]
    return tuple(
        CommandLine(
            interval=command.interval,
            bundle=BundleLabel.of(command.bundle),
            action=command.action,
            source=command.source,
            destination=command.destination,
            reason=reason_chip(command.why.reason),
            chips=outcome_chips(command),
        )
        for command in newest
    )
