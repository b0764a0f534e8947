"""``python -m tests.rebalancer PYTHON``: both planners on the clusters of ``trimtab bench balance``, side by side.

*PYTHON* is an interpreter that has Rebalancer (``pip install rebalancer``, Python 3.12 or newer).  No filters, nothing
held back: the numbers alone.  For each level Rebalancer plans with every tuning; then trimtab plans to the balance that
the plan with the fewest moves really reached.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from controller.bench.balance import SIZES, problem_of
from controller.planning.checking.checker import flaws
from controller.planning.objective import loads
from controller.planning.problem import BalanceProblem
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.rebalancer import rival

SEEDS: Final = range(1, 5)
#: Multiples of the mean usage.
LEVELS: Final = (1.2, 1.1, 1.05, 1.02)
#: As even as it can: for clusters of at most so many bundles, as Rebalancer takes minutes for larger ones.
ALL_THE_WAY: Final = 200
#: trimtab's effort: pairs of a bundle and a broker.
EFFORT: Final = 1_000_000
_ROUNDING: Final = 1e-9
#: Balances that differ by less are the same: a hundredth of a percent.
_SAME: Final = 1e-4
#: More moves than any plan has.
_ANY: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a planner made of a cluster."""

    tuning: str
    moves: int
    #: The highest usage, as a multiple of the mean usage.
    even: float
    #: CPU time of all threads.
    seconds: float


@contextmanager
def rebalancer(python: str) -> Iterator["subprocess.Popen[str]"]:
    """Rebalancer, waiting for problems; what it logs is dropped."""
    command = [python, str(Path(rival.__file__))]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def theirs(process: "subprocess.Popen[str]", problem: BalanceProblem, even: float, tuning: str) -> Plan:
    """Rebalancer's plan to *even* times the mean usage."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert problem.fixed.max() < _ROUNDING, "a load that no move changes is not given to Rebalancer"
    mean = mean_level(problem)
    said = {"capacity": problem.capacity, "size": problem.size, "owner": problem.owner}
    asked: dict[str, Any] = {name: column.tolist() for name, column in said.items()}
    process.stdin.write(json.dumps({**asked, "level": even * mean, "tuning": tuning}) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"Rebalancer ended without an answer: try {' '.join(map(str, process.args))} by hand")  # type: ignore[arg-type]
    found = json.loads(line)
    owner = np.array(found["owner"])
    reached = float((loads(problem, owner) / problem.capacity).max()) / mean
    moves = int((owner != problem.owner).sum())
    return Plan(tuning=tuning, moves=moves, even=reached, seconds=found["seconds"])


def ours(problem: BalanceProblem, even: float, max_moves: int) -> Plan:
    """trimtab's plan to *even* times the mean usage, with bounds, verified."""
    mean = mean_level(problem)
    limits = SearchLimits(max_moves=max_moves, goal=even * mean * (1 + _ROUNDING), effort=EFFORT)
    began = time.process_time()
    plan = planned(problem, limits)
    wrong = flaws(problem, plan.moves, plan.certificate)
    seconds = time.process_time() - began
    assert not wrong, wrong
    return Plan(tuning="", moves=len(plan.moves), even=plan.certificate.reached / mean, seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both plans for one cluster and level."""

    #: The plan with the fewest moves among those that reach the level, else the most even one.
    theirs: Plan
    #: To the balance of that one, with at most its moves; and with as many as it takes, None: it does not get there.
    ours: Plan
    unlimited: int | None
    #: CPU seconds of all tunings.
    all_seconds: float

    @property
    def moves(self) -> int | None:
        """The fewest with which trimtab got there; None: it did not.

        Where its moves are limited, a plan that is nearly there is enough for it.
        """
        limited = self.ours.moves if self.ours.even <= self.theirs.even * (1 + _SAME) else None
        return min((moves for moves in (limited, self.unlimited) if moves is not None), default=None)


def compared(process: "subprocess.Popen[str]", problem: BalanceProblem, even: float) -> Pair:
    """Both plans to *even* times the mean usage."""
    plans = [theirs(process, problem, even, tuning) for tuning in rival.TUNINGS]
    there = [plan for plan in plans if plan.even <= even * (1 + _SAME)]
    best = min(there, key=lambda plan: plan.moves) if there else min(plans, key=lambda plan: plan.even)
    free = ours(problem, best.even, _ANY)
    return Pair(
        theirs=best,
        ours=ours(problem, best.even, best.moves),
        unlimited=free.moves if free.even <= best.even * (1 + _SAME) else None,
        all_seconds=sum(plan.seconds for plan in plans),
    )


def main(python: str) -> None:
    """Print a line for each cluster and level, and one for each level."""
    with rebalancer(python) as process:
        for even in (*LEVELS, 1.0):
            pairs = list[Pair]()
            for uneven, (brokers, bundles), seed in product((False, True), SIZES, SEEDS):
                if even == 1.0 and bundles > ALL_THE_WAY:
                    continue
                problem = problem_of(brokers, bundles, uneven=uneven, seed=seed)
                pair = compared(process, problem, even)
                pairs.append(pair)
                print(brokers, bundles, "1:2" if uneven else "equal", seed, even, pair, flush=True)
            print(_summary(even, pairs), flush=True)


def _summary(even: float, pairs: Sequence[Pair]) -> str:
    needed = [(pair.moves, pair.theirs.moves) for pair in pairs]
    fewer = sum(moves is not None and moves < limit for moves, limit in needed)
    same = sum(moves == limit for moves, limit in needed)
    short = [pair for pair in pairs if pair.moves is None or pair.moves > pair.theirs.moves]
    above = [f"{pair.ours.even / pair.theirs.even - 1:.2%}" for pair in short]
    theirs, ours = sum(pair.theirs.seconds for pair in pairs), sum(pair.ours.seconds for pair in pairs)
    slower = sum(pair.ours.seconds > pair.theirs.seconds for pair in pairs)
    return (
        f"== to {even}, {len(pairs)} clusters: Rebalancer {sum(limit for _, limit in needed)} moves;"
        f" trimtab there with fewer in {fewer}, with as many in {same};"
        f" else (needs, Rebalancer) {[(pair.moves, pair.theirs.moves) for pair in short]}, with as many it ends"
        f" above by {above}; CPU s {theirs:.2f} and {ours:.2f}, slower in {slower}"
    )


if __name__ == "__main__":
    main(sys.argv[1])
