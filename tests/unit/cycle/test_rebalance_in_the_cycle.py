"""The membership rebalancer within a cycle: before the shedder, limited by filters and guardrails."""

from dataclasses import replace
from typing import Any

import pytest

from controller.cycle import Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.policies import IsolationPolicy, Policies
from controller.model.strategy_memory import NoMemory
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.strategies.catalogue import FILTERS
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.rebalance.membership import BrokerMembership, RebalanceOnMembershipChange
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, view

PERIOD = 60_000
ACTIVE = Controls(mode="active")
NAMES = [f"acme/test/0x{i:08x}_0x{i + 1:08x}" for i in range(8)]
POLICY = Policy(
    cluster="lab",
    period_ms=PERIOD,
    shedder=ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(),
    split_algorithm=RangeEquallyDivide(),
    membership=RebalanceOnMembershipChange(protocol="cooperative", spread_rounds=1),
)
#: a:80 and b:80 have been there; a:80 is overloaded for the shedder.
BEFORE = replace(
    POLICY.initial_memory(7),
    last_interval=INTERVAL - PERIOD,
    samples=10,
    membership=BrokerMembership(brokers=("a:80", "b:80")),
)


def cluster(**more: Any) -> ClusterView:
    made = view(
        broker("a:80", usage=0.9, **dict.fromkeys(NAMES[:6], 100.0)),
        broker("b:80", usage=0.3, **dict.fromkeys(NAMES[6:], 100.0)),
        broker("c:80", usage=0.0),
    )
    return replace(made, **more)


def cycle(
    seen: ClusterView, *, memory: Memory = BEFORE, controls: Controls = ACTIVE, policy: Policy = POLICY
) -> tuple[Decision, Memory]:
    return decide(seen, [], memory, controls, policy)


def moves(decision: Decision) -> dict[str, tuple[str, Reason]]:
    return {one.bundle: (one.destination, one.why.reason) for one in decision.commands}


def test_a_broker_that_joined_gets_its_share_before_the_shedder_takes_more_and_no_bundle_goes_twice() -> None:
    decision, _ = cycle(cluster())
    first, second, *rest = decision.commands
    assert [(one.destination, one.why.reason) for one in (first, second)] == [("c:80", Reason.BROKER_JOINED)] * 2
    assert {one.why.reason for one in rest} == {Reason.OVERLOADED}
    assert len(moves(decision)) == len(decision.commands)


def test_without_it_only_the_shedder_moves_anything() -> None:
    decision, memory = cycle(cluster(), policy=replace(POLICY, membership=None))
    assert {why for _, why in moves(decision).values()} == {Reason.OVERLOADED}
    assert memory.membership == NoMemory()


def test_the_next_cycle_remembers_who_joined() -> None:
    _, memory = cycle(cluster())
    assert memory.membership == BrokerMembership(brokers=("a:80", "b:80", "c:80"), joined={"c:80": 1})


def test_bundles_in_flight_and_excluded_ones_stay() -> None:
    decision, _ = cycle(cluster(), policy=replace(POLICY, excluded=frozenset(NAMES[:5])))
    assert {bundle for bundle, (_, why) in moves(decision).items() if why is Reason.BROKER_JOINED} <= {NAMES[5]}


def test_a_bundle_that_filters_keep_from_the_broker_stays_where_it_is_and_the_verdict_says_so() -> None:
    policies = Policies(isolation=(IsolationPolicy(namespaces=("acme/test",), primary=("a", "b")),))
    policy = replace(POLICY, shed=True, filters=tuple(cls() for cls in FILTERS.values()))
    decision, _ = cycle(cluster(policies=policies), policy=policy)
    assert "c:80" not in {destination for destination, _ in moves(decision).values()}
    said = [v for v in decision.verdicts if v.detail == "the filter excludes the destination c:80: it stays"]
    assert {(v.subject in NAMES, v.reason, v.by) for v in said} == {
        (True, Reason.ISOLATION_POLICY, "IsolationPolicies")
    }
    assert Reason.BROKER_JOINED not in {why for _, why in moves(decision).values()}


@pytest.mark.parametrize(
    ("controls", "memory"),
    [
        (Controls(mode="active", paused=True), BEFORE),
        (Controls(mode="observe"), BEFORE),
        (ACTIVE, replace(BEFORE, samples=0)),
    ],
)
def test_a_broker_that_joined_while_nothing_is_issued_gets_its_share_later(controls: Controls, memory: Memory) -> None:
    decision, after = cycle(cluster(), controls=controls, memory=memory)
    assert decision.commands == ()
    assert after.membership == BEFORE.membership
    later, _ = cycle(cluster(as_of_ms=INTERVAL + PERIOD), memory=after)
    assert ("c:80", Reason.BROKER_JOINED) in moves(later).values()


def test_when_switched_on_it_treats_the_present_brokers_as_old_ones() -> None:
    decision, memory = cycle(cluster(), memory=replace(BEFORE, membership=NoMemory()))
    assert Reason.BROKER_JOINED not in {why for _, why in moves(decision).values()}
    assert memory.membership == BrokerMembership(brokers=("a:80", "b:80", "c:80"))


def test_when_switched_off_its_memory_is_dropped() -> None:
    decision, memory = cycle(cluster(), policy=replace(POLICY, membership=None))
    assert memory.membership == NoMemory()
    assert [v.by for v in decision.verdicts if v.reason is Reason.STARTED_ANEW] == ["membership"]


@pytest.mark.parametrize("protocol", ["off", "eager", "cooperative"])
def test_broker_conf_turns_it_on(tmp_path: Any, protocol: str) -> None:
    (tmp_path / "broker.conf").write_text(f"trimtabRebalanceOnMembershipChange={protocol}\n", encoding="utf-8")
    settings = Settings.model_validate(
        {
            "cluster": {"name": "lab", "broker_conf": "broker.conf"},
            "log": {"kind": "folder", "folder": {"path": "log"}},
            "election": {"kind": "file", "path": "election"},
            "checkpoint": {"path": "checkpoint"},
        },
        context=tmp_path,
    )
    built = read_policy(settings).membership
    assert built == (None if protocol == "off" else RebalanceOnMembershipChange(protocol=protocol))
