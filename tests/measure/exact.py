"""The exact answer to a small balance problem, by HiGHS: how far a plan is from the best one, and prices that prove it.

HiGHS (highspy) is a dependency of the tests alone.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from controller.model.errors import SettingsError
from controller.model.load import Floats, Ints
from controller.planning.problem import PRICES, BalanceProblem, Certificate, PlannedMove

#: A number of moves is whole, but for this.
_ROUNDED: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """What HiGHS found within its time."""

    #: The highest utilisation of its best plan, and the level that it proved no plan to be below.
    reached: float
    bound: float
    #: The plan; in no order.
    moves: tuple[PlannedMove, ...]


def solved(problem: BalanceProblem, max_moves: int, *, seconds: float = 60.0) -> Exact:
    """The best plan of at most *max_moves* moves by mixed integer programming, in one thread."""
    solver = _solver(problem, max_moves, integer=True)
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("mip_rel_gap", 1e-6)
    solver.run()
    info = solver.getInfo()
    n = len(problem.capacity)
    chosen = np.array(solver.getSolution().col_value)[1:].reshape(-1, n)
    to: Ints = chosen.argmax(axis=1) if len(chosen) else np.zeros(0, np.int64)
    moves = tuple(
        PlannedMove(int(row), int(problem.owner[row]), int(to[row])) for row in np.flatnonzero(to != problem.owner)
    )
    return Exact(reached=float(info.objective_function_value), bound=float(info.mip_dual_bound), moves=moves)


def reachable(problem: BalanceProblem, max_moves: int, level: float, *, seconds: float) -> bool | None:
    """Whether any plan of at most *max_moves* moves brings every broker to *level*; None: not known in this time.

    One thread.  Filters do not count, nor the order of the moves.
    """
    solver = _solver(problem, max_moves, integer=True)
    for option in ("objective_target", "objective_bound"):
        solver.setOptionValue(option, level)
    solver.setOptionValue("time_limit", seconds)
    solver.run()
    info = solver.getInfo()
    if info.mip_dual_bound > level:
        return False
    return True if info.objective_function_value <= level else None


def fewest_to(problem: BalanceProblem, level: float, *, seconds: float) -> int | None:
    """The fewest moves of any plan that brings every broker to *level*; None: not proved in this time.

    One thread.  Filters do not count, nor the order of the moves.
    """
    m, n = len(problem.owner), len(problem.capacity)
    solver = _solver(problem, m, integer=True)
    is_move = np.ones((m, n))
    is_move[np.arange(m), problem.owner] = 0.0
    solver.changeColsCost(1 + m * n, np.arange(1 + m * n, dtype=np.int32), np.append(0.0, is_move.ravel()))
    solver.changeColBounds(0, 0.0, level)
    solver.setOptionValue("time_limit", seconds)
    solver.run()
    info = solver.getInfo()
    found, proved = info.objective_function_value, info.mip_dual_bound
    return round(found) if np.isfinite(found) and found - proved < 1 - _ROUNDED else None


def with_prices(problem: BalanceProblem, certificate: Certificate) -> Certificate:
    """*certificate* with the bound of the linear relaxation, where that is higher: its prices are the proof."""
    solver = _solver(problem, certificate.max_moves, integer=False)
    solver.run()
    dual = np.array(solver.getSolution().row_dual)
    n, columns = problem.capacity.shape
    prices = np.maximum(-dual[: n * columns], 0.0).reshape(n, columns) * problem.capacity
    if not prices.sum() > 0:
        return certificate
    prices = prices / (prices.sum() * (1 + 1e-12))
    move_price = max(0.0, -float(dual[n * columns]))
    level = _priced(problem, prices, move_price, certificate.max_moves)
    if level <= certificate.bound:
        return certificate
    level = min(level, certificate.reached)
    return replace(certificate, bound=level, kind=PRICES, resource=-1, size=0.0, prices=prices, move_price=move_price)


def _priced(problem: BalanceProblem, prices: Floats, move_price: float, max_moves: int) -> float:
    """The level that the prices prove: what the cheapest place of each bundle costs, together."""
    per_load = prices / problem.capacity
    cost = problem.size @ per_load.T + move_price
    cost[np.arange(len(cost)), problem.owner] -= move_price
    return float((per_load * problem.fixed).sum() + cost.min(axis=1).sum() - move_price * max_moves)


def _solver(problem: BalanceProblem, max_moves: int, *, integer: bool) -> Any:
    """HiGHS with the problem: column 0 is the level, column 1 + bundle * brokers + broker says who has the bundle.

    Rows: each broker's resources, then the moves, then one for each bundle.
    """
    try:
        import highspy
    except ModuleNotFoundError as error:
        raise SettingsError("the exact solver is not installed: pip install highspy") from error
    (n, columns), m = problem.capacity.shape, len(problem.owner)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = 1 + m * n, n * columns + 1 + m
    lp.col_cost_ = np.append(1.0, np.zeros(m * n))
    lp.col_lower_ = np.zeros(1 + m * n)
    lp.col_upper_ = np.append(np.inf, np.ones(m * n))
    lp.row_lower_ = np.concatenate([np.full(n * columns + 1, -np.inf), np.ones(m)])
    lp.row_upper_ = np.concatenate([-problem.fixed.ravel(), [float(max_moves)], np.ones(m)])
    starts, index, value = _columns(problem)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = starts, index, value
    if integer:
        kinds = [highspy.HighsVarType.kContinuous] + [highspy.HighsVarType.kInteger] * (m * n)
        lp.integrality_ = kinds
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(lp)
    return solver


def _columns(problem: BalanceProblem) -> tuple[Ints, Ints, Floats]:
    """The matrix by columns: starts, rows and values."""
    (n, columns), m = problem.capacity.shape, len(problem.owner)
    # A bundle at a broker: its load there, whether it moved, and its own row.
    rows = np.empty((m, n, columns + 2), np.int64)
    rows[:, :, :columns] = np.arange(n * columns).reshape(n, columns)
    rows[:, :, columns] = n * columns
    rows[:, :, columns + 1] = n * columns + 1 + np.arange(m)[:, None]
    values = np.ones((m, n, columns + 2))
    values[:, :, :columns] = problem.size[:, None, :]
    values[np.arange(m), problem.owner, columns] = 0.0
    level_rows, level_values = np.arange(n * columns), -problem.capacity.ravel()
    starts = np.append(0, n * columns + (columns + 2) * np.arange(m * n + 1))
    return starts, np.append(level_rows, rows.ravel()), np.append(level_values, values.ravel())
