"""Makes the balance problem of a cluster: which resources count, what brokers can carry, what bundles take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Bools,
    ClusterView,
    Floats,
    Ints,
)
from controller.planning.objective import disturbance
from controller.planning.problem import BalanceProblem
from controller.planning.shares import Fit, fitted

#: What brokers report, by name.  Heap memory never counts: with garbage collection it says little.
_REPORTED: Final[Mapping[str, int]] = {
    "cpu": CPU,
    "direct memory": DIRECT_MEMORY,
    "bandwidth in": BANDWIDTH_IN,
    "bandwidth out": BANDWIDTH_OUT,
}
#: More than any broker carries: what is not finite is taken for this.
_MOST: Final = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Which resources count, and how much."""

    #: Weight of each reported resource, by name; 0 excludes it.
    weights: Mapping[str, float]
    #: What a broker with the average CPU limit may carry of what has no reported limit; others in proportion to theirs.
    #: msg/s in and out; topics; producers and consumers.  0: does not count.
    msg_rate: float = 0.0
    topics: float = 0.0
    sessions: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatedProblem:
    """The problem of a view, and how to get back from its rows to the view's."""

    problem: BalanceProblem
    #: (m,) row in the view's bundle table of each bundle that may move.
    rows: Ints
    #: How each reported resource that counts follows the load, by name.
    fits: Mapping[str, Fit]


class _Column(NamedTuple):
    """One resource: capacity and usage of the brokers (n,), and what each bundle of the view takes (bundles,)."""

    name: str
    capacity: Floats
    usage: Floats
    size: Floats
    fit: Fit | None


def stated(view: ClusterView, stays: Bools, counted: Counted) -> StatedProblem:
    """The problem of *view*, in which the bundles of *stays* (bundles,) do not move.

    Bundles on their way count where they were sent, and do not move.  A bundle's load is its short-term average.
    """
    bundles, brokers = view.bundles, view.brokers
    n = len(brokers)
    columns = [*_reported(view, counted.weights), *_limited(view, counted)]
    sent = view.preallocated
    free = bundles.owned & ~stays
    free[sent.bundle] = False
    rows = np.flatnonzero(free)
    owner, owned = bundles.broker, np.flatnonzero(bundles.owned)
    fixed, size = np.zeros((n, len(columns))), np.zeros((len(rows), len(columns)))
    for i, column in enumerate(columns):

        def summed(which: Ints, to: Ints, column: _Column = column) -> Floats:
            return np.bincount(to, weights=column.size[which], minlength=n).astype(np.float64)

        size[:, i] = column.size[rows]
        whole = np.maximum(column.usage, summed(owned, owner[owned]))
        there = sent.bundle[bundles.owned[sent.bundle]]
        left = whole - summed(rows, owner[rows]) - summed(there, owner[there]) + summed(sent.bundle, sent.broker)
        # Below 0 by rounding alone.
        fixed[:, i] = np.maximum(left, 0.0)
    connections = (bundles.producers[rows] + bundles.consumers[rows]).astype(np.float64)
    rate = bundles.short_term[rows, RATE_IN] + bundles.short_term[rows, RATE_OUT]
    problem = BalanceProblem(
        resources=tuple(column.name for column in columns),
        capacity=np.stack([column.capacity for column in columns], axis=1) if columns else np.ones((n, 0)),
        fixed=fixed,
        size=size,
        owner=owner[rows],
        connections=connections,
        disturbance=disturbance(connections, _finite(rate)),
    )
    fits = {column.name: column.fit for column in columns if column.fit is not None}
    return StatedProblem(problem=problem, rows=rows, fits=fits)


def drivers(load: Floats) -> Floats:
    """(..., 3) what usage may follow, of a *load* (..., 4): msg/s in and out, bytes/s in, bytes/s out."""
    load = _finite(load)
    found = [load[..., RATE_IN] + load[..., RATE_OUT], load[..., THROUGHPUT_IN], load[..., THROUGHPUT_OUT]]
    return np.stack(found, axis=-1)


def _reported(view: ClusterView, weights: Mapping[str, float]) -> list[_Column]:
    """The resources that brokers report with a limit, and that have a weight."""
    bundles, brokers = view.bundles, view.brokers
    now, short = drivers(bundles.load), drivers(bundles.short_term)
    n, owned = len(brokers), np.flatnonzero(bundles.owned)
    columns = [np.bincount(bundles.broker[owned], weights=of[owned], minlength=n) for of in now.T]
    driven, found = np.stack(columns, axis=1).astype(np.float64), list[_Column]()
    for name, at in _REPORTED.items():
        weight, limit = weights.get(name, 0.0), brokers.limit[:, at]
        known = np.isfinite(limit) & (limit > 0)
        if weight <= 0 or not known.any():
            continue
        # A broker that reports no limit counts as small as the smallest one.
        capacity = np.where(known, limit, limit[known].min()) / weight
        usage = brokers.usage[:, at]
        # A usage that is no number counts as full: nothing is sent there.
        usage = np.where(np.isfinite(usage), np.maximum(usage, 0.0), capacity)
        if not usage.any():
            continue
        fit = fitted(usage, driven)
        # Added in a fixed order, so that every machine finds the same bits.
        size = short[:, 0] * fit.factors[0] + short[:, 1] * fit.factors[1] + short[:, 2] * fit.factors[2]
        found.append(_Column(name, capacity, usage, size, fit))
    return found


def _limited(view: ClusterView, counted: Counted) -> list[_Column]:
    """What has no reported limit, and one in *counted*."""
    bundles, limit = view.bundles, view.brokers.limit[:, CPU]
    even = bool((np.isfinite(limit) & (limit > 0)).all()) and len(limit) > 0
    scale = limit / (float(limit.sum()) / len(limit)) if even else np.ones(len(limit))
    rate = _finite(bundles.short_term[:, RATE_IN] + bundles.short_term[:, RATE_OUT])
    sizes = (
        ("message rate", counted.msg_rate, rate),
        ("topics", counted.topics, bundles.topics.astype(np.float64)),
        ("sessions", counted.sessions, (bundles.producers + bundles.consumers).astype(np.float64)),
    )
    none = np.zeros(len(limit))
    return [_Column(name, scale * most, none, size, None) for name, most, size in sizes if most > 0]


def _finite(values: Floats) -> Floats:
    found: Floats = np.nan_to_num(values, nan=0.0, posinf=_MOST, neginf=0.0).clip(0.0, _MOST)
    return found
