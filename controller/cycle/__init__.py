"""One cycle, a pure function: view, memory and controls in; decision and memory out."""

from controller.cycle.decide import decide, untouchable_in, view_of
from controller.cycle.dry_run import forget_dry_run, without_dry_run
from controller.cycle.policy import BalancerOptions, Policy

__all__ = ["BalancerOptions", "Policy", "decide", "forget_dry_run", "untouchable_in", "view_of", "without_dry_run"]
