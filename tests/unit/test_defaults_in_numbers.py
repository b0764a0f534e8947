"""What is left out stands for nothing: 0, no, or unknown.  Where it stands for anything else, it does so on purpose.

Options of strategies are in tests/unit/strategies/test_option_defaults.py.
"""

import inspect
import math
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType, ModuleType
from typing import Any, Final

from pydantic import BaseModel

CORE: Final = (
    *("aggregate", "audit", "collector", "cycle", "engine", "executor", "model", "planning", "strategies", "wire"),
)

#: Left out, these are neither 0 nor False: fields of records, and arguments of functions.
NOT_NOTHING: Final = {
    # Unknown, or before all intervals.
    "aggregate.ticks.batch_times:BatchTimes._came": -math.inf,
    "aggregate.ticks.batch_times:BatchTimes._last": -math.inf,
    "aggregate.ticks.intervals:TickClock.closed": -1,
    "model.memory:IntervalUsageHistory.as_of_ms": -1,
    "model.peak_history:PeakHistory.as_of_ms": -1,
    "model.peak_history:PeakHistory.changed_ms": -1,
    "model.peak_history:PeakHistory.jumped_ms": -1,
    "model.peak_history:PeakHistory.since_ms": -1,
    "strategies.common.worker_group:Group.last_completed_generation": -1,
    "strategies.rebalance.incremental_cooperative.leader:LeaderMemory.generation": -1,
    "wire.rows:_Columns.add(interval)": -1,
    # No limit.
    "aggregate.waiting.limits:WaitLimits.size": 2**62,
    "planning.checking.wave_checker:wave_flaws(most_connections)": math.inf,
    "strategies.view_builder:_number(most)": math.inf,
    # As Pulsar, and Kafka Connect, take them.
    "model.policies:MinAvailable.usage_threshold": 100,
    "model.records:BrokerState.non_persistent_topics": True,
    "model.records:BrokerState.persistent_topics": True,
    "strategies.common.worker_group:Group.generation": 1,
    "strategies.rebalance.incremental_cooperative.assignor:IncrementalCooperativeAssignor"
    ".scheduled_rebalance_max_delay_ms": 300_000,
    "strategies.rebalance.incremental_cooperative.leader:LeaderMemory.can_revoke": True,
    # The first version of a record, its only chunk, and how large a record may be.
    "aggregate.ticks.prepass:Header.chunks": 1,
    "wire.base:Envelope.v": 1,
    "wire.chunks:arrow_chunks(max_bytes)": 900_000,
    "wire.chunks:json_chunks(max_bytes)": 900_000,
    "wire.controls:ControlsDocument.v": 1,
    "wire.dead_letter:DeadLetter.v": 1,
    "wire.metrics:decode_metric(max_bytes)": 8_388_608,
    "wire.plan:PlanRecord.v": 1,
    "wire.results:decode_result(max_bytes)": 8_388_608,
    # What a cycle may do, and how long it waits.
    "aggregate.waiting.limits:WaitLimits.intervals": 10,
    "cycle.limits:Limits.freeze_share": 1.0,
    "cycle.limits:Limits.move_undescribed": True,
    "cycle.limits:Limits.window_ms": 3_600_000,
    "cycle.policy:Policy.command_ttl_ms": 300_000,
    "cycle.policy:Policy.executor_timeout_ms": 60_000,
    "cycle.policy:Policy.retry_failed_after_ms": 300_000,
    "cycle.policy:Policy.shed": True,
    "cycle.policy:Policy.split": True,
    "cycle.policy:Policy.warm_up_samples": 2,
    # Plans.
    "planning.plans.plan_steps:PlanLimits.ceiling": 1.0,
    "planning.plans.plan_steps:PlanLimits.effort": 1_000_000,
    "planning.plans.plan_steps:PlanLimits.max_moves": 10_000,
    "planning.plans.waves:WaveLimits.max_moves": 20,
    "planning.plans.waves:WaveLimits.max_per_broker": 10,
    "planning.solving.limits:SearchLimits.effort": 1_000_000,
    # Commands, and what comes of them: one that failed may have been sent.
    "audit.owner_changes:OwnerWatch.issued(parts_leave)": True,
    "cycle.budgets:Ledger._count(count)": 1,
    "cycle.commands:charge_for(disturbs)": True,
    "engine:_decided(journalled)": True,
    "executor.attempt:carry_out(most_attempts)": 3,
    "executor.attempt:carry_out(pause_seconds)": 0.5,
    "executor.judge:Failure.sent": True,
    # What tests of strategies describe: a bundle has topics, and has been seen for long.
    "strategies.view_builder:Bundle.long_samples": 1000,
    "strategies.view_builder:Bundle.short_samples": 10,
    "strategies.view_builder:Bundle.topics": 10,
    "strategies.view_builder:cluster_view(as_of_ms)": 1_700_000_040_000,
}


def modules() -> Iterator[ModuleType]:
    for name in CORE:
        package = import_module(f"controller.{name}")
        yield package
        for each in walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
            yield import_module(each.name)


def of_functions(owner: ModuleType | type, module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(owner).items():
        function = inspect.unwrap(getattr(value, "__func__", value))
        if not isinstance(function, FunctionType) or function.__module__ != module.__name__ or name.startswith("__"):
            continue
        defaults, keywords = function.__defaults__ or (), function.__kwdefaults__ or {}
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        for argument, default in (*zip(names[len(names) - len(defaults) :], defaults, strict=True), *keywords.items()):
            yield f"{name}({argument})", default


def of_fields(kind: type) -> Iterator[tuple[str, Any]]:
    if is_dataclass(kind):
        for each in fields(kind):
            if each.default is not MISSING and each.name in kind.__annotations__ and "meaning" not in each.metadata:
                yield each.name, each.default
    elif issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if name in kind.__annotations__:
                yield name, field.default


def defaults() -> Iterator[tuple[str, Any]]:
    for module in modules():
        where = module.__name__.removeprefix("controller.")
        yield from ((f"{where}:{name}", value) for name, value in of_functions(module, module))
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                for name, value in (*of_functions(kind, module), *of_fields(kind)):
                    yield f"{where}:{kind.__qualname__}.{name}", value


def test_a_number_that_is_left_out_is_0_unless_it_is_known_here() -> None:
    numbers = {name: value for name, value in defaults() if isinstance(value, bool | int | float)}
    assert len(numbers) > 180
    assert {name: value for name, value in numbers.items() if value} == NOT_NOTHING
