"""What an operator allows at most: the guardrails' limits as one value.

The defaults limit nothing.  Those of a production cluster are the defaults of ``[guardrails]`` in trimtab.toml.
"""

from dataclasses import dataclass, field
from typing import Final

_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be issued in a span of time; None: any number.

    Connections are the producers and consumers of a bundle that is unloaded, or split and then unloaded.
    """

    unloads: int | None = None
    unloads_per_source: int | None = None
    unloads_per_destination: int | None = None
    unloads_per_namespace: int | None = None
    splits: int | None = None
    splits_per_source: int | None = None
    splits_per_namespace: int | None = None
    connections: int | None = None
    connections_per_source: int | None = None
    connections_per_destination: int | None = None
    connections_per_namespace: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """All limits of the guardrails; None: none."""

    #: In one interval, and in the window that ends with it.
    interval: Budget = field(default_factory=Budget)
    window: Budget = field(default_factory=Budget)
    #: How long the window is, for budgets and for the breaker.
    window_ms: int = _HOUR_MS
    #: Commands without a result, in the whole cluster and for each broker (as source or as destination).
    in_flight: int | None = None
    in_flight_per_broker: int | None = None
    #: The breaker trips at so many failed commands without a success between them, or so many in the window.
    failures_in_a_row: int | None = None
    failures_in_window: int | None = None
    #: Nothing is issued for so many intervals, beginning with the one in which a broker came or went; 0: never.
    freeze_intervals: int = 0
    #: Whether bundles may be touched whose namespace no record describes.
    move_undescribed: bool = True
