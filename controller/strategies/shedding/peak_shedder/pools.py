"""The pools of a cluster: brokers that share load, because filters let bundles go from one to another.

Isolation policies divide a cluster.  What is even, idle or urgent in one pool says nothing about another one, and the
free capacity of brokers that no bundle may use is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.model.load import Bools, ClusterView, Floats, Ints
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
from controller.strategies.common.candidates import left_by
from controller.strategies.protocols import Filter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """The pool of every broker."""

    #: (n,) numbers from 0.
    of: Ints

    def means(self, load: Floats, capacity: Floats, counts: Floats | None = None) -> Floats:
        """(n, R) the mean utilisation of each broker's pool, by capacity; *load*, *capacity*: (n, R).

        *counts*: (n,) how much each broker counts; None: all alike.
        """
        part = np.ones(len(self.of)) if counts is None else counts
        used, whole = (
            np.stack([np.bincount(self.of, weights=part * column) for column in each.T], axis=1)
            for each in (load, capacity)
        )
        means: Floats = (used / whole)[self.of]
        return means

    def holds(self, brokers: Bools) -> Bools:
        """(n,) whether each broker's pool has one of *brokers* (n,)."""
        holds: Bools = np.bincount(self.of, weights=brokers)[self.of] > 0
        return holds

    def with_any(self, brokers: Bools) -> list[Ints]:
        """The rows of each pool that has one of *brokers* (n,)."""
        return [np.flatnonzero(self.of == pool) for pool in np.unique(self.of[brokers]).tolist()]


def pools_of(view: ClusterView, rows: Ints, filters: Sequence[Filter]) -> Pools:
    """The pools between which no bundle of *rows*, those that may move, can go by a binding filter.

    One bundle of each namespace is asked about: policies are about namespaces.
    """
    n = len(view.brokers)
    if not view.policies.isolation or not len(rows):
        return Pools(of=np.zeros(n, np.int64))
    root = list(range(n))

    def find(broker: int) -> int:
        while root[broker] != broker:
            root[broker] = broker = root[root[broker]]
        return broker

    namespaces, first, group = np.unique(view.bundles.namespace[rows], return_index=True, return_inverse=True)
    home = np.full(len(namespaces), -1, np.int64)
    joined = set[bytes]()
    for at, row in enumerate(rows[first].tolist()):
        kept: Ints = np.arange(n, dtype=np.int64)
        for step in filters:
            kept = left_by(step, view, row, kept) if step.binding else kept
        if len(kept):
            home[at] = kept[0]
        if kept.tobytes() in joined:
            continue
        joined.add(kept.tobytes())
        for broker in kept[1:].tolist():
            root[find(broker)] = find(int(kept[0]))
    # A bundle on a broker where its policy does not want it may leave: both sides are one pool until it has.
    pairs = np.stack([view.bundles.broker[rows], home[group.ravel()]], axis=1)
    for broker, to in np.unique(pairs[pairs[:, 1] >= 0], axis=0).tolist():
        root[find(broker)] = find(to)
    return Pools(of=np.unique([find(broker) for broker in range(n)], return_inverse=True)[1].ravel())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolProblem:
    """The problem of one pool, and how to get back to that of the cluster."""

    problem: BalanceProblem
    #: Rows of the cluster's problem.
    brokers: Ints
    bundles: Ints

    @classmethod
    def of(cls, problem: BalanceProblem, brokers: Ints) -> "PoolProblem":
        """The part of *problem* that is about *brokers*, ascending rows."""
        row = np.full(len(problem.capacity), -1, np.int64)
        row[brokers] = np.arange(len(brokers))
        bundles = np.flatnonzero(row[problem.owner] >= 0)
        part = BalanceProblem(
            resources=problem.resources,
            capacity=problem.capacity[brokers],
            fixed=problem.fixed[brokers],
            size=problem.size[bundles],
            owner=row[problem.owner[bundles]],
            connections=problem.connections[bundles],
            disturbance=problem.disturbance[bundles],
        )
        return cls(problem=part, brokers=brokers, bundles=bundles)

    def back(self, moves: Sequence[PlannedMove]) -> tuple[PlannedMove, ...]:
        """*moves* of the pool in rows of the cluster."""
        bundles, brokers = self.bundles, self.brokers
        return tuple(PlannedMove(int(bundles[b]), int(brokers[source]), int(brokers[to])) for b, source, to in moves)

    def allowed(self, asked: Allowed | None, before: Sequence[PlannedMove]) -> Allowed | None:
        """*asked* in rows of the pool, where *before* are moves of other pools in the same plan."""
        if asked is None or len(self.brokers) == 0:
            return None

        def inside(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
            found: Bools = asked(int(self.bundles[bundle]), [*before, *self.back(moves)])[self.brokers]
            return found

        return inside
