"""After a start without a checkpoint, or after a gap, nothing is issued before there are enough samples."""

import re
from dataclasses import replace

import pytest

from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from tests.journal_entries import parse_entry
from tests.logs import PERIOD, START, Shape, located, log
from tests.pure_controller import POLICY, Controller

INTERVALS = 7
#: Always has something to split.
EAGER = replace(POLICY, split_policy=BundleSplitterTask(max_topics=2))


def run(*, warm_up: int, silent: frozenset[int] = frozenset(), seed: int = 0, calm: bool = True) -> Controller:
    controller = Controller(policy=replace(EAGER, warm_up_samples=warm_up))
    controller.feed([*located(log(Shape(seed=seed, intervals=INTERVALS, silent=silent, calm=calm)))])
    return controller


def held_back(controller: Controller) -> dict[int, str]:
    """Interval (from 0) -> why nothing was issued in it."""
    found = {}
    for decision in controller.decisions:
        said = re.search(r": (Gap|WarmingUp), (\d+) commands held back$", decision.summary)
        if said is not None:
            assert decision.commands == ()
            assert int(said[2]) > 0
            found[number(decision)] = said[1]
    return found


def issued(controller: Controller) -> set[int]:
    return {number(decision) for decision in controller.decisions if decision.commands}


def number(decision: Decision) -> int:
    return (decision.interval - START) // PERIOD - 1


@pytest.mark.parametrize("warm_up", [1, 2, 3])
def test_a_cold_start_waits_for_its_samples(warm_up: int) -> None:
    controller = run(warm_up=warm_up)
    assert held_back(controller) == dict.fromkeys(range(warm_up - 1), "WarmingUp")
    assert min(issued(controller)) == warm_up - 1


@pytest.mark.parametrize("silent", [{3}, {2, 3}])
def test_after_a_gap_it_waits_for_as_many_samples_again(silent: set[int]) -> None:
    controller = run(warm_up=3, silent=frozenset(silent))
    assert held_back(controller) == {0: "WarmingUp", 1: "WarmingUp", 4: "Gap", 5: "WarmingUp"}
    assert not issued(controller) & {0, 1, 4, 5}
    assert 6 in issued(controller)
    assert 4 in issued(run(warm_up=3))


def test_the_journal_entry_names_the_gap() -> None:
    entries = [parse_entry(value) for value in run(warm_up=3, silent=frozenset({3})).journal]
    told = [(e.decision.summary, e.memory.samples) for e in entries if isinstance(e, JournalEntry)]
    for entry, reason, samples in ((0, "WarmingUp", 1), (1, "WarmingUp", 2), (3, "Gap", 1), (4, "WarmingUp", 2)):
        assert f": {reason}, " in told[entry][0]
        assert told[entry][1] == samples
    assert "held back" not in told[5][0]
    assert told[5][1] == 3


@pytest.mark.slow
def test_a_tick_missing_in_one_partition_is_not_a_gap() -> None:
    for seed in range(5):
        assert held_back(run(warm_up=1, seed=seed, calm=False)) == {}
