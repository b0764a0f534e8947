"""One cycle, a pure function: view, memory and controls in; decision and memory out."""

from controller.cycle.decide import decide, untouchable_in, view_of
from controller.cycle.policy import BalancerOptions, Policy

__all__ = ["BalancerOptions", "Policy", "decide", "untouchable_in", "view_of"]
