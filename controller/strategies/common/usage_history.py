"""The smoothed usage of brokers, which several strategies remember."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from controller.model.history_column import HistoryColumn
from controller.model.load import Bools, Floats, Ints
from controller.model.strategy_memory import StrategyMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory(StrategyMemory):
    """The smoothed resource usage of each broker, by name (fraction, 1.0 = 100 %)."""

    kind: ClassVar[str] = "usage_history"
    usage: Mapping[str, float] = field(default_factory=dict)

    def smoothed(
        self,
        names: tuple[str, ...],
        usage: Floats,
        history_fraction: float,
        *,
        rows: Ints | slice = slice(None),
        restarted: Bools | None = None,
    ) -> tuple[Floats, Self]:
        """Update the averages of *names*, or of those at *rows*: ``f * history + (1 - f) * usage``.

        f is *history_fraction*.  *usage*, *restarted* and the result are (rows,); usages are fractions.  The first
        sample initialises a broker's average, and so does the first one after a restart.  Brokers at other rows keep
        theirs.  Pulsar: updateAvgResourceUsage.
        """
        column = HistoryColumn.of(self.usage, names)
        goes_on = column.known[rows] if restarted is None else column.known[rows] & ~restarted
        with np.errstate(invalid="ignore"):
            smoothed = np.where(
                goes_on, column.numbers[rows] * history_fraction + (1 - history_fraction) * usage, usage
            )
        return smoothed, type(self)(usage=column.with_numbers(rows, smoothed))

    def of(self, names: tuple[str, ...]) -> tuple[Floats, Bools]:
        """(n,) the averages of *names*, and (n,) whether each has one."""
        column = HistoryColumn.of(self.usage, names)
        return column.numbers, column.known

    def keep_brokers(self, brokers: Sequence[str]) -> Self:
        """Forget brokers that left.  Pulsar: onActiveBrokersChange."""
        active = set(brokers)
        return type(self)(usage={name: each for name, each in self.usage.items() if name in active})

    def shift_usage(self, shares: Mapping[str, float]) -> Self:
        """The averages, off by *shares*."""
        return type(self)(usage=shifted(self.usage, shares))


def shifted(usage: Mapping[str, float], shares: Mapping[str, float]) -> dict[str, float]:
    """*usage* of brokers, off by *shares*; both are fractions."""
    return {name: max(0.0, each + shares.get(name, 0.0)) for name, each in usage.items()}
