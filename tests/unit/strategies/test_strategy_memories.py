"""Every kind of memory a strategy can have goes through the journal as it is."""

from typing import Any

import numpy as np
import pytest

from controller.model.journal import JournalEntry
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.catalogue import MEMORIES, PLACEMENTS, SHEDDERS, SPLIT_POLICIES
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.ext_least_resource_usage_with_weight import IntervalUsageHistory
from controller.strategies.placement.round_robin_broker_selector import RoundRobinTurn
from controller.strategies.shedding.avg_shedder.pairs import BrokerHitCounts
from controller.wire.journal import encode_entry
from tests.journal_entries import entry, parse_entry


def read_back(memory: StrategyMemory) -> StrategyMemory:
    read = parse_entry(encode_entry(entry(placement=memory)))
    assert isinstance(read, JournalEntry)
    return read.memory.placement


@pytest.mark.parametrize("kind", MEMORIES.values())
def test_a_memory_of_any_kind_comes_back_from_the_journal_as_what_it_was(kind: type[StrategyMemory]) -> None:
    assert read_back(kind()) == kind()


def test_no_two_kinds_of_memory_go_by_one_name() -> None:
    strategies: list[Any] = [*SHEDDERS.values(), *PLACEMENTS.values(), *SPLIT_POLICIES.values()]
    kinds = {type(strategy().initial_memory()) for strategy in strategies}
    assert all(MEMORIES[kind.kind] is kind for kind in kinds)


@pytest.mark.parametrize(
    "memory",
    [
        BrokerHitCounts(high={"b1": 2, "b2": 0}, low={"b1": 3}),
        RoundRobinTurn(count=7, order=("b2", "b1")),
        IntervalUsageHistory(as_of_ms=1_700_000_040_000, usage={"b2": 1 / 3, "b1": 0.1}),
    ],
)
def test_what_is_remembered_comes_back(memory: StrategyMemory) -> None:
    assert read_back(memory) == memory


def test_a_history_that_was_moved_has_the_bytes_of_the_mapping_that_it_is() -> None:
    _, moved = UsageHistory(usage={"gone": 0.25, "b": 0.5}).smoothed(("a", "b"), np.array([0.1, 1.0]), 0.5)
    plain = UsageHistory(usage={"a": 0.1, "b": 0.75, "gone": 0.25})
    assert moved == plain
    assert encode_entry(entry(placement=moved)) == encode_entry(entry(placement=plain))
    assert read_back(moved) == moved
