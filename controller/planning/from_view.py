"""Makes the balance problem of a cluster: which resources count, what brokers can carry, what bundles take."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    MEMORY,
    RATE_IN,
    RATE_OUT,
    RESOURCE_WORDS,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Bools,
    ClusterView,
    Floats,
    Ints,
)
from controller.planning.objective import disturbance
from controller.planning.problem import MESSAGE_RATE, RATE_SHARE, BalanceProblem
from controller.planning.shares import Fit, fitted
from controller.planning.units import of_one_unit

#: What brokers report, by name.  Heap memory never counts: with garbage collection it says little.
_REPORTED: Final[Mapping[str, int]] = {name: column for column, name in enumerate(RESOURCE_WORDS) if column != MEMORY}
#: What follows the load on any broker.  Direct memory is mostly caches of a fixed size.
FOLLOWING: Final = (RESOURCE_WORDS[CPU], RESOURCE_WORDS[BANDWIDTH_IN], RESOURCE_WORDS[BANDWIDTH_OUT])
#: More than any broker carries; replaces values that are not finite.
_MAX_VALUE: Final = 1e15
#: A broker that reports this share of its limit may be asked for more than all of it.
_FULL: Final = 0.995
#: A fit that gives a full broker less than this share of its limit does not account for it.
_NEARLY_FULL: Final = 0.9


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
    #: What a broker with the average CPU limit may carry as a multiple of the cluster's whole message rate.  It is no
    #: limit of brokers: it spreads messages where usage does not say what bundles take.
    rate_share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MappedProblem:
    """The problem of a view, and how to get back from its rows to the view's."""

    problem: BalanceProblem
    #: (m,) row in the view's bundle table of each bundle that may move.
    rows: Ints
    #: How each reported resource that counts follows the load, by name; of times to come, as now.
    fits: Mapping[str, Fit]
    #: Resources of which it is assumed, and not known, that they follow the load.
    assumed: tuple[str, ...] = ()
    #: For how many minutes each time to come counts; they are the last of the resources.
    later: tuple[float, ...] = ()

    @property
    def now(self) -> int:
        """The number of resources that describe the present."""
        return len(self.problem.resources) - len(self.later)

    @property
    def minutes(self) -> tuple[float, ...]:
        """(R,) for how long each time to come counts; 0: it is now."""
        return (*[0.0] * self.now, *self.later)

    def without_later(self) -> "MappedProblem":
        """The same problem, in which no time to come counts."""
        problem, now = self.problem, slice(0, self.now)
        present = replace(
            problem,
            resources=problem.resources[now],
            capacity=problem.capacity[:, now],
            fixed=problem.fixed[:, now],
            size=problem.size[:, now],
        )
        return replace(self, problem=present, later=())


_NO_FITS: Final[Mapping[str, Fit]] = {}


class Later(NamedTuple):
    """A time to come: what it is called, and (bundles,) the load then as a multiple of that of now."""

    label: str
    ratio: Floats
    #: For so many minutes it counts, where a plan has to pay for itself.
    minutes: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foreseen:
    """What is known of the load besides that of now."""

    #: (bundles, 4) msg/s and bytes/s of each bundle, without bursts.
    load: Floats
    #: Of each group of times, the one at which a broker is fullest counts, in the scarcest resource.
    later: Sequence[Sequence[Later]] = ()


class _Column(NamedTuple):
    """One resource: capacity and usage of the brokers (n,), and what each bundle of the view takes (bundles,)."""

    name: str
    capacity: Floats
    usage: Floats
    size: Floats
    fit: Fit | None
    #: 0: it is of now.
    minutes: float = 0.0
    #: Whether it follows the load by caution alone.
    assumed: bool = False


