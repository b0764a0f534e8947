"""One cycle, a pure function: view, memory and controls in; decision and memory out."""

from controller.cycle.decide import decide, view_of
from controller.cycle.policy import BalancerOptions, Policy

__all__ = ["BalancerOptions", "Policy", "decide", "view_of"]
