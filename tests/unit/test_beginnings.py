"""What values hold before anybody says more: nothing counted, nothing remembered, nothing asked for.

Each value with those of its numbers and switches that do not begin with 0 or False.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from controller.aggregate.shard.fold import ShardState
from controller.audit.moves import MoveSums
from controller.cycle.limits import Limits
from controller.executor.judge import Failure
from controller.model import errors
from controller.model.controls import Controls, OperatorControls
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
from controller.planning.from_view import Counted
from controller.planning.problem import MEAN, Certificate
from controller.planning.solving.bounds import LowerBound
from controller.planning.solving.limits import SearchLimits
from controller.strategies.common.worker_group import ConfigSnapshot, Group, GroupAssignment
from controller.strategies.rebalance.incremental_cooperative.leader import LeaderMemory
from controller.strategies.shedding.peak_shedder.situation import SeenOfLoad
from controller.strategies.shedding.transfer_shedder.exchange import Exchange
from controller.strategies.view_builder import Broker, Bundle


def numbers(value: Any) -> dict[str, Any]:
    """Its numbers and switches by name, but those that are 0 or False."""
    names = [each.name for each in fields(value)] if is_dataclass(value) else value._fields
    found = {name: getattr(value, name) for name in names}
    return {name: each for name, each in found.items() if isinstance(each, bool | int | float) and each}


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