def map_problem(
    view: ClusterView,
    stays: Bools,
    counted: Counted,
    foreseen: Foreseen | None = None,
    *,
    following: Collection[str] = (),
    fits: Mapping[str, Fit] = _NO_FITS,
) -> MappedProblem:
    """The problem of *view*, in which the bundles of *stays* (bundles,) do not move.

    Bundles on their way count where they were sent, and do not move.  Bundles that are being split do not move either,
    and count on all brokers alike: nobody knows yet where their parts go.  A bundle's load is that which is *foreseen*,
    and times to come are further resources; None: its short-term average, and only now counts.  Resources of
    *following*, by name, follow the load unless it is proved that they do not: a cautious fit (shares.py).  Of those in
    *fits* it is known how they follow it, from an earlier interval.
    """
    bundles, n = view.bundles, len(view.brokers)
    load = bundles.short_term if foreseen is None else foreseen.load
    reported = _reported(view, counted.weights, load, typical=foreseen is not None, following=following, fits=fits)
    columns = [*reported, *_limited(view, counted, load)]
    columns += _later(view, columns, () if foreseen is None else foreseen.later)
    sent = view.preallocated
    free = bundles.owned & ~stays
    free[sent.bundle] = False
    splits = np.array([bundles.code_of[name] for name in sorted(view.splitting)], np.int64)
    splits = np.setdiff1d(splits[bundles.owned[splits]], sent.bundle)
    free[splits] = False
    rows = np.flatnonzero(free)
    connections = (bundles.producers[rows] + bundles.consumers[rows]).astype(np.float64)
    rate = bundles.short_term[rows, RATE_IN] + bundles.short_term[rows, RATE_OUT]
    problem = BalanceProblem(
        resources=tuple(column.name for column in columns),
        capacity=np.stack([column.capacity for column in columns], axis=1) if columns else np.ones((n, 0)),
        fixed=_fixed(view, columns, rows, splits),
        size=np.stack([column.size[rows] for column in columns], axis=1) if columns else np.zeros((len(rows), 0)),
        owner=bundles.broker[rows],
        connections=connections,
        disturbance=disturbance(connections, finite(rate)),
    )
    return MappedProblem(
        problem=problem,
        rows=rows,
        fits={column.name: column.fit for column in columns if column.fit is not None},
        assumed=tuple(column.name for column in columns if column.assumed),
        later=tuple(column.minutes for column in columns if column.minutes > 0),
    )


def _fixed(view: ClusterView, columns: Sequence[_Column], rows: Ints, splits: Ints) -> Floats:
    """(n, R) what the brokers carry besides the bundles of *rows*; bundles on their way count where they were sent.

    The bundles of *splits* count on all brokers, by their capacity.
    """
    bundles, sent, n = view.bundles, view.preallocated, len(view.brokers)
    owner, owned = bundles.broker, np.flatnonzero(bundles.owned)
    there = sent.bundle[bundles.owned[sent.bundle]]
    fixed = np.zeros((n, len(columns)))
    for i, column in enumerate(columns):

        def summed(which: Ints, to: Ints, column: _Column = column) -> Floats:
            return np.bincount(to, weights=column.size[which], minlength=n).astype(np.float64)

        whole = np.maximum(column.usage, summed(owned, owner[owned]))
        remaining = whole - summed(rows, owner[rows]) - summed(there, owner[there]) + summed(sent.bundle, sent.broker)
        if len(splits):
            remaining += column.size[splits].sum() * column.capacity / column.capacity.sum() - summed(
                splits, owner[splits]
            )
        # Below 0 by rounding alone.
        fixed[:, i] = np.maximum(remaining, 0.0)
    return fixed


def unexplained(mapped: MappedProblem) -> tuple[str, ...]:
    """The resources of FOLLOWING that no load explains, if the scarcest resource of *mapped* is one of them; else none.

    Moves change nothing about such a resource, as where brokers share their hosts.
    """
    problem, fits = mapped.problem, mapped.fits
    names = [name for name in FOLLOWING if name in fits and not any(fits[name].factors)]
    capacity = problem.capacity.sum(axis=0)
    used = (problem.fixed.sum(axis=0) + problem.size.sum(axis=0)) / capacity
    return tuple(names) if len(used) and problem.resources[int(used.argmax())] in names else ()


