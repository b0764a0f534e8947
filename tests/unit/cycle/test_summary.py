"""What a summary says of brokers' usage: the limit, the goal and the forecast of the shedder that decided."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from controller.cycle import Policy, decide
from controller.cycle.limits import Limits
from controller.cycle.summary import summary_of
from controller.model.controls import Controls
from controller.model.decision import Reason, UnloadDecision, UsageOutlook
from controller.model.errors import StrategyError
from controller.model.journal import JournalEntry
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.strategy_memory import NoMemory
from controller.model.summary import IntervalSummary
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, view

PERIOD = 60_000
ACTIVE = Controls(mode="active")
LEFT, RIGHT = "acme/test/0x00000000_0x80000000", "acme/test/0x80000000_0xffffffff"
OTHER, THIRD = "acme/more/0x00000000_0xffffffff", "acme/rest/0x00000000_0xffffffff"
UNEVEN = view(broker("cold", usage=0.1, **{OTHER: 5}), broker("hot", usage=0.9, **{LEFT: 60, RIGHT: 40}))


@dataclass(frozen=True, kw_only=True)
class Expecting:
    """A shedder that moves nothing and has an outlook."""

    outlook: Any

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        return UnloadDecision(reason=Reason.BALANCED, outlook=self.outlook), memory


def policy(shedder: Any, **changes: Any) -> Policy:
    return Policy(
        cluster="lab",
        period_ms=PERIOD,
        shedder=shedder,
        placement=LeastLongTermMessageRate(),
        split_policy=BundleSplitterTask(max_topics=100, max_bundles=3),
        split_algorithm=RangeEquallyDivide(),
        **changes,
    )


def summaries(policy: Policy, *views: ClusterView, controls: Controls = ACTIVE) -> list[IntervalSummary]:
    """The summaries of one interval after the other."""
    memory: Memory = replace(policy.initial_memory(7), last_interval=views[0].as_of_ms - PERIOD, samples=10)
    made = []
    for each in views:
        decision, memory = decide(each, [], memory, controls, policy)
        entry = JournalEntry(cluster="lab", decision=decision, memory=memory, controls=controls)
        made.append(summary_of(each, entry, Limits(), period_ms=PERIOD, epoch=1, decided_at_ms=each.as_of_ms))
    return made


@pytest.mark.parametrize(
    ("shedder", "limit", "goal"),
    [
        (OverloadShedder(overloaded_percent=85), 85.0, None),
        (ThresholdShedder(threshold_percent=10, history_fraction=0), 60.0, None),
        (UniformLoadShedder(), None, None),
    ],
)
def test_limit_and_goal_are_those_of_the_shedder(shedder: Any, limit: float | None, goal: float | None) -> None:
    (summary,) = summaries(policy(shedder), UNEVEN)
    assert summary.limit == (None if limit is None else pytest.approx(limit))
    assert summary.goal == (None if goal is None else pytest.approx(goal))
    assert not (summary.brokers.forecast >= 0).any()


def test_the_goal_of_a_shedder_is_not_its_limit() -> None:
    (summary,) = summaries(policy(PeakShedder()), UNEVEN)
    assert summary.limit is not None
    assert summary.goal is not None
    assert 50.0 < summary.goal < summary.limit


def test_where_load_rises_the_forecast_of_a_broker_is_above_its_usage() -> None:
    views = [
        replace(
            view(
                broker("a", usage=0.2 + 0.01 * at, **{LEFT: 20 + at, RIGHT: 20}),
                broker("b", usage=0.4, **{OTHER: 40}),
                broker("c", usage=0.3, **{THIRD: 30}),
            ),
            as_of_ms=INTERVAL + at * PERIOD,
        )
        for at in range(30)
    ]
    *_, last = summaries(policy(PeakShedder()), *views)
    forecast = dict(zip(last.brokers.names, last.brokers.forecast.tolist(), strict=True))
    assert forecast["a"] > 100 * (0.2 + 0.01 * 29)
    assert forecast["b"] == pytest.approx(40, abs=5)


def test_in_an_interval_without_shedding_nothing_is_said() -> None:
    (summary,) = summaries(policy(OverloadShedder(), shed=False), UNEVEN)
    assert (summary.limit, summary.goal) == (None, None)


def test_an_outlook_is_no_part_of_what_makes_decisions_equal() -> None:
    one = decide(UNEVEN, [], policy(OverloadShedder()).initial_memory(7), ACTIVE, policy(OverloadShedder()))[0]
    assert one == replace(one, outlook=None)


@pytest.mark.parametrize(
    ("outlook", "why"),
    [
        ("soon", "its outlook"),
        (UsageOutlook(limit=float("nan")), "no number from 0 up"),
        (UsageOutlook(limit=0.5, goal=0.6), "above the limit"),
        (UsageOutlook(forecast={"hot": -0.1}), "no number from 0 up"),
        (UsageOutlook(forecast={"nobody": 0.5}), "no broker with data"),
    ],
)
def test_an_outlook_that_makes_no_sense_is_refused(outlook: Any, why: str) -> None:
    with pytest.raises(StrategyError, match=why):
        summaries(policy(Expecting(outlook=outlook)), UNEVEN)
