"""The limits of the guardrails as one value.

The defaults here limit nothing; those of ``[guardrails]`` in trimtab.toml are for a production cluster.
"""

from dataclasses import dataclass

from controller.cycle.guardrails.budgets import Budget, BudgetLimits
from controller.cycle.guardrails.fatal_bundles import FatalLimits
from controller.cycle.guardrails.freeze import FreezeLimits
from controller.cycle.guardrails.own_balancing import BalancingLimits
from controller.cycle.guardrails.undescribed import UndescribedLimits

__all__ = ["Budget", "Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits(BudgetLimits, FreezeLimits, UndescribedLimits, BalancingLimits, FatalLimits):
    """The limits of every guardrail; each is declared in its file."""
