"""Small balance problems: by hand, from a seed, and from Hypothesis."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from hypothesis import strategies as st

from controller.planning.objective import highest, loads
from controller.planning.problem import BalanceProblem


def problem(
    capacity: Sequence[Sequence[float]],
    bundles: Sequence[tuple[int, Sequence[float]]],
    *,
    fixed: Sequence[Sequence[float]] | None = None,
    connections: Sequence[float] | None = None,
    disturbance: Sequence[float] | None = None,
) -> BalanceProblem:
    """Brokers of *capacity* (n, R), and *bundles*: the owner and the load of each."""
    wide = np.array(capacity, np.float64)
    m, columns = len(bundles), wide.shape[1]
    return BalanceProblem(
        resources=("cpu", "bandwidth in", "bandwidth out")[:columns],
        capacity=wide,
        fixed=np.zeros_like(wide) if fixed is None else np.array(fixed, np.float64),
        size=np.array([size for _, size in bundles], np.float64).reshape(m, columns),
        owner=np.array([owner for owner, _ in bundles], np.int64),
        connections=np.array(connections or [1.0] * m, np.float64),
        disturbance=np.array(disturbance or [11.0] * m, np.float64),
    )


def seeded(
    brokers: int, bundles: int, resources: int, seed: int, *, uneven: bool = False, mean: float = 0.5
) -> BalanceProblem:
    """A skewed cluster at a *mean* utilisation; *uneven*: every second broker has twice the capacity."""
    chance = np.random.default_rng(seed)
    size = chance.lognormal(0, 1.0, (bundles, 1)) * chance.lognormal(0, 0.4, (bundles, resources))
    share = chance.gamma(2.0, size=brokers)
    capacity = np.ones((brokers, resources))
    if uneven:
        capacity[::2] *= 2
    connections = chance.integers(1, 50, bundles).astype(np.float64)
    return BalanceProblem(
        resources=("cpu", "bandwidth in", "bandwidth out")[:resources],
        capacity=capacity * (size.sum(axis=0) / capacity.sum(axis=0)) / mean,
        fixed=np.zeros((brokers, resources)),
        size=size,
        owner=chance.choice(brokers, bundles, p=share / share.sum()).astype(np.int64),
        connections=connections,
        disturbance=connections + 10.0,
    )


def whole_numbers(brokers: int, bundles: int, resources: int, seed: int) -> BalanceProblem:
    """Loads and capacities without fractions, so that every machine finds the same bits; the first brokers are full."""
    chance = np.random.default_rng(seed)
    share = np.arange(brokers, 0, -1.0) ** 2
    return BalanceProblem(
        resources=("cpu", "direct memory", "bandwidth in", "bandwidth out")[:resources],
        capacity=100 * chance.integers(2, 5, (brokers, resources)).astype(np.float64),
        fixed=chance.integers(0, 10, (brokers, resources)).astype(np.float64),
        size=chance.integers(1, 30, (bundles, resources)).astype(np.float64),
        owner=chance.choice(brokers, bundles, p=share / share.sum()).astype(np.int64),
        connections=chance.integers(1, 50, bundles).astype(np.float64),
        disturbance=chance.integers(10, 60, bundles).astype(np.float64),
    )


_LOADS = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 7.5]) | st.floats(0, 10)


@st.composite
def tiny_problems(draw: st.DrawFn) -> BalanceProblem:
    """Up to three brokers, five bundles and two resources: few enough to try every plan."""
    n, m, columns = draw(st.integers(1, 3)), draw(st.integers(0, 5)), draw(st.integers(1, 2))
    loads_of = st.lists(_LOADS, min_size=columns, max_size=columns)
    wide = st.lists(st.sampled_from([5.0, 10.0, 20.0]), min_size=columns, max_size=columns)
    return problem(
        draw(st.lists(wide, min_size=n, max_size=n)),
        draw(st.lists(st.tuples(st.integers(0, n - 1), loads_of), min_size=m, max_size=m)),
        fixed=draw(st.lists(loads_of, min_size=n, max_size=n)),
    )


@st.composite
def odd_problems(draw: st.DrawFn) -> BalanceProblem:
    """Loads next to nothing and huge ones, brokers a million times as large as others, all bundles on one broker."""
    n, m, columns = draw(st.integers(1, 5)), draw(st.integers(0, 12)), draw(st.integers(1, 3))
    load = st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 1.0, 1e14])
    one_of = draw(st.lists(load, min_size=1, max_size=2))
    loads_of = st.lists(st.sampled_from(one_of), min_size=columns, max_size=columns)
    wide = st.lists(st.sampled_from([1e-6, 1.0, 1e6]), min_size=columns, max_size=columns)
    last = draw(st.sampled_from([0, n - 1]))
    return problem(
        draw(st.lists(wide, min_size=n, max_size=n)),
        draw(st.lists(st.tuples(st.integers(0, last), loads_of), min_size=m, max_size=m)),
        fixed=draw(st.lists(loads_of, min_size=n, max_size=n)),
    )


def best_by_trying(problem: BalanceProblem, max_moves: int) -> float:
    """The lowest peak of all plans of at most *max_moves* moves."""
    n, m = len(problem.capacity), len(problem.owner)
    best = np.inf
    for owner in product(range(n), repeat=m):
        placed = np.array(owner, np.int64)
        if np.count_nonzero(placed != problem.owner) <= max_moves:
            best = min(best, float(highest(loads(problem, placed), problem.capacity).max()))
    return best
