"""Which filters keep bundles of a plan from going anywhere, by their names for a person."""

from dataclasses import fields
from typing import Any

from controller.model.load import Ints
from controller.offline.plans.source import PlanSource
from controller.planning.from_view import StatedProblem
from controller.planning.plans.plan import PlanStep
from controller.strategies.protocols import Filter


def named(each: Filter) -> str:
    """The reason that *each* gives, and its options in broker.conf."""
    strategy: Any = each
    options = [field.metadata["broker_conf"] for field in fields(strategy) if "broker_conf" in field.metadata]
    return f"{each.reason} ({', '.join(options)})" if options else str(each.reason)


def filters_against(source: PlanSource, found: StatedProblem, bundle: int, step: PlanStep, owner: Ints) -> list[Filter]:
    """The filters without each of which *bundle* could go somewhere after *step*, not to the brokers that it empties.

    *owner* (m,) has the bundles before the step.
    """

    def has_a_place(left_out: Filter) -> bool:
        closing = source.closing(found, without=[left_out])
        return closing is None or bool(closing(step.brokers, owner)(bundle, step.moves).any())

    return [each for each in source.policy.filters if has_a_place(each)]
