"""In an order-sensitive case equally busy brokers, or equal bundles, stand in for each other: Pulsar takes the first
that its hash map lists, trimtab the first by name.  Checked then, round by round: off the broker that gave in one of
the orders Pulsar was seen with, bundles of the same loads go in the same order; or else the giver is exactly as busy
as one of those.  Loads are those of the measure that decided, so either may be the one that agrees."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder
from tests.conformance.vectors import Case, configured, floats, shedding_view

COMPONENT = "uniform_load_shedder"
_MEASURES = (slice(0, 2), slice(2, 4))


def test_the_same_bundles_are_unloaded_in_the_same_order(case: Case) -> None:
    shedder = configured(UniformLoadShedder, case["config"], pulsar=case["pulsar"])
    memory = shedder.initial_memory()
    answers = [case["expected"], *case.get("acceptable", [])]
    for number, given in enumerate(case["input"]["rounds"]):
        decision, memory = shedder.decide(shedding_view(given), memory)
        unload = defaultdict(list)
        for one in decision.unloads:
            unload[one.source].append(one.bundle)
        expected = [answer["rounds"][number]["unload"] for answer in answers]
        if case.get("order_sensitive"):
            assert any(_agrees(unload, answer, given, by) for answer in expected for by in _MEASURES)
        else:
            assert unload == expected[0]


def _agrees(
    ours: Mapping[str, Sequence[str]], theirs: Mapping[str, Sequence[str]], given: Mapping[str, Any], measure: slice
) -> bool:
    """Whether the same broker gives the same loads, or another one that is as busy gives."""

    def loads(bundles: Sequence[str]) -> list[float]:
        return [float(floats(given["bundles"][name][measure]).sum()) for name in bundles]

    if list(ours) == list(theirs):
        return all(loads(ours[broker]) == loads(theirs[broker]) for broker in ours)
    of_broker = {broker["name"]: float(floats(broker["load"][measure]).sum()) for broker in given["brokers"]}
    return [of_broker[broker] for broker in ours] == [of_broker[broker] for broker in theirs]