def reported(view: ClusterView, mapped: MappedProblem) -> Floats:
    """(n, R) the usage that the brokers of *view* report, of the resources of now, as a share of the capacity.

    Infinite where it is not known: of what brokers do not report, or without a limit.
    """
    usage, limit = of_one_unit(view.brokers.usage, view.brokers.limit)
    usage = np.where(np.isfinite(limit) & (limit > 0), usage, np.inf)
    capacity = mapped.problem.capacity[:, : mapped.now]
    share = np.full(capacity.shape, np.inf)
    for column, name in enumerate(mapped.problem.resources[: mapped.now]):
        if name in _REPORTED:
            share[:, column] = usage[:, _REPORTED[name]] / capacity[:, column]
    return np.where(np.isfinite(share), share, np.inf)


def drivers(load: Floats) -> Floats:
    """(..., 3) what usage may follow, of a *load* (..., 4): msg/s in and out, bytes/s in, bytes/s out."""
    load = finite(load)
    sums = [load[..., RATE_IN] + load[..., RATE_OUT], load[..., THROUGHPUT_IN], load[..., THROUGHPUT_OUT]]
    return np.stack(sums, axis=-1)


def _later(view: ClusterView, columns: Sequence[_Column], later: Sequence[Sequence[Later]]) -> list[_Column]:
    """The scarcest of *columns* at the times *later*: of each group, the time at which a broker is fullest."""
    known = [column for column in columns if column.fit is not None]
    if not known or not later:
        return []
    of = max(known, key=lambda column: float(column.usage.sum() / column.capacity.sum()))
    n, owned = len(of.capacity), np.flatnonzero(view.bundles.owned)
    owner, size, later_columns = view.bundles.broker[owned], of.size[owned], list[_Column]()
    for group in later:
        then = []
        for one in group:
            more = np.bincount(owner, weights=size * (one.ratio[owned] - 1.0), minlength=n)
            then.append(np.maximum(of.usage + more, 0.0))
        at = int(np.argmax([float((usage / of.capacity).max(initial=0.0)) for usage in then]))
        one = group[at]
        later_columns.append(
            _Column(f"{of.name} {one.label}", of.capacity, then[at], of.size * one.ratio, of.fit, one.minutes)
        )
    return later_columns


def _reported(
    view: ClusterView,
    weights: Mapping[str, float],
    load: Floats,
    *,
    typical: bool,
    following: Collection[str],
    fits: Mapping[str, Fit],
) -> list[_Column]:
    """The resources that brokers report with a limit, and that have a weight; *load* (bundles, 4) is the bundles'.

    *typical*: usage is taken as if the bundles had this load now, and not that of this interval.  *following* and
    *fits*: as ``stated`` says.
    """
    bundles, brokers = view.bundles, view.brokers
    usages, limits = of_one_unit(brokers.usage, brokers.limit)
    now, short = drivers(bundles.load), drivers(load)
    n, owned = len(brokers), np.flatnonzero(bundles.owned)
    driven, driven_by = (
        np.stack(
            [np.bincount(bundles.broker[owned], weights=each[owned], minlength=n) for each in of.T], axis=1
        ).astype(np.float64)
        for of in (now, short)
    )
    columns = list[_Column]()
    for name, at in _REPORTED.items():
        weight, limit = weights.get(name, 0.0), limits[:, at]
        known = np.isfinite(limit) & (limit > 0)
        if weight <= 0 or not known.any():
            continue
        # A broker that reports no limit counts as small as the smallest one.
        capacity = np.where(known, limit, limit[known].min()) / weight
        usage = usages[:, at]
        # A usage that is no number counts as full: nothing is sent there.
        usage = np.where(np.isfinite(usage), np.maximum(usage, 0.0), capacity)
        if not usage.any():
            continue
        fit, usage, assumed = _followed(name, usage, np.where(known, limit, np.inf), driven, following, fits)
        if typical:
            usage = np.maximum(usage + fit.usage_of(driven_by - driven), 0.0)
        columns.append(_Column(name, capacity, usage, fit.usage_of(short), fit, assumed=assumed))
    return columns


