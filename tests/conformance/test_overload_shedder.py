"""In an order-sensitive case equal bundles stand in for each other: Pulsar takes them as its hash map lists them,
trimtab by name.  Checked then: from each broker bundles of the same loads go, in the same order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from controller.strategies.shedding.overload_shedder import OverloadShedder
from tests.conformance.vectors import Case, configured, floats, shedding_view

COMPONENT = "overload_shedder"


def test_the_same_bundles_are_unloaded_in_the_same_order(case: Case) -> None:
    shedder = configured(OverloadShedder, case["config"])
    decision, _ = shedder.decide(shedding_view(case["input"]), shedder.initial_memory())
    unload = defaultdict(list)
    for one in decision.unloads:
        unload[one.source].append(one.bundle)
    expected = case["expected"]["unload"]
    if case.get("order_sensitive"):
        assert _loads(unload, case["input"]) == _loads(expected, case["input"])
    else:
        assert unload == expected


def _loads(unload: Mapping[str, Sequence[str]], given: Mapping[str, Any]) -> dict[str, list[float]]:
    """Broker -> bytes/s of each bundle taken off it."""
    return {
        broker: [float(floats(given["bundles"][name][2:4]).sum()) for name in bundles]
        for broker, bundles in unload.items()
    }
