"""Checks a plan and its certificate against the problem, in plain steps.  It shares no code with search and bounds.

The person who approves a plan does not have to trust the planner, only this file.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from controller.model.load import Floats
from controller.planning import problem as nouns
from controller.planning.problem import BalanceProblem, Certificate, PlannedMove

ROUNDING: Final = 1e-7


@np.errstate(over="ignore")
def flaws(
    problem: BalanceProblem, moves: Sequence[PlannedMove], certificate: Certificate, *easier: BalanceProblem
) -> list[str]:
    """What is wrong with *moves* or *certificate*, a sentence each; a bound of an *easier* problem counts as well."""
    figures = (certificate.before, certificate.reached, certificate.bound, certificate.size, certificate.move_price)
    if not all(math.isfinite(one) and one >= 0 for one in figures):
        return ["a number of the certificate is not finite, or below 0"]
    numbers = (problem.capacity, problem.fixed, problem.size)
    if not all(np.isfinite(of).all() and (of >= 0).all() for of in numbers) or not (problem.capacity > 0).all():
        return ["a number of the problem is not finite, or below 0, or a capacity is 0"]
    flaws, load = _ended(problem, moves, certificate)
    reached = float((load / problem.capacity).max(initial=0.0))
    if not math.isfinite(reached) or abs(reached - certificate.reached) > ROUNDING * max(1.0, reached):
        flaws.append(f"the plan reaches {reached:g}, and the certificate says {certificate.reached:g}")
    if certificate.bound > reached * (1 + ROUNDING) + ROUNDING:
        flaws.append(f"the bound {certificate.bound:g} is above what the plan reaches, {reached:g}")
    if certificate.bound > 0 and not any(_refuted(each, certificate) for each in (problem, *easier)):
        flaws.append(f"the bound {certificate.bound:g} is not proved by {certificate.kind}")
    return flaws


def _ended(problem: BalanceProblem, moves: Sequence[PlannedMove], certificate: Certificate) -> tuple[list[str], Floats]:
    """What is wrong with the moves, and (n, R) the load of the brokers after those that are possible."""
    owner, load, flaws = problem.owner.tolist(), problem.fixed.copy(), list[str]()
    np.add.at(load, problem.owner, problem.size)
    before = float((load / problem.capacity).max(initial=0.0))
    if not math.isfinite(before) or abs(before - certificate.before) > ROUNDING * max(1.0, before):
        flaws.append(f"the highest utilisation is {before:g}, and the certificate says {certificate.before:g}")
    if len(moves) > certificate.max_moves:
        flaws.append(f"{len(moves)} moves, and {certificate.max_moves} are allowed")
    if len({move.bundle for move in moves}) < len(moves):
        flaws.append("a bundle moves twice")
    for bundle, source, to in moves:
        if not (0 <= bundle < len(owner) and 0 <= to < len(load) and owner[bundle] == source != to):
            flaws.append(f"bundle {bundle} cannot move from broker {source} to broker {to}")
            continue
        load[source] -= problem.size[bundle]
        load[to] += problem.size[bundle]
        full = float((load[to] / problem.capacity[to]).max())
        if full > max(1.0, certificate.reached) + ROUNDING:
            flaws.append(f"broker {to} is at {full:g} of its capacity when bundle {bundle} has come")
    return flaws, load


def _refuted(problem: BalanceProblem, certificate: Certificate) -> bool:
    """Whether *certificate* shows that no plan of its moves brings every broker below its bound."""
    kind, column, level = certificate.kind, certificate.resource, certificate.bound * (1 - ROUNDING)
    if kind == nouns.PRICES:
        return _priced(problem, certificate) > level
    if not 0 <= column < len(problem.resources):
        return False
    capacity, fixed, size = (of[:, column] for of in (problem.capacity, problem.fixed, problem.size))
    if kind == nouns.MEAN:
        return float(fixed.sum() + size.sum()) > level * float(capacity.sum())
    if kind == nouns.FIXED:
        return bool((fixed > level * capacity).any())
    if kind == nouns.PIGEONHOLE and certificate.size > 0:
        room = np.floor((level * capacity - fixed) / certificate.size).clip(min=0)
        return bool(room.sum() < np.count_nonzero(size >= certificate.size))
    order, leaving = np.lexsort((-size, problem.owner)), 0.0
    of_brokers = np.split(order, np.searchsorted(problem.owner[order], np.arange(1, len(capacity))))
    for rows, own, wide in zip(of_brokers, fixed, capacity, strict=False):
        departed = size[rows].cumsum()
        excess = own + departed[-1:].sum() - level * wide
        if excess > 0:  # the fewest that have to leave are the largest ones
            leaving += 1 + int((departed >= excess).argmax()) if (departed >= excess).any() else math.inf
    return kind == nouns.REMOVAL and leaving > certificate.max_moves


def _priced(problem: BalanceProblem, certificate: Certificate) -> float:
    """The level that the prices prove: they add up to at most 1, so the highest utilisation is at least the cost."""
    prices, move_price = certificate.prices, certificate.move_price
    if prices is None or prices.shape != problem.capacity.shape or not (prices >= 0).all() or prices.sum() > 1:
        return -math.inf
    per_load = prices / problem.capacity
    level = float((per_load * problem.fixed).sum()) - move_price * certificate.max_moves
    for size, owner in zip(problem.size, problem.owner.tolist(), strict=True):
        cost = per_load @ size
        level += min(float(cost[owner]), float(cost.min()) + move_price)
    return level
