"""Pulsar's class is abstract: the vectors extend it by the measures and the threshold of the two shedders here.

It returns the bundles in no order, so which ones go is compared.  A case would be order-sensitive if a broker stood at
the threshold but for the rounding of sums; then one of the answers seen is due."""

from collections.abc import Mapping
from dataclasses import replace

from controller.strategies.shedding.deviation_shedder import MessageRateDeviationShedder, ThroughputDeviationShedder
from tests.conformance.vectors import Case, configured, shedding_view

COMPONENT = "deviation_shedder"
_SHEDDERS: Mapping[str, type[ThroughputDeviationShedder | MessageRateDeviationShedder]] = {
    "throughput": ThroughputDeviationShedder,
    "message_rate": MessageRateDeviationShedder,
}


def test_the_same_bundles_are_unloaded(case: Case) -> None:
    config = dict(case["config"])
    shedder = configured(_SHEDDERS[config.pop("measure")], config)
    # Without what trimtab adds of its own.
    shedder = replace(shedder, min_above_percent=0.0, max_bundles=-1)
    decision, _ = shedder.decide(shedding_view(case["input"]), shedder.initial_memory())
    found = {one.bundle: one.source for one in decision.unloads}
    assert found in [answer["unload"] for answer in case.get("acceptable", [case["expected"]])]
