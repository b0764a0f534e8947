"""Unloads go where the filters let them, or nowhere, and the verdict names the filter."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from controller.cycle import BalancerOptions, Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView
from controller.model.policies import IsolationPolicy, Policies
from controller.model.strategy_memory import NoMemory
from controller.strategies.catalogue import FILTERS
from controller.strategies.filters.anti_affinity import ExtAntiAffinity
from controller.strategies.filters.extensible_select_broker import ExtensibleSelectBroker
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.placement.avg_shedder_placement import AvgShedder
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.protocols import Placement
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, view

ONE, TWO = "acme/own/0x00000000_0x80000000", "acme/own/0x80000000_0xffffffff"
CLUSTER = view(broker("a:80", usage=0.9, **{ONE: 60.0, TWO: 40.0}), broker("b:80"), broker("c:80"), broker("d:80"))


@dataclass(frozen=True)
class Sheds:
    """Unloads these bundles, each to the broker planned for it or anywhere ("")."""

    plan: Mapping[str, str]

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        why = Verdict(subject="a:80", reason=Reason.OVERLOADED)
        unloads = tuple(Unload(bundle=b, source="a:80", why=why, destination=to) for b, to in self.plan.items())
        return UnloadDecision(unloads=unloads, verdicts=(why,), reason=Reason.OVERLOADED), memory


def decision(
    plan: Mapping[str, str],
    *,
    cluster: ClusterView = CLUSTER,
    preallocates: bool = False,
    extensible: bool = False,
    placement: Placement[NoMemory] | None = None,
    shedder: type[Sheds] = Sheds,
    **policies: Any,
) -> Decision:
    filters = (ExtAntiAffinity(),) if extensible else tuple(cls() for cls in FILTERS.values())
    policy = Policy(
        cluster="lab",
        period_ms=60_000,
        shedder=shedder(plan),
        placement=LeastLongTermMessageRate() if placement is None else placement,
        split_policy=BundleSplitterTask(),
        split_algorithm=RangeEquallyDivide(),
        filters=filters,
        selection=ExtensibleSelectBroker() if extensible else ModularSelectBroker(),
        balancer=BalancerOptions(preallocates=preallocates),
    )
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - 60_000, samples=10)
    return decide(replace(cluster, policies=Policies(**policies)), [], memory, Controls(mode="active"), policy)[0]


def moves(made: Decision) -> dict[str, str]:
    return {command.bundle: command.destination for command in made.commands}


def about(made: Decision, bundle: str) -> list[tuple[str, str, str]]:
    return [(v.reason.value, v.by, v.detail) for v in made.verdicts if v.subject == bundle]


def own(*primary: str) -> tuple[IsolationPolicy, ...]:
    return (IsolationPolicy(namespaces=("acme/own",), primary=primary),)


def test_a_bundle_goes_to_a_broker_that_the_filters_keep() -> None:
    assert moves(decision({ONE: ""}, isolation=own("a", "c"))) == {ONE: "c:80"}


def test_with_the_extensible_load_manager_each_bundle_is_assigned_after_the_one_before_it() -> None:
    """Anti-affinity: with the first at one of two brokers, the second goes to the other."""
    cluster = view(broker("a:80", usage=0.9, **{ONE: 60.0, TWO: 40.0}), broker("b:80"), broker("c:80"))
    made = moves(decision({ONE: "", TWO: ""}, cluster=cluster, extensible=True, anti_affinity_group={"acme/own": "g"}))
    assert sorted(made.values()) == ["b:80", "c:80"]


def test_with_the_extensible_load_manager_a_bundle_does_not_count_where_it_leaves() -> None:
    """Without it its broker owns nothing of the group, and the other broker one bundle: no move would improve that."""
    cluster = view(broker("a:80", usage=0.9, **{ONE: 60.0}), broker("b:80", **{TWO: 40.0}))
    made = decision({ONE: ""}, cluster=cluster, extensible=True, anti_affinity_group={"acme/own": "g"})
    assert moves(made) == {}
    assert ("AntiAffinity", "ExtAntiAffinity", "no other broker may take it") in about(made, ONE)


@pytest.mark.parametrize(("preallocates", "destinations"), [(False, ["c:80", "c:80"]), (True, ["c:80", "d:80"])])
def test_the_next_bundle_sees_the_destination_of_the_previous_one_if_the_option_is_on(
    preallocates: bool, destinations: list[str]
) -> None:
    """Even spreading: with the first on its way to one of two brokers, the second goes to the other."""
    made = moves(decision({ONE: "", TWO: ""}, isolation=own("a", "c", "d"), preallocates=preallocates))
    assert sorted(made) == [ONE, TWO]
    assert sorted(made.values()) == destinations


@pytest.mark.parametrize("primary", [["a"], ["elsewhere"]])
def test_a_bundle_that_no_other_broker_may_take_stays_and_the_filter_is_named(primary: list[str]) -> None:
    made = decision({ONE: "", TWO: "b:80"}, isolation=own(*primary))
    assert made.commands == ()
    assert about(made, ONE) == [("IsolationPolicy", "IsolationPolicies", "no other broker may take it")]
    assert about(made, TWO) == about(made, ONE)


def test_a_planned_destination_is_used_if_the_filters_keep_it() -> None:
    made = decision({ONE: "d:80"})
    assert moves(made) == {ONE: "d:80"}
    assert about(made, ONE) == []


def test_a_planned_destination_that_a_filter_excludes_is_placed_anew() -> None:
    made = decision({ONE: "d:80"}, isolation=own("a", "c"))
    assert moves(made) == {ONE: "c:80"}
    assert about(made, ONE) == [
        ("IsolationPolicy", "IsolationPolicies", "the filter excludes the planned destination d:80: placed anew"),
    ]


@pytest.mark.parametrize(
    ("plans_by_bundle", "primary", "destination", "details"),
    [
        (False, ["a", "c", "d"], "d:80", []),
        (True, ["a", "c", "d"], "c:80", ["the planned destination d:80 is overloaded: placed anew"]),
        (True, ["a", "d"], "d:80", []),  # no other broker may take it
    ],
)
def test_a_planned_destination_that_is_overloaded_is_placed_anew_where_each_bundle_has_its_own_plan(
    plans_by_bundle: bool, primary: list[str], destination: str, details: list[str]
) -> None:
    full = view(broker("a:80", usage=0.95, **{ONE: 60.0, TWO: 40.0}), broker("c:80"), broker("d:80", usage=0.9))
    placement = AvgShedder(plans_by_bundle=plans_by_bundle)
    made = decision({ONE: "d:80"}, cluster=full, placement=placement, isolation=own(*primary))
    assert moves(made) == {ONE: destination}
    assert about(made, ONE) == [("Overloaded", "AvgShedder", detail) for detail in details]


def test_a_plan_that_only_dropped_filters_exclude_is_kept_where_all_that_they_leave_are_overloaded() -> None:
    # Even spreading leaves c, which is overloaded; without it the plan, d, is as good as before.  Pulsar 5.0: d.
    two_of_own = {f"acme/own/0x{i}0000000_0x{i + 1}0000000": 1.0 for i in (8, 9)}
    full = view(
        broker("a:80", usage=0.95, **{ONE: 60.0, "acme/own/0xa0000000_0xb0000000": 1.0}),
        broker("c:80", usage=0.9),
        broker("d:80", usage=0.1, **two_of_own),
    )
    made = decision({ONE: "d:80"}, cluster=full, placement=AvgShedder(plans_by_bundle=True))
    assert moves(made) == {ONE: "d:80"}
    assert about(made, ONE) == []
    made = decision({ONE: "d:80"}, cluster=full, placement=AvgShedder())
    assert moves(made) == {ONE: "c:80"}


@dataclass(frozen=True)
class ShedsForAvgShedder(Sheds):
    paired_placement: ClassVar[str] = "AvgShedder"


def test_a_plan_for_one_placement_is_not_followed_with_another_one() -> None:
    # Pulsar 5.0 warns: bundles go where the configured placement sends them, not where the shedder planned.
    cluster = view(
        broker("a:80", usage=0.9, **{ONE: 60.0, TWO: 40.0}),
        broker("c:80"),
        broker("d:80", **{"acme/x/0x00000000_0xffffffff": 9.0}),
    )
    for shedder, placement, destination in (
        (ShedsForAvgShedder, AvgShedder(), "d:80"),
        (ShedsForAvgShedder, LeastLongTermMessageRate(), "c:80"),
        (Sheds, LeastLongTermMessageRate(), "d:80"),
    ):
        made = decision({ONE: "d:80"}, cluster=cluster, placement=placement, shedder=shedder)
        assert moves(made) == {ONE: destination}
        assert about(made, ONE) == []


def test_a_bundle_stays_if_a_move_would_not_spread_its_group() -> None:
    # Each of the two brokers owns two namespaces of the group, and just as many bundles of the bundle's own.
    elsewhere = {"acme/own/0x40000000_0x80000000": 1.0, "acme/x/0x00000000_0x80000000": 1.0}
    here = {ONE: 60.0, "acme/x/0x80000000_0xffffffff": 1.0}
    even = view(broker("a:80", usage=0.9, **here), broker("b:80", **elsewhere))
    made = decision({ONE: ""}, cluster=even, anti_affinity_group={"acme/own": "red", "acme/x": "red"})
    assert made.commands == ()
    assert about(made, ONE) == [("AntiAffinity", "AntiAffinity", "the filter keeps it on its broker")]
    assert moves(decision({ONE: ""}, cluster=even)) == {ONE: "b:80"}


def test_of_a_policy_that_cannot_be_read_a_verdict_says_what_and_why_and_its_namespace_stays() -> None:
    made = decision({ONE: ""}, isolation=own(r"(.)\1"))
    assert made.commands == ()
    told = {detail for reason, by, detail in about(made, "cluster") if by == "isolation_policies"}
    assert "they cannot be read; 1 of 1 namespaces with bundles stay where they are" in told
    assert any("expression (.)\\1 of primary cannot be read: a backreference" in detail for detail in told)


def test_where_the_filters_leave_only_a_broker_that_is_overloaded_they_are_dropped_and_isolation_is_not() -> None:
    # Its own broker has the fewest bundles of the namespace, and is above 85 %.
    crowded = view(
        broker("a:80", usage=0.9, **{ONE: 60.0}),
        *(broker(f"{name}:80", usage=0.2, **{f"acme/own/{name}{i}": 1.0 for i in range(2)}) for name in "bc"),
    )
    assert moves(decision({ONE: ""}, cluster=crowded, isolation=own("a", "c"))) == {ONE: "c:80"}
    calm = replace(crowded, brokers=replace(crowded.brokers, usage=crowded.brokers.usage / 2))
    made = decision({ONE: ""}, cluster=calm)
    assert moves(made) == {}
    assert about(made, ONE) == [("FewestBundles", "FewestBundles", "no other broker may take it")]
