"""What PeakShedder does as one input changes in small steps: connections disturbed, time over the limit, balance.

A step up or down in these curves would be a cliff: a rule that decides by a constant.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import numpy as np

from controller.offline.scenarios.figures import figures_of
from controller.offline.scenarios.shipped import shipped, strategy_options
from controller.offline.scenarios.simulate import simulate, variant_of
from controller.settings.scenario import Scenario

#: Six brokers, of which one is away for a while, or one topic gets hot; usage is noisy, and load drifts.
_CLUSTER: Final[Mapping[str, Any]] = {
    "title": "a sweep",
    "intervals": 150,
    "brokers": [{"count": 6}],
    "namespaces": [{"name": "acme/orders", "bundles": 90, "topics": 600, "zipf": 0.3}],
    "broker_conf": {"loadBalancerDistributeBundlesEvenlyEnabled": False},
    "decisions": {"split": False},
}
_LOAD: Final = {"msg_rate": 300_000, "drift_percent": 1}
_HARDWARE: Final = {"cpu_percent": 45, "network_percent": 20, "noise_percent": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input that a sweep changes: what it is, its values from 0 on up to *most*, and the cluster with one."""

    meaning: str
    most: float
    changed: Callable[[float], Mapping[str, Any]]


INPUTS: Final[Mapping[str, Input]] = {
    "away": Input(
        meaning="minutes that a broker is away",
        most=100,
        changed=lambda value: {"restarts": [{"at": 5, "brokers": [3], "down": max(1, round(value))}]},
    ),
    "hot": Input(
        meaning="percent of the load that a topic gets",
        most=25,
        changed=lambda value: {"hot_topics": [{"at": 5, "percent": value}]} if value else {},
    ),
    "drift": Input(
        meaning="drift of the load, percent an interval",
        most=5,
        changed=lambda value: {"load": {**_LOAD, "drift_percent": value}},
    ),
    "noise": Input(
        meaning="noise of the usage, percent",
        most=5,
        changed=lambda value: {"hardware": {**_HARDWARE, "noise_percent": value}},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The figures of one value, means over scenarios and seeds."""

    input: str
    value: float
    connections: float
    over_limit_percent: float
    balance: float


def sweep(name: str, steps: int, seeds: int, conf: Mapping[str, str]) -> Iterator[Step]:
    """The input *name* in so many *steps*, each with so many *seeds*, of PeakShedder with the options *conf*."""
    for value in np.linspace(0, INPUTS[name].most, steps).tolist():
        runs = [_figures(_with(INPUTS[name].changed(value)), seed, conf) for seed in range(1, seeds + 1)]
        disturbed, over, balance = np.mean(runs, axis=0).tolist()
        yield Step(input=name, value=value, connections=disturbed, over_limit_percent=over, balance=balance)


def front(option: str, values: Sequence[float], seeds: int) -> Iterator[Step]:
    """The scenarios that come with trimtab, for each of *values* of an option of PeakShedder."""
    for value in values:
        conf = {option: f"{value:g}"}
        runs = [_figures(each, each.seed + seed, conf) for _, each in shipped() for seed in range(seeds)]
        disturbed, over, balance = np.mean(runs, axis=0).tolist()
        yield Step(input=option, value=value, connections=disturbed, over_limit_percent=over, balance=balance)


def _with(changed: Mapping[str, Any]) -> Scenario:
    return Scenario.model_validate({**_CLUSTER, "load": _LOAD, "hardware": _HARDWARE, **changed}, strict=False)


def _figures(scenario: Scenario, seed: int, conf: Mapping[str, str]) -> tuple[float, float, float]:
    variant = variant_of(scenario, strategy={**strategy_options("PeakShedder"), **conf})
    found = figures_of(scenario, simulate(scenario, variant, seed))
    return found["connections disturbed"], found["time over limit"], found["balance max/mean"]


#: Of a picture, in pixels: one chart beside the other.
_WIDTH, _HEIGHT, _MARGIN = 250, 150, 40


def picture(title: str, charts: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """An SVG with a chart for each of *charts*: a label, and points; *title* is under them."""
    parts = [_chart(_MARGIN + at * (_WIDTH + _MARGIN), label, points) for at, (label, points) in enumerate(charts)]
    wide, high = _MARGIN + len(charts) * (_WIDTH + _MARGIN), _HEIGHT + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11">'
        f'<rect width="{wide}" height="{high}" fill="#fff"/>{"".join(parts)}'
        f'<text x="{wide / 2}" y="{high - 8}" text-anchor="middle">{escape(title)}</text></svg>\n'
    )


def _chart(left: float, label: str, points: Sequence[tuple[float, float]]) -> str:
    x, y = np.array(points, np.float64).T
    low, top = min(0.0, float(x.min())), float(y.max()) * 1.1 or 1.0
    right = left + (x - low) / max(float(x.max()) - low, 1e-9) * _WIDTH
    down = _MARGIN / 2 + (1 - y / top) * _HEIGHT
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="#06c"/>' for a, b in zip(right, down, strict=True))
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(right, down, strict=True))
    bottom = _MARGIN / 2 + _HEIGHT
    return (
        f'<path d="M{left} {_MARGIN / 2}V{bottom}H{left + _WIDTH}" fill="none" stroke="#888"/>'
        f'<polyline points="{line}" fill="none" stroke="#06c"/>{dots}'
        f'<text x="{left}" y="12">{escape(label)}</text><text x="{left - 4}" y="{_MARGIN / 2 + 12}" text-anchor="end">'
        f'{top:.3g}</text><text x="{left - 4}" y="{bottom}" text-anchor="end">0</text>'
        f'<text x="{left}" y="{bottom + 14}">{low:g}</text>'
        f'<text x="{left + _WIDTH}" y="{bottom + 14}" text-anchor="end">{float(x.max()):.3g}</text>'
    )
