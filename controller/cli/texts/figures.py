"""Figures of ``simulate``, ``compare`` and ``what-if``, in few characters, and one line on each."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from rich.console import Console

from controller.cli.shared.layout import print_line
from controller.offline.scenarios.compare import FigureOverSeeds
from controller.wire.readable import MANY, MILLION, compact

#: Significant digits.
_DIGITS: Final = 4


def mean_text(figure: FigureOverSeeds) -> str:
    """The mean with its margin, as few characters as four strategies leave in 80 columns."""
    if not figure.margin:
        return compact(figure.mean)
    size = max(figure.mean, figure.margin)
    unit = "M" if size >= MILLION else "k" if size >= MANY else ""
    scale = {"M": 1e6, "k": 1e3, "": 1.0}[unit]
    digits = _DIGITS - len(unit)
    decimals = max(0, digits - 1 - max(0, math.floor(math.log10(size / scale))))
    return f"{figure.mean / scale:.{decimals}f}{unit} ±{figure.margin / scale:.{decimals}f}{unit}"


MEANINGS: Final[Mapping[str, str]] = {
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


def print_legend(out: Console, figures: Iterable[str]) -> None:
    """Print a line on each of *figures* that has a meaning."""
    for figure in figures:
        if figure in MEANINGS:
            print_line(out, f"{figure}: {MEANINGS[figure]}", style="dim")
