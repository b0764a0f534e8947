"""A placement that is an Observer sees every interval, also one without placements."""

from dataclasses import replace

from controller.cycle import BalancerOptions, Policy, decide
from controller.model.controls import Controls
from controller.model.memory import Memory
from controller.strategies.placement.ext_least_resource_usage_with_weight import (
    ExtLeastResourceUsageWithWeight,
    IntervalUsageHistory,
)
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, view

PERIOD = 60_000
CALM = view(broker("a", usage=0.5, x=5), broker("b", usage=0.5, y=5))
POLICY = Policy(
    cluster="lab",
    period_ms=PERIOD,
    shedder=ThresholdShedder(),
    placement=ExtLeastResourceUsageWithWeight(history_fraction=0.5),
    split_policy=BundleSplitterTask(),
    split_algorithm=RangeEquallyDivide(),
    # No interval of this test is one in which bundles are unloaded.
    balancer=BalancerOptions(shedding_interval_minutes=7),
)


def usages(memory: Memory) -> dict[str, float]:
    assert isinstance(memory.placement, IntervalUsageHistory)
    return dict(memory.placement.usage)


def test_usage_is_smoothed_in_intervals_without_any_placement() -> None:
    memory = POLICY.initial_memory(1)
    for i, usage in enumerate((0.5, 0.9, 0.9)):
        cluster = view(broker("a", usage=usage, x=5), broker("b", usage=0.5, y=5))
        at = replace(cluster, as_of_ms=INTERVAL + (i + 1) * PERIOD)
        assert at.as_of_ms % (7 * PERIOD)
        _, memory = decide(at, (), memory, Controls(mode="active"), POLICY)
    rounded = {name: round(usage, 6) for name, usage in usages(memory).items()}
    assert rounded == {"a": 0.8, "b": 0.5}


def test_a_placement_without_such_memory_is_not_called() -> None:
    from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate

    policy = replace(POLICY, placement=LeastLongTermMessageRate())
    before = policy.initial_memory(1)
    _, after = decide(CALM, (), before, Controls(mode="active"), policy)
    assert after.placement == before.placement
