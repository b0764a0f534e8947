"""In an order-sensitive case equal bundles, or equal brokers, stand in for each other: Pulsar takes them as its hash
map lists them, trimtab by name.  Checked then, round by round: the loads taken off each broker, in order, and the
history are those of one of the orders that Pulsar was seen with."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from tests.conformance.vectors import Case, close_to, configured, floats, shedding_view

COMPONENT = "threshold_shedder"


def test_the_same_bundles_are_unloaded_in_the_same_order(case: Case) -> None:
    shedder = configured(ThresholdShedder, case["config"])
    memory = shedder.initial_memory()
    answers = [case["expected"], *case.get("acceptable", [])]
    for number, given in enumerate(case["input"]["rounds"]):
        if given.get("active_brokers_change") is not None:
            memory = memory.keep_brokers(tuple(given["active_brokers_change"]))
        decision, memory = shedder.decide(shedding_view(given), memory)
        unload = defaultdict(list)
        for one in decision.unloads:
            unload[one.source].append(one.bundle)
        expected = [answer["rounds"][number] for answer in answers]
        if case.get("order_sensitive"):
            assert any(
                _loads(unload, given) == _loads(answer["unload"], given)
                and memory.usage == close_to(answer["usage_history"])
                for answer in expected
            )
        else:
            assert unload == expected[0]["unload"]
            assert memory.usage == close_to(expected[0]["usage_history"])


def _loads(unload: Mapping[str, Sequence[str]], given: Mapping[str, Any]) -> dict[str, list[float]]:
    """Broker -> bytes/s of each bundle taken off it."""
    return {
        broker: [float(floats(given["bundles"][name][2:4]).sum()) for name in bundles]
        for broker, bundles in unload.items()
    }
