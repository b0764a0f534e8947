"""Estimates what a bundle takes of CPU, memory and bandwidth, which Pulsar reports for whole brokers only.

Over the brokers, the usage of a resource is explained by the messages/s, the bytes/s in and the bytes/s out of their
bundles, and by a constant that every broker uses without any.  No factor is below 0: load does not make a broker
emptier.  Every set of these four is fitted by least squares, and Schwarz's criterion chooses: a set with one more
member has to fit clearly better.  So drivers that always go together count once, and usage that does not follow load
counts as constant.  With few brokers the set is small: there have to be more brokers than factors.

Brokers with nearly the same load say little: a constant explains them as well as the load does.  For a shedder the
constant is the careful choice, since what bundles do not take, no move lowers.  Where bundles have to find room it is
the careless one: they would need none.  There a *cautious* fit lets all usage follow load, unless a constant is proved.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Floats

#: The smallest part of the sum of squares that counts as unexplained; below it, all fits are exact.
_EXACT: Final = 1e-9
#: Columns whose common part leaves less than this of one of them say the same.
_COLLINEAR: Final = 1e-6
#: A cautious fit has a constant where Schwarz's criterion is lower by so much with it, and by more with few brokers: by
#: chance that happens about once in 500 times.  So many brokers prove nothing.
_PROVED: Final = 10.0
_TOO_FEW: Final = 3


class Fit(NamedTuple):
    """How one resource follows the load."""

    #: (F,) units of the resource for one unit of each driver, all 0 or more.
    factors: tuple[float, ...]
    #: What every broker uses without bundles.
    constant: float
    #: The typical error of a broker's usage (root of the mean square), as a share of the mean usage.
    error: float

    def usage_of(self, drivers: Floats) -> Floats:
        """(...) what a load of so much of each of the *drivers* (..., F) takes of the resource."""
        amount = np.zeros(drivers.shape[:-1])
        # Added in a fixed order, so that every machine finds the same bits.
        for column, factor in enumerate(self.factors):
            amount = amount + drivers[..., column] * factor
        return amount


def fitted(usage: Floats, drivers: Floats, *, cautious: bool = False) -> Fit:
    """How *usage* (n,) follows the *drivers* (n, F), both finite.

    *cautious*: without a constant, unless it is proved.
    """
    n, width = drivers.shape
    columns = [np.ones(n), *drivers.T]
    scale = [math.sqrt(_total(column * column)) for column in columns]
    used = [i for i in range(width + 1) if scale[i] > 0]
    moments = {i: _total(columns[i] * usage) / scale[i] for i in used}
    gram = {(i, j): _total(columns[i] * columns[j]) / (scale[i] * scale[j]) for i in used for j in used}
    whole = _total(usage * usage)
    best, by_load = _Chosen({}, whole), _Chosen({}, whole)
    if n and whole * _EXACT > 0:
        # Drivers before the constant, so that of equal fits one that explains something wins.
        order = [i for i in used if i] + [i for i in used if not i]
        for size in range(1, max(1, min(len(order), n - 1)) + 1):
            for members in combinations(order, size):
                factors = _solved([[gram[i, j] for j in members] for i in members], [moments[i] for i in members])
                if factors is None or min(factors) < 0:
                    continue
                explained = sum(x * moments[i] for x, i in zip(factors, members, strict=True))
                residual = max(whole - explained, whole * _EXACT)
                rank = (round(n * math.log(residual / n) + size * math.log(n), 6), size)
                one = _Chosen(dict(zip(members, factors, strict=True)), residual, rank)
                best = one if rank < best.rank else best
                by_load = one if 0 not in members and rank < by_load.rank else by_load
    if cautious and by_load.factors and 0 in best.factors:
        more = n - _TOO_FEW
        proved = more > 0 and by_load.rank[0] - best.rank[0] > _PROVED * n / more
        best = best if proved else by_load
    factor = [best.factors.get(i, 0.0) / scale[i] if scale[i] else 0.0 for i in range(width + 1)]
    mean = float(usage.sum()) / n if n else 0.0
    error = math.sqrt(best.residual / n) / mean if mean > 0 else 0.0
    return Fit(tuple(factor[1:]), factor[0], error)


class _Chosen(NamedTuple):
    """A set of columns: their factors, the sum of squares that it leaves, and Schwarz's criterion with its size."""

    factors: dict[int, float]
    residual: float
    rank: tuple[float, int] = (math.inf, 0)


def _total(products: Floats) -> float:
    return float(products.sum())


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """The solution of a small symmetric system with ones on the diagonal; None where its columns are collinear.

    Plain Gauss, so that every machine finds the same bits.
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        if rows[i][i] < _COLLINEAR:
            return None
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [b - factor * a for a, b in zip(rows[i], rows[j], strict=True)]
    factors = [0.0] * n
    for i in reversed(range(n)):
        factors[i] = (rows[i][n] - sum(rows[i][j] * factors[j] for j in range(i + 1, n))) / rows[i][i]
    return factors
