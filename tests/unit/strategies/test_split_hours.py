from dataclasses import replace

import pytest

from controller.model.decision import Reason
from controller.model.errors import SettingsError
from controller.model.load import ClusterView
from controller.model.strategy_memory import NoMemory
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
    SplitHitCounts,
)
from controller.strategies.splitting.split_hours import SplitHours, WithinHours
from tests.cluster import Broker, broker, bundle, view

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
OVER = view(broker("b", x=bundle(topics=5000)))


def hours(text: str) -> list[int]:
    """The hours at whose beginning and end splits are allowed."""
    given = SplitHours(text=text)
    begins = [h for h in range(24) if given.hold(20_001 * DAY_MS + h * HOUR_MS)]
    assert begins == [h for h in range(24) if given.hold(20_001 * DAY_MS + (h + 1) * HOUR_MS - 1)]
    return begins


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [*range(24)]),
        (" ", [*range(24)]),
        ("1-5,22-24", [1, 2, 3, 4, 22, 23]),
        (" 1 - 3 , 5", [1, 2, 5]),
        ("22-2", [0, 1, 22, 23]),
        ("0-24", [*range(24)]),
        ("23", [23]),
        ("22-0", [22, 23]),
    ],
)
def test_hours_are_spans_whose_end_does_not_belong_to_them(text: str, expected: list[int]) -> None:
    assert hours(text) == expected


@pytest.mark.parametrize("text", ["1-", "-3", "1-25", "24-3", "24", "3-3", "1;2", "one", "1,,2", "1.5-2", "1-2-3"])
def test_what_is_no_span_of_hours_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="trimtabSplitHours="):
        SplitHours(text=text)


def at_hour(hour: int) -> ClusterView:
    return replace(OVER, as_of_ms=20_001 * DAY_MS + hour * HOUR_MS)


NIGHTS = WithinHours(policy=BundleSplitterTask(), hours=SplitHours(text="1-5"))


def test_within_the_hours_the_policy_decides() -> None:
    assert NIGHTS.decide(at_hour(3), NoMemory()) == BundleSplitterTask().decide(at_hour(3), NoMemory())


def test_outside_of_them_it_is_told_what_would_be_split_and_nothing_is() -> None:
    decision, _ = NIGHTS.decide(at_hour(12), NoMemory())
    assert decision.splits == ()
    assert [(v.subject, v.reason, v.by) for v in decision.verdicts] == [
        ("x", Reason.TOPICS, "BundleSplitterTask"),
        ("x", Reason.NOT_THIS_INTERVAL, "trimtabSplitHours"),
    ]
    assert decision.verdicts[-1].detail == "splits at 1-5 h UTC only"


def test_outside_of_them_the_policy_goes_on_counting() -> None:
    named = view(Broker("b", cpu=0.0, bundles={"acme/test/0x00000000_0x80000000": bundle(topics=5000)}))
    policy = WithinHours(policy=DefaultNamespaceBundleSplitStrategyImpl(), hours=SplitHours(text="1-5"))
    memory = policy.initial_memory()
    assert isinstance(memory, SplitHitCounts)
    noon = replace(named, as_of_ms=20_001 * DAY_MS + 12 * HOUR_MS)
    _, moved = policy.decide(noon, memory)
    assert moved.hits == {"acme/test/0x00000000_0x80000000": 1}


def test_topic_detail_is_wanted_as_the_policy_wants_it() -> None:
    assert NIGHTS.thresholds == BundleSplitterTask().thresholds
