"""Whole rounds of ModularLoadManagerImpl: checkNamespaceBundleSplit, then doLoadShedding, over several minutes.

In an order-sensitive case a namespace gets so many bundles that some may not be split; Pulsar takes them as its hash
map lists them.  No committed case is one.
"""

from tests.conformance.recorded_cycles import check_commands, played
from tests.conformance.vectors import Case, close_to

COMPONENT = "cycles_modular"


def test_the_same_bundles_are_split_and_go_to_the_same_brokers_round_by_round(case: Case) -> None:
    for expected, made, memory in played(case):
        check_commands(expected, made)
        for role, key in (("shedder", "usage_history"), ("placement", "placement_history")):
            if expected[key]:
                assert getattr(getattr(memory, role), "usage", {}) == close_to(expected[key])
