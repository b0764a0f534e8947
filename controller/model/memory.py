"""What is carried from one cycle to the next, and journalled with each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Literal, Self, TypeAlias

import numpy as np

from controller.model.load import Bools, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMemory:
    """The memory of a strategy that has none."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """A broker's smoothed resource usage (fraction, 1.0 = 100 %), by name."""

    kind: Literal["usage_history"] = "usage_history"
    usage: Mapping[str, float] = field(default_factory=dict)

    def smoothed(
        self, names: tuple[str, ...], usage: Floats, history_fraction: float, restarted: Bools | None = None
    ) -> tuple[Floats, Self]:
        """Move the history of *names* by one *usage* each: ``history_fraction * history + the rest * usage``.

        (n,) fractions in and out.  A broker without history, or *restarted*, begins with its usage; brokers that are
        not among *names* keep theirs.  Pulsar: updateAvgResourceUsage.
        """
        history = np.fromiter(map(self.usage.get, names, repeat(np.nan)), np.float64, len(names))
        begins = np.isnan(history)
        if begins.any():  # a history can be NaN as well: then Pulsar keeps it
            begins = np.array([name not in self.usage for name in names])
        if restarted is not None:
            begins = begins | restarted
        with np.errstate(invalid="ignore"):
            smoothed = np.where(begins, usage, history * history_fraction + (1 - history_fraction) * usage)
        moved = dict(self.usage)
        moved.update(zip(names, smoothed.tolist(), strict=True))
        return smoothed, type(self)(usage=moved)

    def only(self, names: tuple[str, ...]) -> Self:
        """Forget brokers that are not in *names*.  Pulsar: onActiveBrokersChange."""
        keep = set(names)
        return type(self)(usage={k: v for k, v in self.usage.items() if k in keep})


#: Every kind of memory a strategy can have; ``kind`` tells them apart in the journal.
StrategyMemory: TypeAlias = NoMemory | UsageHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A command whose result has not come back yet."""

    action: str
    bundle: str
    source: str
    destination: str
    interval: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The controller's memory between cycles; a new cluster starts with ``Memory(seed=...)``."""

    seed: int = 0
    #: The last T decided, epoch ms; None before the first.
    last_interval: int | None = None
    #: Closed intervals seen without a gap; commands wait until there are enough.
    samples: int = 0
    shedder: StrategyMemory = field(default_factory=NoMemory)
    placement: StrategyMemory = field(default_factory=NoMemory)
    split: StrategyMemory = field(default_factory=NoMemory)
    #: Bundle -> T at which it was last unloaded.
    recently_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Command id -> the command under way.
    in_flight: Mapping[str, InFlight] = field(default_factory=dict)
