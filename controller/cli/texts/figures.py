"""Figures of ``simulate``, ``compare`` and ``what-if``, in few characters, and one line on each."""

import math
from collections.abc import Iterable
from typing import Final

from rich.console import Console

from controller.cli.shared.layout import print_line
from controller.offline.scenarios.compare import FigureOverSeeds
from controller.wire.readable import FIGURE_MEANINGS, MANY, MILLION, compact

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


def print_legend(out: Console, figures: Iterable[str]) -> None:
    """Print a line on each of *figures* that has a meaning."""
    for figure in figures:
        if figure in FIGURE_MEANINGS:
            print_line(out, f"{figure}: {FIGURE_MEANINGS[figure]}", style="dim")
