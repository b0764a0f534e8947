"""Checks the waves of a plan, in plain steps.  It shares no code with what makes them."""

import math
from collections.abc import Sequence

import numpy as np

from controller.planning import problem as nouns
from controller.planning.checking.checker import ROUNDING


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def wave_flaws(
    problem: nouns.BalanceProblem,
    waves: Sequence[Sequence[nouns.PlannedMove]],
    ceiling: Sequence[float],
    emptied: Sequence[int] = (),
    most_connections: float = math.inf,
) -> list[str]:
    """What is wrong with *waves*, a sentence each; empty: nothing.

    No receiving broker may be above its *ceiling* during a wave, with the bundles that come and without any that leave.
    No bundle may come to a broker of *emptied*.  The bundles of a wave have at most *most_connections*, but for one
    alone.
    """
    if not all(math.isfinite(each) and each >= 0 for each in ceiling):
        return ["the capacity that brokers are kept under is not a number"]
    n, m = problem.capacity.shape[0], len(problem.owner)
    load, owner, flaws = problem.fixed.copy(), problem.owner.tolist(), list[str]()
    np.add.at(load, problem.owner, problem.size)
    for number, wave in enumerate(waves, 1):
        if not wave:
            flaws.append(f"wave {number} is empty")
        during = load.copy()
        for bundle, source, to in wave:
            if not (0 <= bundle < m and 0 <= to < n and owner[bundle] == source != to):
                return [*flaws, f"wave {number}: bundle {bundle} cannot move from broker {source} to broker {to}"]
            if to in emptied:
                flaws.append(f"wave {number}: bundle {bundle} goes to broker {to}, which is to be empty")
            during[to] += problem.size[bundle]
            load[source] -= problem.size[bundle]
            load[to] += problem.size[bundle]
            owner[bundle] = to
        at_once = float(sum(problem.connections[move[0]] for move in wave))
        if len(wave) > 1 and not at_once <= most_connections * (1 + ROUNDING) + ROUNDING:
            flaws.append(f"wave {number}: {at_once:g} connections at once, {most_connections:g} are allowed")
        for to in sorted({move[2] for move in wave}):
            full = float((during[to] / problem.capacity[to]).max(initial=0.0))
            if not full <= ceiling[to] + ROUNDING:  # nor is a utilisation that no number can hold
                flaws.append(f"wave {number}: broker {to} is at {full:g} of its capacity, {ceiling[to]:g} is allowed")
    return flaws
