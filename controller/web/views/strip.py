"""The strip of brokers: bars of their usage now, the fullest first.  Lengths are percent of the height."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.web.store.values import BrokerNow, BrokerStates
from controller.web.views.formats import BrokerNames, of_resource, percent

#: So many brokers are bars with figures below them, so many more are bars, and beyond it is a curve.
_WITH_FIGURES: Final = 16
_BARS: Final = 64
_HIGHEST: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One broker.  x and widths are percent of the strip."""

    broker: str
    label: str
    shortest: str
    #: What a pointer or a reader is given: "broker-4: 84 % cpu, forecast 71 %".
    title: str
    x: float
    width: float
    usage: float | None
    forecast: float | None
    figure: str
    #: "", above (the goal), over (the limit) or no-data.
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """All brokers in one picture."""

    bars: tuple[Bar, ...]
    #: Above _BARS brokers instead of bars: SVG paths in a box of 1,000 x 100.
    curve: str
    forecast_curve: str
    with_figures: bool
    limit: float | None
    goal: float | None
    without_data: int
    #: Brokers of the cluster that the summary has no room for.
    not_listed: int
    has_forecast: bool
    #: What the curve says, for readers.
    summary: str


def strip(brokers: BrokerStates, names: BrokerNames) -> Strip:
    """The strip of *brokers*."""
    nodes = brokers.brokers
    count = len(nodes)
    is_curve = count > _BARS
    bars = () if is_curve else tuple(_bar(node, at, count, brokers, names) for at, node in enumerate(nodes))
    with_data = [node for node in nodes if node.fullest_usage is not None]
    fullest = with_data[0] if with_data else None
    summary = (
        f"{count:,} brokers by usage: the fullest {names.label(fullest.name)} with {percent(fullest.fullest_usage)} %,"
        f" the median {percent(with_data[len(with_data) // 2].fullest_usage)} %,"
        f" the emptiest {percent(with_data[-1].fullest_usage)} %"
        if fullest is not None
        else f"{count:,} brokers, none with data"
    )
    return Strip(
        bars=bars,
        curve=_area(nodes) if is_curve else "",
        forecast_curve=_line(nodes) if is_curve else "",
        with_figures=count <= _WITH_FIGURES,
        limit=_inside(brokers.limit),
        goal=_inside(brokers.goal),
        not_listed=brokers.not_listed,
        without_data=count - len(with_data),
        has_forecast=any(node.forecast is not None for node in nodes),
        summary=summary,
    )


def _inside(bound: float | None) -> float | None:
    """*bound*, where the strip has a place for it."""
    return None if bound is None or bound > _HIGHEST else bound


def level(usage: float | None, goal: float | None, limit: float | None) -> str:
    """How a usage stands: "", above (the goal), over (the limit) or no-data."""
    if usage is None:
        return "no-data"
    if limit is not None and usage > limit:
        return "over"
    return "above" if goal is not None and usage > goal else ""


def _bar(node: BrokerNow, at: int, count: int, brokers: BrokerStates, names: BrokerNames) -> Bar:
    usage = node.fullest_usage
    forecast = "" if node.forecast is None else f", forecast {percent(node.forecast)} %"
    state = f"{percent(usage)} % {of_resource(node.fullest)}{forecast}" if usage is not None else "no data"
    return Bar(
        broker=node.name,
        label=names.label(node.name),
        shortest=names.shortest(node.name),
        title=f"{names.label(node.name)}: {state}{', drained' if node.drained else ''}",
        x=100 * at / count,
        width=100 / count,
        usage=None if usage is None else min(100.0, max(0.0, usage)),
        forecast=None if node.forecast is None else min(100.0, max(0.0, node.forecast)),
        figure=percent(usage),
        level=level(usage, brokers.goal, brokers.limit),
    )


def _area(nodes: Sequence[BrokerNow]) -> str:
    """The curve as a closed SVG path of steps."""
    step = 1000 / max(1, len(nodes))
    steps = "".join(f"V{100 - min(100.0, node.fullest_usage or 0.0):.1f}h{step:g}" for node in nodes)
    return f"M0 100{steps}V100z"


def _line(nodes: Sequence[BrokerNow]) -> str:
    step = 1000 / max(1, len(nodes))
    parts: list[str] = []
    last = -1
    for at, node in enumerate(nodes):
        if node.forecast is None:
            continue
        y = f"{100 - min(100.0, node.forecast):.1f}"
        parts.append(f"V{y}h{step:g}" if parts and last == at - 1 else f"M{at * step:g} {y}h{step:g}")
        last = at
    return "".join(parts)
