"""The extensible load manager from the log to the memory: averages of brokers begin anew with the bundles they own."""

from typing import Any

import pytest

from controller.cycle import decide, view_of
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.memory import Memory
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.ext_least_resource_usage_with_weight import IntervalUsageHistory
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from tests.folds import A, B, Shard, sweep, ticked
from tests.records import PERIOD

C = "broker-c:8080"
X, Y, Z, W = (f"tenant/ns/0x{n:08x}_0x{n + 1:08x}" for n in range(4))
EXTENSIBLE = {"loadManagerClassName": "ExtensibleLoadManagerImpl"}
HALF = {"loadBalancerHistoryResourcePercentage": "0.5"}


def used(broker: str, n: int, percent: float, *bundles: str) -> dict[str, Any]:
    """The sweep of *broker*, whose CPU usage is *percent*, in interval *n*."""
    return sweep(broker, n, *bundles, cpu={"usage": percent, "limit": 100.0}, bandwidthIn=IDLE, bandwidthOut=IDLE)


IDLE = {"usage": 0.0, "limit": 100.0}
#: Bundle Y goes from broker A to B, is on its way for an interval, and W of broker C is a new one at the end.
LOG = [
    *(used(A, 0, 80, X, Y), used(B, 0, 20, Z), used(C, 0, 40), ticked(0, A, B, C)),
    *(used(A, 1, 40, X), used(B, 1, 40, Z), used(C, 1, 20), ticked(1, A, B, C)),
    *(used(A, 2, 20, X), used(B, 2, 60, Y, Z), used(C, 2, 20), ticked(2, A, B, C)),
    *(used(A, 3, 20, X), used(B, 3, 20, Y, Z), used(C, 3, 80, W), ticked(3, A, B, C)),
]
AVERAGES = [(0.8, 0.2, 0.4), (0.4, 0.3, 0.3), (0.3, 0.6, 0.25), (0.25, 0.4, 0.8)]


def decided(*batches: list[dict[str, Any]], **conf: str) -> tuple[list[Decision], list[Memory]]:
    policy = policy_of(
        HALF | conf,
        DecisionSettings(mode="active"),
        GuardrailSettings(brokers_balance_unknown="ignore"),
        1,
        "lab",
        PERIOD,
    )
    shard, memory = Shard(), policy.initial_memory(1)
    decisions, memories = [], []
    for batch in batches:
        for snapshot in shard.feed(*batch):
            view = view_of([snapshot], memory, policy)
            decision, memory = decide(view, snapshot.results, memory, Controls(mode="active"), policy)
            decisions.append(decision)
            memories.append(memory)
    return decisions, memories


def test_shedder_and_placement_forget_the_load_of_brokers_that_gave_or_got_a_bundle() -> None:
    _, memories = decided(LOG, **EXTENSIBLE)
    for memory, averages in zip(memories, AVERAGES, strict=True):
        expected = pytest.approx(dict(zip((A, B, C), averages, strict=True)))
        assert isinstance(memory.shedder, TransferHistory)
        assert isinstance(memory.placement, IntervalUsageHistory)
        assert memory.shedder.weighted_max_ema == expected
        assert memory.placement.usage == expected


def test_the_same_log_leaves_the_same_memory_however_it_is_cut() -> None:
    whole = decided(LOG, **EXTENSIBLE)
    assert whole == decided(*([record] for record in LOG), **EXTENSIBLE) == decided(LOG[:6], LOG[6:], **EXTENSIBLE)


def test_averages_move_in_every_interval_also_where_bundles_are_unloaded_in_every_seventh_only() -> None:
    seldom = {**EXTENSIBLE, "loadBalancerSheddingIntervalMinutes": "7"}
    averages = [
        [memory.shedder.weighted_max_ema for memory in memories if isinstance(memory.shedder, TransferHistory)]
        for _, memories in (decided(LOG, **EXTENSIBLE), decided(LOG, **seldom))
    ]
    assert averages[0] == averages[1]


def test_with_the_modular_load_manager_averages_go_on() -> None:
    _, memories = decided(LOG)
    shedder = memories[-1].shedder
    assert isinstance(shedder, UsageHistory)
    assert shedder.usage == pytest.approx({A: 0.3, B: 0.325, C: 0.525})
