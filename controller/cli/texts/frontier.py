"""Prints how low other numbers of moves than a plan's would bring the highest usage."""

from typing import Final

from rich.console import Console

from controller.cli.shared.layout import columns, print_line, print_table
from controller.offline.plans.planner import PlannedCluster
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.frontier import FURTHER_MOVES
from controller.wire.answers.plan import FrontierLevelAnswer, PlanAnswer
from controller.wire.readable import counted

#: Length of the longest bar of the curve.
_BAR: Final = 30
#: A usage that is lower by less than this share is told as the same.
_SAME: Final = 0.0005


def frontier_levels(found: PlannedCluster) -> list[FrontierLevelAnswer]:
    """The frontier of *found*, for --json and for print_frontier; [] where none was asked for."""
    problem = found.plan.problem
    mean = mean_level(problem)
    return [
        FrontierLevelAnswer(
            max_moves=each.certificate.max_moves,
            moves=len(each.moves),
            connections=int(sum(problem.connections[move.bundle] for move in each.moves)),
            reached=each.certificate.reached,
            times_mean=each.certificate.reached / mean if mean > 0 else 1.0,
            bound=each.certificate.bound,
            bound_kind=each.certificate.kind,
        )
        for each in found.frontier
    ]


def print_frontier(out: Console, answer: PlanAnswer) -> None:
    """Print the frontier of *answer* as a table with a curve, and what more moves than the plan's would give."""
    levels = answer.frontier
    if not levels:
        return
    numbers = ("at most", "moves", "connections", "highest usage", "times the mean", "no plan below")
    header = columns(*numbers, "by", "above the mean", numbers=numbers)
    most = max(each.times_mean for each in levels) - 1
    rows = [
        (
            str(each.max_moves),
            str(each.moves),
            str(each.connections),
            f"{each.reached:.1%}",
            f"{each.times_mean:.3f}",
            f"{each.bound:.1%}",
            each.bound_kind,
            _bar(each.times_mean - 1, most, "#" if out.options.ascii_only else "\N{FULL BLOCK}"),
        )
        for each in levels
    ]
    print_table(out, header, rows, title="How low other numbers of moves bring the highest usage")
    print_line(out, _further(answer))
    out.print()


def _bar(above: float, most: float, stroke: str) -> str:
    return stroke * (round(_BAR * above / most) if most > _SAME else 0)


def _further(answer: PlanAnswer) -> str:
    """What more moves than those of the plan would give."""
    by_moves = {each.max_moves: each for each in answer.frontier}
    now, then = by_moves[answer.moves], by_moves[answer.moves + FURTHER_MOVES]
    told = f"{counted(answer.moves, 'move')} reach {now.times_mean:.3f} times the mean usage"
    if then.reached >= now.reached * (1 - _SAME):
        return f"{told}; {FURTHER_MOVES} more would give no less"
    return f"{told}; {FURTHER_MOVES} more would give {then.times_mean:.3f}"
