"""No case is order-sensitive: bundles are given in the order in which Pulsar went through them, and ties follow it."""

import numpy as np

from controller.model.names import is_system_owned, namespace_of
from controller.strategies.common.top_bundles import rank, top
from tests.conformance.vectors import Case, floats, rows_of_4

COMPONENT = "ext_top_k_bundles"


def test_the_same_bundles_are_reported_in_the_same_order(case: Case) -> None:
    names = [
        name
        for name, stats in case["input"]["bundle_stats"].items()
        if floats(stats[2:4]).sum() != 0 and not is_system_owned(namespace_of(name))
    ]
    stats = [case["input"]["bundle_stats"][name] for name in names]
    load = rows_of_4([row[:4] for row in stats])
    connections = np.array([sum(row[4:7]) for row in stats], np.int64)
    found = top(rank(load, connections), case["config"]["k"])[::-1]
    assert [names[row] for row in found.tolist()] == case["expected"]["top_bundles"]