def _followed(
    name: str,
    usage: Floats,
    limit: Floats,
    driven: Floats,
    following: Collection[str],
    fits: Mapping[str, Fit],
) -> tuple[Fit, Floats, bool]:
    """How the *usage* of a resource follows the load, what brokers are asked for, and whether that is assumed alone."""
    if name in fits:
        return fits[name], _demand(fits[name], usage, limit, driven), False
    fit, demand, _ = fitted_below_the_limit(usage, limit, driven)
    if name not in following:
        return fit, demand, False
    cautious, demand, _ = fitted_below_the_limit(usage, limit, driven, cautious=True)
    return cautious, demand, cautious != fit


def _demand(fit: Fit, usage: Floats, limit: Floats, driven: Floats) -> Floats:
    """(n,) the *usage*; of brokers at their *limit* what their load takes by *fit*, if that is more."""
    more = np.maximum(usage, fit.constant + fit.usage_of(driven))
    demand: Floats = np.where(usage < _FULL * limit, usage, more)
    return demand


def fitted_below_the_limit(
    usage: Floats, limit: Floats, driven: Floats, *, cautious: bool = False
) -> tuple[Fit, Floats, bool]:
    """How *usage* (n,) follows *driven* (n, 3), and the usage with what brokers at their *limit* are asked for besides.

    A broker that reports all of its limit may be asked for any more, so the fit is that of the others, if they are
    half.  The third value: whether the fit accounts for the brokers at their limit.  It does not where too many are
    full, or where by the others' usage they would not be full, as when those are idle.
    """
    below = usage < _FULL * limit
    if below.all() or np.count_nonzero(below) < max(2, len(usage) / 2):
        return fitted(usage, driven, cautious=cautious), usage, bool(below.all())
    fit = fitted(usage[below], driven[below], cautious=cautious)
    accounts = (fit.constant + fit.usage_of(driven) >= _NEARLY_FULL * limit)[~below].all()
    return fit, _demand(fit, usage, limit, driven), bool(accounts)


def _limited(view: ClusterView, counted: Counted, load: Floats) -> list[_Column]:
    """What has no reported limit, and one in *counted*."""
    bundles, limit = view.bundles, of_one_unit(view.brokers.usage, view.brokers.limit)[1][:, CPU]
    known = bool((np.isfinite(limit) & (limit > 0)).all())
    scale = limit * len(limit) / limit.sum() if known else np.ones(len(limit))
    rate = finite(load[:, RATE_IN] + load[:, RATE_OUT])
    sizes = (
        (MESSAGE_RATE, counted.msg_rate, rate),
        ("topics", counted.topics, bundles.topics.astype(np.float64)),
        ("sessions", counted.sessions, (bundles.producers + bundles.consumers).astype(np.float64)),
        (RATE_SHARE, counted.rate_share * float(rate[bundles.owned].sum()), rate),
    )
    none = np.zeros(len(limit))
    return [_Column(name, scale * max_value, none, size, None) for name, max_value, size in sizes if max_value > 0]


def weight(load: Floats) -> Floats:
    """(n,) one number for each *load* (n, 4): messages/s, where 1 KiB/s counts as much as a message."""
    load = finite(load)
    of_bytes = (load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]) / 1024
    return load[:, RATE_IN] + load[:, RATE_OUT] + of_bytes


def finite(values: Floats) -> Floats:
    """*values* as numbers from 0 up; what is none counts as 0."""
    clipped: Floats = np.nan_to_num(values, nan=0.0, posinf=_MAX_VALUE, neginf=0.0).clip(0.0, _MAX_VALUE)
    return clipped
