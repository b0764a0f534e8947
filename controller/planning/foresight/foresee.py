"""Estimates the present load and forecasts later load from the history of the bundles."""

from typing import Final

import numpy as np

from controller.model.load import ClusterView, Floats
from controller.planning.foresight.bundle_history import BundleHistory
from controller.planning.foresight.day import HOUR_MS, HOURS
from controller.planning.from_view import Foreseen, Later, finite, weight

#: The hours to come are considered in groups of this size; one hour of each group counts.
_GROUP: Final = 4
_HOUR_MINUTES: Final = 60.0
#: A trend is ignored if it changes no bundle by this share.
_NO_TREND: Final = 0.01
#: A day profile with less skill than this is no better than "as now": chance alone gives some.
_SKILL: Final = 0.1
#: A rate below this many messages/s counts as none.
_NOTHING: Final = 1e-6


def followed(view: ClusterView, history: BundleHistory) -> BundleHistory:
    """*history* after the interval of *view*."""
    return history.after(weight(view.bundles.load), weight(view.bundles.short_term), view.as_of_ms)


def foreseen(view: ClusterView, history: BundleHistory, *, minutes: float) -> Foreseen:
    """The load of the bundles of *view*, now and later: by its trend, in *minutes*, and by the day.

    The next day is looked at once a whole one was seen, and where it foretold the load better than "as now" did.
    """
    of = history.of_view()
    later: list[list[Later]] = []
    ratio = _ratio(of.ahead(minutes), of.level)
    if bool((np.abs(ratio - 1.0) > _NO_TREND).any()):
        later.append([Later(f"in {minutes:g} min", ratio, minutes)])
    later += _by_day(history, view.as_of_ms) if history.day_skill > _SKILL else []
    return Foreseen(load=_typical(view, of.level), later=later)


def error_of(history: BundleHistory) -> float:
    """By how much the load of the next minute differs from what is expected, as a share of all load."""
    of = history.of_view()
    whole = float(of.level.sum())
    return float(of.error.sum()) / whole if whole > 0 else 0.0


def _by_day(history: BundleHistory, at_ms: int) -> list[list[Later]]:
    day, groups = history.day(), list[list[Later]]()
    if day is None:
        return []
    for first in range(1, HOURS, _GROUP):
        hours = range(first, first + _GROUP)
        groups.append(
            [Later(f"at {_clock(at_ms + ahead * HOUR_MS)}", day.ratio(at_ms, ahead), _HOUR_MINUTES) for ahead in hours]
        )
    return groups


def _clock(at_ms: int) -> str:
    hours, minutes = divmod(at_ms // 60_000, 60)
    return f"{hours % HOURS:02}:{minutes:02}"


def _typical(view: ClusterView, level: Floats) -> Floats:
    """(bundles, 4) the short-term averages, or this interval's load where there are none, made as large as *level*."""
    short, now = view.bundles.short_term, view.bundles.load
    by = weight(short)
    load = np.where((by > _NOTHING)[:, None], short, now)
    by = np.where(by > _NOTHING, by, weight(now))
    return np.where((by > _NOTHING)[:, None], finite(load) * _ratio(level, by)[:, None], 0.0)


def _ratio(one: Floats, other: Floats) -> Floats:
    """(n,) *one* over *other*; 1 where *other* is next to nothing."""
    ratio: Floats = np.divide(one, other, out=np.ones_like(other), where=other > _NOTHING)
    return ratio
