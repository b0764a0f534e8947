"""What is carried from one cycle to the next, and journalled with each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np

from controller.model.load import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMemory:
    """The memory of a strategy that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """A broker's smoothed resource usage (fraction, 1.0 = 100 %), by name."""

    usage: Mapping[str, float] = field(default_factory=dict)

    def of(self, names: tuple[str, ...]) -> Floats:
        """One usage a broker of *names*; NaN where there is no history."""
        return np.array([self.usage.get(name, np.nan) for name in names], dtype=np.float64)

    def with_usage(self, names: tuple[str, ...], usage: Floats) -> Self:
        """This history with *usage* put in for *names*; other brokers keep theirs."""
        return type(self)(usage={**self.usage, **dict(zip(names, usage.tolist(), strict=True))})

    def only(self, names: tuple[str, ...]) -> Self:
        """Forget brokers that are not in *names*.  Pulsar: onActiveBrokersChange."""
        keep = set(names)
        return type(self)(usage={k: v for k, v in self.usage.items() if k in keep})


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
    #: Bundle -> T at which it was last unloaded.
    recently_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Command id -> the command under way.
    in_flight: Mapping[str, InFlight] = field(default_factory=dict)
