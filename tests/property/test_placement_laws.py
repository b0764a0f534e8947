"""What single placements keep beyond the laws of all of them (controller/laws/placement.py).

Bigger counts as busier in every one of them; usages are whole percents, so that no law hangs on the last bit of a sum.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.load import RATE_IN, RATE_OUT, ClusterView, Ints
from controller.strategies.catalogue import PLACEMENTS
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.placement.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from tests.cluster import Broker, Bundle, bundle, view

_OVERLOADED: Final = 0.85
#: Bits that a sum of a few fractions may be off by.
_ROUNDING: Final = 1e-9

#: They do not look at load.
_BLIND: Final = {"AvgShedder", "RoundRobinBrokerSelector"}

_bundles = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.builds(bundle, st.integers(0, 100).map(float)), max_size=3
)
_usages = st.integers(0, 120).map(lambda percent: percent / 100)
_on_its_way = st.sampled_from([0.0, 50.0, 1000.0])


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    """One to seven brokers with up to three bundles each."""
    return view(*[_drawn(draw, f"b{i}") for i in range(draw(st.integers(1, 7)))])


def _drawn(draw: st.DrawFn, name: str) -> Broker:
    bundles: dict[str, Bundle] = {f"{name}-{key}": one for key, one in draw(_bundles).items()}
    return Broker(name, cpu=draw(_usages), on_its_way=draw(_on_its_way), bundles=bundles)


def everyone(cluster: ClusterView) -> Ints:
    return np.arange(len(cluster.brokers), dtype=np.int64)


def chosen(name: str, cluster: ClusterView, candidates: Sequence[int]) -> list[int]:
    placement = PLACEMENTS[name]()
    found, _ = placement.acceptable(cluster, 0, np.array(candidates, np.int64), placement.initial_memory())
    rows: list[int] = found.tolist()
    return rows


def busy_and_free(busy: str, free: str) -> ClusterView:
    return view(
        Broker(busy, cpu=0.8, bundles={"x": bundle(500)}),
        Broker(free, cpu=0.1, bundles={"y": bundle(1)}),
    )


@pytest.mark.parametrize("name", sorted(PLACEMENTS.keys() - _BLIND))
def test_the_laws_of_placement_are_not_empty(name: str) -> None:
    assert chosen(name, busy_and_free("a", "b"), [0, 1]) == [1]
    assert chosen(name, busy_and_free("b", "a"), [0, 1]) == [0]


@pytest.mark.parametrize("name", sorted(_BLIND))
def test_a_placement_that_does_not_look_at_load_chooses_the_same_whoever_is_busy(name: str) -> None:
    assert chosen(name, busy_and_free("a", "b"), [0, 1]) == chosen(name, busy_and_free("b", "a"), [0, 1])


@given(cluster=clusters())
def test_no_broker_that_can_take_more_has_a_lower_rate_than_those_chosen(cluster: ClusterView) -> None:
    brokers = cluster.brokers
    rate = brokers.preallocated_rate + brokers.long_term[:, RATE_IN] + brokers.long_term[:, RATE_OUT]
    usage = LeastLongTermMessageRate().weighted_usage(brokers.usage, brokers.limit)
    found = chosen("LeastLongTermMessageRate", cluster, everyone(cluster).tolist())
    fit = np.flatnonzero(usage <= _OVERLOADED)
    if len(fit) == 0:
        assert found == everyone(cluster).tolist()
    else:
        assert found == fit[rate[fit] == rate[fit].min()].tolist()


@given(cluster=clusters(), start=st.lists(_usages, min_size=7, max_size=7))
def test_the_chosen_are_well_below_the_average_of_what_is_remembered(cluster: ClusterView, start: list[float]) -> None:
    placement, names = LeastResourceUsageWithWeight(), cluster.brokers.names
    found, after = placement.acceptable(
        cluster, 0, everyone(cluster), UsageHistory(usage=dict(zip(names, start, strict=False)))
    )
    usage = np.array([after.usage[name] for name in names])
    below = usage.mean() - usage - placement.difference_percent / 100
    surely, perhaps = np.flatnonzero(below > _ROUNDING).tolist(), np.flatnonzero(below >= -_ROUNDING).tolist()
    assert set(surely) <= set(found.tolist())
    assert set(found.tolist()) <= set(perhaps) or (not surely and found.tolist() == everyone(cluster).tolist())


@given(cluster=clusters(), start=_usages)
def test_smoothed_usage_lies_between_the_past_and_the_present(cluster: ClusterView, start: float) -> None:
    placement, names = LeastResourceUsageWithWeight(), cluster.brokers.names
    now = placement.weighted_usage(cluster.brokers.usage, cluster.brokers.limit)
    _, after = placement.acceptable(
        cluster, 0, everyone(cluster), UsageHistory(usage=dict.fromkeys((*names, "gone"), start))
    )
    assert after.usage["gone"] == start
    for name, present in zip(names, now.tolist(), strict=True):
        low, high = sorted((start, present))
        assert low - _ROUNDING <= after.usage[name] <= high + _ROUNDING
