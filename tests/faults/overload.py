"""Every broker over its limit, at every interval: nothing is issued beyond the budgets, and all of it settles."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.settings.guardrails import limits_of
from tests.faults.budgets import over_budget
from tests.faults.clock import now_ms
from tests.faults.site import Site, folder_site

FULL_REBALANCE = "full-rebalance"
#: Longer than the window, so that its budget is used up, and given back.
_INTERVALS = 14
_UNLOADS, _WINDOW_UNLOADS, _WINDOW_INTERVALS = 4, 15, 6
#: All brokers are above 5 % of their capacity, and each bundle may move at every interval.
_BROKER_CONF = """
loadBalancerLoadSheddingStrategy=OverloadShedder
loadBalancerBrokerOverloadedThresholdPercentage=5
loadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight
loadBalancerSheddingGracePeriodMinutes=0
"""
_GUARDRAILS = f"""
window_seconds = {60 * _WINDOW_INTERVALS}
[guardrails.interval]
unloads = {_UNLOADS}
unloads_per_source = 2
unloads_per_destination = 3
[guardrails.window]
unloads = {_WINDOW_UNLOADS}
"""


@contextmanager
def overloaded_site(folder: Path) -> Iterator[Site]:
    """A site with budgets that are much smaller than what its shedder wants."""
    with folder_site(folder, broker_conf=_BROKER_CONF, guardrails=_GUARDRAILS) as site:
        yield site


def full_rebalance(site: Site) -> float:
    """So many intervals, each with every broker over its limit; returns the longest decision, seconds."""
    first, longest = len(site.log.decisions()), 0.0
    for _ in range(_INTERVALS):
        site.pile_up()
        at, interval = now_ms(), site.publish()
        longest = max(longest, (site.wait_for_decision(interval).at_ms - at) / 1000)
        site.come_to_rest()
    decided = site.log.decisions()
    limits = limits_of(site.settings.guardrails)
    assert over_budget(decided, limits) == []
    counts = [len(each.entry.decision.commands) for each in decided[first:]]
    assert max(counts) == _UNLOADS, counts
    assert 0 in counts, f"the window's budget was never used up: {counts}"
    assert all("held back" in each.entry.decision.summary for each in decided[first:])
    return longest
