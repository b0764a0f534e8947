"""How far brokers are above a level of utilisation: the quantity that packing.py and reach.py lower."""

from collections.abc import Iterable

import numpy as np

from controller.model.load import Bools, Floats, Ints
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.steps import EPSILON


class Excess:
    """For each broker, the squares of what its utilisations are above the level, added over the resources."""

    def __init__(self, assignment: Assignment, level: float, ceiling: float) -> None:
        self._assignment, self._level, self._ceiling = assignment, level, ceiling
        self.now: Floats = self._above(assignment.load, assignment.problem.capacity)

    @property
    def none(self) -> bool:
        """Whether all brokers are at the level or below it."""
        return float(self.now.max()) <= EPSILON**2

    def changed(self, brokers: Iterable[int]) -> None:
        """Take the loads of *brokers* as they are now."""
        for broker in brokers:
            self.now[broker] = self._above(self._assignment.load[broker], self._assignment.problem.capacity[broker])

    def with_change(self, brokers: Ints | int, change: Floats) -> Floats:
        """(k,) the excess of *brokers*, one or (k,), each with a change (k, R) of its load."""
        return self._above(self._assignment.load[brokers] + change, self._assignment.problem.capacity[brokers])

    def added(self, bundles: Ints, places: Ints | None = None) -> Floats:
        """(bundles, places) what each bundle adds on each place; infinite above the ceiling.  None: on all brokers."""
        problem, load = self._assignment.problem, self._assignment.load
        capacity, now = problem.capacity, self.now
        if places is not None:
            load, capacity, now = load[places], capacity[places], now[places]
        change = np.zeros((len(bundles), len(load)))
        fullest = np.zeros_like(change)
        for column in range(load.shape[1]):
            utilisation = (load[:, column] + problem.size[bundles, column][:, None]) / capacity[:, column]
            np.maximum(fullest, utilisation, out=fullest)
            change += np.square(np.maximum(utilisation - self._level, 0.0))
        change -= now
        change[fullest > self._ceiling] = np.inf
        return change

    def best_place(self, bundle: int, allowed: Bools) -> tuple[int, float]:
        """The broker of those *allowed* (n,) on which *bundle* adds least, the emptiest of equals; and what it adds.

        Infinite where it can go to none of them.
        """
        added = np.where(allowed, self._added_by(bundle), np.inf)
        least = np.flatnonzero(added <= added.min() + EPSILON)
        place = int(least[self._assignment.highest[least].argmin()])
        return place, float(added[place])

    def _added_by(self, bundle: int) -> Floats:
        """(n,) as ``added``, to the last bit, of one bundle on all brokers: a third of the time where these are few."""
        problem = self._assignment.problem
        utilisation = (self._assignment.load + problem.size[bundle]) / problem.capacity
        above = np.square(np.maximum(utilisation - self._level, 0.0))
        change = np.zeros(len(above))
        for column in range(above.shape[1]):
            change += above[:, column]
        change -= self.now
        change[(utilisation > self._ceiling).any(axis=1)] = np.inf
        return change

    def _above(self, load: Floats, capacity: Floats) -> Floats:
        # As sum(), which takes longer of short rows.
        excess: Floats = np.add.reduce(np.square(np.maximum(load / capacity - self._level, 0.0)), axis=-1)
        return excess
