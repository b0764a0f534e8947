"""Which filters keep bundles of a plan from going anywhere, or to one broker, by their names for a person."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from controller.model.load import Ints
from controller.offline.plans.source import PlanSource
from controller.planning.from_view import MappedProblem
from controller.planning.plans.plan import PlanStep
from controller.planning.problem import PlannedMove
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder.destinations import POLICIES


def named(each: Filter) -> str:
    """The reason that *each* gives, and the options in broker.conf that decide about it, if there are any."""
    strategy: Any = each
    options = [field.metadata["broker_conf"] for field in fields(strategy) if "broker_conf" in field.metadata]
    options = [] if each.reason in POLICIES else options
    return f"{each.reason} ({', '.join(options)})" if options else str(each.reason)


def filters_against(
    source: PlanSource, mapped: MappedProblem, bundle: int, step: PlanStep, owner: Ints
) -> list[Filter]:
    """The filters without each of which *bundle* could go somewhere after *step*, not to the brokers that it empties.

    *owner* (m,) has the bundles before the step.
    """

    def has_a_place(left_out: Filter) -> bool:
        closing = source.closing(mapped, without=[left_out])
        return closing is None or bool(closing(step.brokers, owner)(bundle, step.moves).any())

    return [each for each in source.policy.filters if has_a_place(each)]


def describe_filters_against(
    source: PlanSource,
    mapped: MappedProblem,
    move: PlannedMove,
    moves: Sequence[PlannedMove],
    closed: Collection[int] = (),
) -> str:
    """Which filters do not let *move*, which is not allowed after *moves*, go to its destination, in words.

    *closed*: brokers (rows) that get nothing.
    """
    filters, to = source.policy.filters, source.view.brokers.names[move.destination]

    def lets(without: Sequence[Filter]) -> bool:
        closing = source.closing(mapped, without=without)
        return closing is None or bool(closing(closed, None)(move.bundle, moves)[move.destination])

    sole_blockers = [each for each in filters if lets([each])]
    if sole_blockers:
        return f"filters do not let it go to {to}: without {_listed(sole_blockers, 'or')} they do"
    alone = [each for each in filters if not lets([other for other in filters if other is not each])]
    if alone:
        return f"filters do not let it go to {to}: {_listed(alone, 'and')} each exclude it"
    return f"filters do not let it go to {to}: {_listed(filters, 'and')} together exclude it"


def _listed(filters: Sequence[Filter], word: str) -> str:
    return f" {word} ".join(map(named, filters))
