"""How the usage of brokers follows the load of their bundles, fitted on a recording; and how far off that is.

The model is linear: usage = constant + factors * load, with factors of 0 or more (controller.planning.shares).  One
model is fitted for each class of machines: brokers that report the same limits.  A broker gets a model of its own where
that is clearly better.  What-if uses the factors only: a broker's usage is the recorded one, plus the factors times the
load that the replay adds or takes.  So whatever else a broker does stays as it was, and a broker whose bundles are the
recorded ones has exactly the recorded usage.

The error is measured on intervals that the fit did not see: each fifth of the recording is predicted from the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import RESOURCE_WORDS, Bools, Floats, Ints
from controller.planning.shares import Fit, fitted

#: What usage is explained by: msg/s in and out, bytes/s in and out, producers and consumers.
DRIVERS: Final = ("msg/s in", "msg/s out", "bytes/s in", "bytes/s out", "sessions")
_FOLDS: Final = 5
#: A report this near to its limit, or above it, may hide that more was asked for.
_SATURATED: Final = 0.995
#: What is further from the fit than so many times the typical distance is left out, and the rest is fitted again.
_OUTLIER: Final = 5.0
#: A broker has a model of its own where its error is below this share of its class's, from so many intervals on.
_CLEARLY: Final = 0.8
_MIN_BROKERS: Final = 20
#: Brokers with models of their own, at most; and a class's error, a fraction of the limit, from which they are tried.
_MAX_OWN: Final = 100
_WORTHWHILE: Final = 0.005
#: The reported error is this percentile of all errors.
_PERCENTILE: Final = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFit:
    """How one resource of some brokers follows their load."""

    resource: str
    #: The machine class, as its limits, or the one broker.
    of: str
    brokers: int
    #: (DRIVERS,) usage, a fraction of the limit, for one unit of each driver; 0 or more.
    factors: tuple[float, ...]
    #: What is used without any bundle, a fraction of the limit.
    constant: float
    #: Fractions of the limit: nine of ten held-out errors are below; and the same if usage were taken for constant.
    error: float
    error_of_constant: float
    #: Broker-intervals that were fitted.
    samples: int

    @property
    def follows_load(self) -> bool:
        """Whether load tells more of it than a constant does."""
        return self.error < self.error_of_constant


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UsageModel:
    """See the module docstring."""

    #: All fits, those of classes first.
    fits: tuple[ResourceFit, ...]
    #: Broker -> (5, DRIVERS) factors, and (5,) errors; both as fractions of the limit.
    factors: Mapping[str, Floats]
    errors: Mapping[str, Floats]

    def added(self, broker: str, load: Floats) -> Floats:
        """(5,) usage, fractions of the limits, that *load* (DRIVERS,) adds on *broker*; 0 of one that is not known."""
        factors = self.factors.get(broker)
        return np.zeros(len(RESOURCE_WORDS)) if factors is None else np.asarray(factors @ load, np.float64)

    def error(self, broker: str) -> Floats:
        """(5,) how far off a broker's usage may be, fractions of the limits; 0 of one that is not known."""
        return self.errors.get(broker, np.zeros(len(RESOURCE_WORDS)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UsageSamples:
    """Brokers in intervals, a row each."""

    #: (n,) number of the interval, and the broker's row in ``brokers``.
    interval: Ints
    broker: Ints
    brokers: tuple[str, ...]
    #: (n, DRIVERS), and (n, 5) usage and limit as reported.
    drivers: Floats
    usage: Floats
    limit: Floats


def fit_usage(samples: UsageSamples) -> UsageModel:
    """The model of *samples*."""
    with np.errstate(all="ignore"):
        share = np.where(samples.limit > 0, samples.usage / samples.limit, np.nan)
    finite = np.isfinite(samples.drivers).all(axis=1, keepdims=True)
    usable = np.isfinite(share) & (share < _SATURATED) & finite
    folds = _folds(samples.interval)
    fits, own = list[ResourceFit](), list[ResourceFit]()
    members_of: dict[str, list[int]] = {}
    for text, members in _classes(samples):
        members_of[text] = members
        for resource in range(len(RESOURCE_WORDS)):
            rows = np.flatnonzero(np.isin(samples.broker, members) & usable[:, resource])
            part = _Part(samples.drivers[rows], share[rows, resource], folds[rows], RESOURCE_WORDS[resource])
            fit = _fit(part, text, len(members))
            fits.append(fit)
            if 1 < len(members) <= _MAX_OWN and fit.error > _WORTHWHILE:
                own += _of_single_brokers(part, samples.broker[rows], members, samples.brokers)
    factors = {name: np.zeros((len(RESOURCE_WORDS), len(DRIVERS))) for name in samples.brokers}
    errors = {name: np.zeros(len(RESOURCE_WORDS)) for name in samples.brokers}
    for fit in (*fits, *own):
        row = RESOURCE_WORDS.index(fit.resource)
        for name in [samples.brokers[broker] for broker in members_of[fit.of]] if fit.of in members_of else [fit.of]:
            factors[name][row], errors[name][row] = fit.factors, fit.error
    return UsageModel(fits=(*fits, *own), factors=factors, errors=errors)


class _Part(NamedTuple):
    """Samples that are fitted together: (n, DRIVERS), (n,) usage as fractions, (n,) fifths of the recording."""

    drivers: Floats
    share: Floats
    folds: Ints
    resource: str

    def take(self, rows: Bools) -> "_Part":
        """Only *rows*."""
        return _Part(self.drivers[rows], self.share[rows], self.folds[rows], self.resource)


def _of_single_brokers(part: _Part, broker: Ints, members: Sequence[int], names: Sequence[str]) -> list[ResourceFit]:
    """Models of those brokers that are clearly better predicted alone than with their class, *part*."""
    off, models = _split_samples(part), []
    for one in members:
        rows: Bools = np.isin(broker, one)
        if rows.sum() >= _MIN_BROKERS:
            alone = _fit(part.take(rows), names[one], 1)
            if alone.error < _CLEARLY * _percentile(off[rows]):
                models.append(alone)
    return models


def _classes(samples: UsageSamples) -> Iterable[tuple[str, list[int]]]:
    """The machine classes: their limits as text, and the rows of their brokers, which last reported these."""
    by_limits: dict[tuple[float, ...], list[int]] = {}
    last = {int(broker): row for row, broker in enumerate(samples.broker.tolist())}
    for broker in sorted(last):
        limit = samples.limit[last[broker]]
        by_limits.setdefault(tuple(float(f"{each:.3g}") for each in limit.tolist()), []).append(broker)
    for limits, members in sorted(by_limits.items()):
        yield "/".join(f"{each:g}" for each in limits), members


def _folds(interval: Ints) -> Ints:
    """(n,) the fifth of the recording that each sample lies in."""
    _, order = np.unique(interval, return_inverse=True)
    n = int(order.max(initial=-1)) + 1
    return np.asarray(order * min(_FOLDS, n) // max(n, 1), np.int64)


def _fit(part: _Part, of: str, brokers: int) -> ResourceFit:
    fit, error = _robust(part.drivers, part.share), _percentile(_split_samples(part))
    flat = _percentile(_split_samples(part._replace(drivers=part.drivers[:, :0])))
    # A model that predicts no better than a constant is none: heap usage, for example, says nothing about load.
    if error >= flat:
        constant = float(np.mean(part.share)) if len(part.share) else 0.0
        fit, error = Fit((0.0,) * part.drivers.shape[1], constant, 0.0), flat
    return ResourceFit(
        resource=part.resource,
        of=of,
        brokers=brokers,
        factors=fit.factors,
        constant=fit.constant,
        error=error,
        error_of_constant=flat,
        samples=len(part.share),
    )


def _robust(drivers: Floats, share: Floats) -> Fit:
    """The fit without the samples that are far off it."""
    fit = fitted(share, drivers)
    for _ in range(2):
        off = np.abs(share - _predicted(fit, drivers))
        typical = float(np.median(off)) if len(off) else 0.0
        near: Bools = off <= max(_OUTLIER * typical, 1e-9)
        if near.all():
            break
        fit = fitted(share[near], drivers[near])
    return fit


def _predicted(fit: Fit, drivers: Floats) -> Floats:
    return np.asarray(fit.constant + drivers @ np.array(fit.factors, np.float64), np.float64)


def _split_samples(part: _Part) -> Floats:
    """(n,) how far each sample is from what the other fifths predict; all of it where there is one fifth only."""
    drivers, share, folds, _ = part
    off = np.abs(share)
    for fold in np.unique(folds).tolist():
        out = folds == fold
        if not out.all():
            off[out] = np.abs(share[out] - _predicted(_robust(drivers[~out], share[~out]), drivers[out]))
    return off


def _percentile(off: Floats) -> float:
    return float(np.percentile(off, _PERCENTILE)) if len(off) else 0.0


def drivers_of(load: Floats, producers: Ints, consumers: Ints) -> Floats:
    """(n, DRIVERS) of n bundles with *load* (n, 4)."""
    return np.column_stack([load, (producers + consumers).astype(np.float64)])
