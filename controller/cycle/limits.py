"""The limits of the guardrails as one value.

The defaults here limit nothing; the defaults of ``[guardrails]`` in trimtab.toml are for a production cluster.
"""

from dataclasses import dataclass, field
from typing import Final

_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many commands and connections may be issued in a span of time; None: no limit.

    Connections: producers plus consumers of bundles that are unloaded, also those unloaded after a split.
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
    """All limits of the guardrails; None: no limit."""

    #: In one interval, and in the rolling window that ends with it.
    interval: Budget = field(default_factory=Budget)
    window: Budget = field(default_factory=Budget)
    #: Length of the rolling window, for budgets and for the breaker.
    window_ms: int = _HOUR_MS
    #: Commands without a result, in the whole cluster and for each broker (as source or as destination).
    in_flight: int | None = None
    in_flight_per_broker: int | None = None
    #: The breaker trips at this many failures without a success between them, or this many in the rolling window.
    failures_in_a_row: int | None = None
    failures_in_window: int | None = None
    #: No commands for this many intervals, from the one in which a broker joined or left; 0: no freeze.
    freeze_intervals: int = 0
    #: If more than this share of the brokers has no data, nothing is issued: the data or the network is broken.
    freeze_share: float = 1.0
    #: Bundles that may go to a broker before it has listed one that was moved to it; later twice as many may be on
    #: their way at once, or a tenth of those that it has listed.
    unproven_bundles: int | None = None
    #: A move is unconfirmed if its destination has not listed the bundle after this many intervals (and minutes).
    confirm_intervals: int | None = None
    #: The breaker trips at this many brokers with unconfirmed moves.
    unconfirmed_brokers: int | None = None
    #: Whether bundles may move or split if no namespace_state record describes their namespace.
    move_undescribed: bool = True
    #: For so many intervals the switches of a broker's own balancing are believed after they were last known, in mode
    #: active; then nothing is issued.  None: without limit, also where they were never known.
    balancing_unknown_intervals: int | None = None
