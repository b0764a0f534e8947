"""Runs in a Python that has Rebalancer, and in which trimtab need not be: reads problems, and prints its plans.

A line of stdin is a problem as JSON: ``capacity`` (brokers x resources), ``size`` (bundles x resources), ``owner``
(a broker for each bundle), ``level`` (the utilisation that every broker is to be brought to), ``tuning`` (a name of
TUNINGS).  A line of stdout is its plan: ``owner``, and the CPU seconds of all threads within ``solve``.
"""

import json
import sys
import time
from typing import Any, Final

#: Numbers of Rebalancer's enumerations: BalanceSpecFormula, and RELATIVE_UTIL of BalanceSpecBoundType.
_LINEAR, _SQUARES, _MAX, _IDEAL = 1, 2, 3, 4
_RELATIVE_UTIL: Final = 3
#: Seconds on the clock that it may take for a problem.
_SECONDS: Final = 60

_FORMULAS: Final[dict[str, list[tuple[int, float]]]] = {
    "linear": [(_LINEAR, 1.0)],
    "squares": [(_SQUARES, 1.0)],
    # Its documentation: MAX alone gives local search no direction, so SQUARES goes with it at a low weight.
    "max": [(_MAX, 1.0), (_SQUARES, 0.01)],
    # Its documentation: the one for unequal capacities.
    "ideal": [(_IDEAL, 1.0)],
}
_STEPS: Final = ("singleMoveTypeSpec", "swapMoveTypeSpec")
TUNINGS: Final = tuple(_FORMULAS)


def solved(problem: dict[str, Any]) -> dict[str, Any]:
    """Rebalancer's plan for *problem*."""
    from rebalancer import ProblemSolver

    solver = ProblemSolver(service_name="rebalancer", service_scope="bench")
    solver.set_object_name("bundle").set_container_name("broker")
    on: dict[str, list[str]] = {str(broker): [] for broker in range(len(problem["capacity"]))}
    for bundle, broker in enumerate(problem["owner"]):
        on[str(broker)].append(str(bundle))
    solver.set_assignment(on)
    for column in range(len(problem["capacity"][0])):
        name = f"resource-{column}"
        solver.add_object_dimension(name, {str(row): each[column] for row, each in enumerate(problem["size"])})
        solver.add_container_dimension(name, {str(row): each[column] for row, each in enumerate(problem["capacity"])})
        about = {"scope": "broker", "dimension": name}
        solver.add_constraint({"capacitySpec": {"name": f"capacity {name}", **about}})
        for kind, weight in _FORMULAS[problem["tuning"]]:
            bound = {"upperBound": problem["level"], "boundType": _RELATIVE_UTIL}
            spec = {"name": f"balance {kind} {name}", "formula": kind, **bound, **about}
            solver.add_goal({"balanceSpec": spec}, weight)
    # Of plans that are as good, the one with the fewest moves.
    solver.add_goal_boundary()
    few = {"name": "moves", "scope": "broker", "dimension": "bundle_count", "doNotNormalize": True}
    solver.add_goal({"minimizeMovementSpec": few})
    types: list[dict[str, Any]] = [{step: {}} for step in _STEPS]
    solver.add_solver({"localSearchSolverSpec": {"moveTypeList": types, "solveTime": _SECONDS}})
    solver.disable_solution_summary()
    began = time.process_time()
    found = solver.solve()["assignment"]
    seconds = time.process_time() - began
    return {"owner": [int(found[str(row)]) for row in range(len(problem["owner"]))], "seconds": seconds}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(solved(json.loads(line))), flush=True)
