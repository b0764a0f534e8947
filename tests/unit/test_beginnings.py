"""What values hold before anybody says more: nothing counted, nothing remembered, nothing asked for.

Each value with those of its numbers and switches that do not begin with 0 or False.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from controller.aggregate.shard.fold import ShardState
from controller.aggregate.ticks.intervals import TickClock
from controller.aggregate.ticks.prepass import Header
from controller.aggregate.waiting.limits import WaitLimits
from controller.audit.moves import MoveSums
from controller.cycle.limits import Limits
from controller.cycle.policy import Policy
from controller.executor.attempt import Outcome
from controller.executor.judge import Answer, Failure
from controller.model import errors
from controller.model.controls import Controls, OperatorControls
from controller.model.decision import Reason, Unload, Verdict
from controller.model.memory import (
    Breaker,
    BrokerHitCounts,
    IntervalUsageHistory,
    Memory,
    RoundRobinTurn,
    TransferHistory,
)
from controller.model.peak_history import MovePromise, PeakHistory, Proven
from controller.model.policies import MinAvailable
from controller.model.records import BrokerState
from controller.planning.from_view import Counted
from controller.planning.plans.plan_steps import PlanLimits
from controller.planning.plans.waves import WaveLimits
from controller.planning.problem import MEAN, Certificate
from controller.planning.solving.bounds import LowerBound
from controller.planning.solving.limits import SearchLimits
from controller.strategies.common.worker_group import ConfigSnapshot, Group, GroupAssignment
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.rebalance.incremental_cooperative import IncrementalCooperativeAssignor
from controller.strategies.rebalance.incremental_cooperative.leader import LeaderMemory
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.shedding.peak_shedder.situation import PlanStart, SeenOfLoad
from controller.strategies.shedding.transfer_shedder.exchange import Exchange
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide
from controller.strategies.view_builder import Broker, Bundle
from controller.wire.journal import BreakerRecord


def numbers(value: Any) -> dict[str, Any]:
    """Its numbers and switches by name, but those that are 0 or False."""
    if isinstance(value, BaseModel):
        found = dict(value)
    else:
        names = [each.name for each in fields(value)] if is_dataclass(value) else value._fields
        found = {name: getattr(value, name) for name in names}
    return {name: each for name, each in found.items() if isinstance(each, bool | int | float) and each}


WHY: Final = Verdict(subject="cluster", reason=Reason.OVERLOADED, by="x")
POLICY: Final = Policy(
    cluster="lab",
    period_ms=0,
    shedder=OverloadShedder(),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(),
    split_algorithm=RangeEquallyDivide(),
)

BEGINNINGS: Final[Sequence[tuple[Any, dict[str, Any]]]] = (
    (PeakHistory(), {"since_ms": -1, "as_of_ms": -1, "jumped_ms": -1, "changed_ms": -1}),
    (MovePromise(source="a", destination="b"), {}),
    (Proven(), {}),
    (Memory(), {}),
    (Breaker(), {}),
    (RoundRobinTurn(), {}),
    (TransferHistory(), {}),
    (BrokerHitCounts(), {}),
    (IntervalUsageHistory(), {"as_of_ms": -1}),
    (Controls(mode="active"), {}),
    (OperatorControls(), {}),
    (MinAvailable(), {"usage_threshold": 100}),
    (MoveSums(), {}),
    (ShardState(shard=0, shards=0), {}),
    (Limits(), {"window_ms": 3_600_000, "freeze_share": 1.0, "move_undescribed": True}),
    (Counted(weights={}), {}),
    (SearchLimits(max_moves=0), {"effort": 1_000_000}),
    (LowerBound(0.0, MEAN, 0), {}),
    (Certificate(max_moves=0, before=0.0, reached=0.0, bound=0.0, kind=MEAN), {}),
    (SeenOfLoad(), {}),
    (Exchange(), {}),
    (ConfigSnapshot(), {}),
    (Group(members={}, configured=ConfigSnapshot()), {"generation": 1, "last_completed_generation": -1}),
    (GroupAssignment(assignments={}), {}),
    (LeaderMemory(), {"generation": -1, "can_revoke": True}),
    (Failure(detail="refused"), {"sent": True}),
    (Bundle(), {"topics": 10, "short_samples": 10, "long_samples": 1000}),
    (Broker("a"), {}),
    (WaitLimits(), {"intervals": 10, "size": 1 << 62}),
    (TickClock(), {"closed": -1}),
    (Header(broker="a", time_ms=0), {"chunks": 1}),
    (BrokerState(broker="a", version=0), {"persistent_topics": True, "non_persistent_topics": True}),
    (Unload(bundle="a", source="b", why=WHY), {}),
    (PlanLimits(), {"max_moves": 10_000, "ceiling": 1.0, "effort": 1_000_000}),
    (WaveLimits(), {"max_moves": 20, "max_per_broker": 10}),
    (PlanStart(np.zeros(0), 0.0, 0.0), {}),
    (IncrementalCooperativeAssignor(), {"scheduled_rebalance_max_delay_ms": 300_000}),
    (SpecifiedPositionsDivide(), {}),
    (
        POLICY,
        {
            "shed": True,
            "split": True,
            "warm_up_samples": 2,
            "command_ttl_ms": 300_000,
            "executor_timeout_ms": 60_000,
            "retry_failed_after_ms": 300_000,
        },
    ),
    (Outcome(answer=Answer(status="done")), {}),
    (BreakerRecord(), {}),
)


def test_nothing_is_counted_remembered_or_asked_for_before_anybody_says_so() -> None:
    assert [(type(value).__name__, numbers(value)) for value, known in BEGINNINGS if numbers(value) != known] == []


def test_exit_codes_tell_service_managers_whether_to_start_trimtab_again() -> None:
    known = {
        "SettingsError": 2, "PlanRefusedError": 2, "StateError": 2, "DamagedJournalError": 2, "JournalLostError": 2,
        "StrategyError": 2, "AccessDeniedError": 77, "StalledError": 70, "LeadershipLostError": 75,
        "LogOfflineError": 1, "ControlsUnreachableError": 1, "ControlsCorruptError": 1, "EntryTooLargeError": 1,
    }  # fmt: skip
    assert {name: getattr(errors, name).exit_code for name in known} == known
