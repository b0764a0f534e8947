"""One cycle, a pure function: view, memory and controls in; decision and memory out."""

from controller.cycle.decide import decide, view_of
from controller.cycle.dry_run import forget_dry_run, without_dry_run
from controller.cycle.policy import BalancerOptions, Policy, Versions
from controller.cycle.pulsar_version import about_version, policy_for, version_in_use
from controller.cycle.stored_memory import with_read_memories
from controller.model.pulsar_version import version_among, version_text

__all__ = [
    "BalancerOptions",
    "Policy",
    "Versions",
    "about_version",
    "decide",
    "forget_dry_run",
    "policy_for",
    "version_among",
    "version_in_use",
    "version_text",
    "view_of",
    "with_read_memories",
    "without_dry_run",
]
