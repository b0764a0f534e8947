"""Mode approve: what strategies decide waits, is issued once it is approved, and expires once it no longer holds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.cycle import Policy, decide
from controller.cycle.limits import Budget, Limits
from controller.model.controls import Controls, DecisionApproval, DecisionRejection, OrderedMove, Orders
from controller.model.decision import CLUSTER, Decision, Reason
from controller.model.load import ClusterView
from controller.model.memory import Failed, InFlight, Memory
from controller.model.proposed import MOST_PROPOSED, ProposedDecision, needs_no_approval
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, Broker, broker, bundle, view

MINUTE = 60_000
POLICY = Policy(
    cluster="lab",
    period_ms=MINUTE,
    shedder=ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(max_topics=100, max_bundles=8),
    split_algorithm=RangeEquallyDivide(),
    decision_ttl_ms=10 * MINUTE,
)
WARM = replace(POLICY.initial_memory(7), last_interval=INTERVAL - MINUTE, samples=10)
HOT = {"big": 60, "mid": 25, "small": 15}
UNEVEN = view(broker("cold", usage=0.1, z=5), broker("cool", usage=0.2, y=8), broker("hot", usage=0.9, **HOT))
APPROVE = Controls(mode="approve")
LEFT, RIGHT = "acme/test/0x00000000_0x80000000", "acme/test/0x80000000_0xffffffff"


def decided(
    memory: Memory, minute: int = 0, controls: Controls = APPROVE, *, cluster: ClusterView = UNEVEN, **policy: Any
) -> tuple[Decision, Memory]:
    at = replace(cluster, as_of_ms=INTERVAL + minute * MINUTE)
    return decide(at, (), memory, controls, replace(POLICY, **policy))


def approved(decision: ProposedDecision | None, *by: str) -> Controls:
    assert decision is not None
    return replace(APPROVE, approved=(DecisionApproval(decision=decision.hash, by=by or ("bob",), at_ms=1),))


def rejected(decision: ProposedDecision | None) -> Controls:
    assert decision is not None
    rejection = DecisionRejection(decision=decision.hash, by="bob", reason="not today", at_ms=1)
    return replace(APPROVE, rejected=(rejection,))


def waiting(memory: Memory) -> list[tuple[str, str, str]]:
    return [] if memory.proposed is None else [(c.bundle, c.source, c.destination) for c in memory.proposed.commands]


def issued(decision: Decision) -> list[tuple[str, str, str]]:
    return [(each.bundle, each.source, each.destination) for each in decision.commands]


def of_cluster(decision: Decision) -> dict[Reason, str]:
    return {
        each.reason: each.detail for each in decision.verdicts if each.subject == CLUSTER and each.by == "approvals"
    }


def without(cluster: ClusterView, **columns: Any) -> ClusterView:
    return replace(cluster, brokers=replace(cluster.brokers, **columns))


def test_what_active_would_issue_waits_and_nothing_is_issued() -> None:
    active, _ = decided(WARM, controls=Controls(mode="active"))
    found, memory = decided(WARM)
    assert active.commands
    assert found.commands == ()
    assert waiting(memory) == issued(active)
    assert (memory.in_flight, memory.issued, memory.recently_unloaded) == ({}, {}, {})
    assert set(of_cluster(found)) == {Reason.AWAITS_APPROVAL}
    assert memory.proposed is not None
    assert memory.proposed.short_hash in found.summary


def test_strategies_remember_nothing_of_what_waits() -> None:
    _, memory = decided(WARM)
    _, paused = decided(WARM, controls=Controls(mode="active", paused=True))
    assert (memory.shedder, memory.split, memory.membership) == (paused.shedder, paused.split, paused.membership)


def test_while_a_decision_waits_nothing_new_is_proposed() -> None:
    _, memory = decided(WARM)
    after, later = decided(memory, 1)
    assert later.proposed == memory.proposed
    assert after.commands == ()


def test_an_approved_decision_is_issued_once() -> None:
    _, memory = decided(WARM)
    controls = approved(memory.proposed, "bob", "eve")
    first, after = decided(memory, 1, controls)
    assert issued(first) == waiting(memory)
    assert {each.mode for each in first.commands} == {"active"}
    assert {each.interval for each in first.commands} == {INTERVAL + MINUTE}
    assert all("approved by bob, eve" in each.why.detail for each in first.commands)
    assert {each.bundle for each in after.in_flight.values()} == {bundle for bundle, _, _ in issued(first)}
    assert after.proposed is None
    again, last = decided(after, 2, controls)
    assert again.commands == ()
    assert last.proposed is None or last.proposed.hash != controls.approved[0].decision


def test_an_approved_decision_is_issued_also_where_strategies_choose_nothing_more() -> None:
    tight = Limits(interval=Budget(unloads=1))
    _, memory = decided(WARM, limits=tight)
    found, after = decided(memory, 1, approved(memory.proposed), limits=tight)
    assert issued(found) == waiting(memory)
    assert len(after.in_flight) == len(after.issued) == 1


def test_an_approval_of_another_decision_issues_nothing() -> None:
    _, memory = decided(WARM)
    other = DecisionApproval(decision="0f" * 32, by=("bob",), at_ms=1)
    found, after = decided(memory, 1, replace(APPROVE, approved=(other,)))
    assert found.commands == ()
    assert after.proposed == memory.proposed


def test_a_decision_that_was_changed_after_its_approval_is_not_issued() -> None:
    _, memory = decided(WARM)
    controls = approved(memory.proposed)
    assert memory.proposed is not None
    first, *others = memory.proposed.commands
    forged = replace(memory.proposed, commands=(replace(first, destination="cool", bundle="mid"), *others))
    assert decided(replace(memory, proposed=forged), 1, controls)[0].commands == ()


@pytest.mark.parametrize("mode", ["active", "dry_run", "observe"])
def test_what_waits_is_void_once_the_mode_is_another(mode: str) -> None:
    _, memory = decided(WARM)
    found, after = decided(memory, 1, replace(approved(memory.proposed), mode=mode))
    assert after.proposed is None
    assert mode in of_cluster(found)[Reason.EXPIRED]
    assert not any("approved by" in each.why.detail for each in found.commands)


def test_a_decision_expires_and_is_made_anew() -> None:
    _, memory = decided(WARM)
    _, last = decided(memory, 10)
    assert last.proposed == memory.proposed
    found, after = decided(replace(memory, last_interval=INTERVAL + 10 * MINUTE), 11, approved(memory.proposed))
    assert found.commands == ()
    assert of_cluster(found)[Reason.EXPIRED]
    assert after.proposed is not None
    assert after.proposed != memory.proposed


def test_time_is_that_at_which_intervals_are_decided() -> None:
    _, memory = decided(WARM)
    late = replace(approved(memory.proposed), decided_at_ms=INTERVAL + 11 * MINUTE)
    assert Reason.EXPIRED in of_cluster(decided(memory, 1, late)[0])


def test_a_rejected_decision_is_not_proposed_again_before_it_would_have_expired() -> None:
    _, memory = decided(WARM)
    chosen = {each for each, _, _ in waiting(memory)}
    found, after = decided(memory, 1, rejected(memory.proposed))
    assert "not today" in of_cluster(found)[Reason.REJECTED]
    for minute in range(2, 11):
        assert not chosen & {bundle for bundle, _, _ in waiting(after)}
        assert found.commands == ()
        found, after = decided(after, minute, rejected(memory.proposed))
    at = replace(after, proposed=None, last_interval=INTERVAL + 10 * MINUTE)
    assert chosen <= {bundle for bundle, _, _ in waiting(decided(at, 11)[1])}


def test_a_rejection_does_not_bind_a_plan_of_persons() -> None:
    _, memory = decided(WARM)
    _, memory = decided(memory, 1, rejected(memory.proposed))
    assert "big" in memory.rejected
    found, _ = decided(memory, 2, replace(APPROVE, orders=plan("big")))
    assert issued(found) == [("big", "hot", "cold")]


def plan(*bundles: str) -> Orders:
    return Orders(
        plan="0f" * 32, step=1, wave=1, waves=1, holder="one", by="ada", held_back=False,
        moves=tuple(OrderedMove(bundle=each, source="hot", destination="cold") for each in bundles),
        checked_at=INTERVAL, expires_at_ms=INTERVAL + 60 * MINUTE,
    )  # fmt: skip


def test_while_a_plan_is_applied_nothing_is_proposed_and_what_is_approved_waits() -> None:
    _, memory = decided(WARM)
    controls = replace(approved(memory.proposed), orders=plan())
    found, after = decided(memory, 1, controls)
    assert found.commands == ()
    assert "a plan is being applied" in of_cluster(found)[Reason.APPROVED]
    assert issued(decided(after, 2, replace(controls, orders=None))[0]) == waiting(memory)
    assert decided(WARM, 0, replace(APPROVE, orders=plan()))[1].proposed is None


@pytest.mark.parametrize(
    "held", [{"paused": True}, {"maintenance": "a window"}, {"unknown": "not read"}, {"stale": True}]
)
def test_guardrails_hold_approved_decisions_and_nothing_is_proposed_meanwhile(held: dict[str, Any]) -> None:
    assert decided(WARM, 0, replace(APPROVE, **held))[1].proposed is None
    _, memory = decided(WARM)
    controls = approved(memory.proposed)
    found, after = decided(memory, 1, replace(controls, **held))
    assert found.commands == ()
    assert after.proposed == memory.proposed
    assert issued(decided(after, 2, controls)[0]) == waiting(memory)


def test_nothing_is_proposed_while_brokers_balance_or_the_controller_warms_up() -> None:
    assert decided(replace(WARM, samples=0))[1].proposed is None


def elsewhere(cluster: ClusterView) -> ClusterView:
    owner = np.where(np.array(cluster.bundles.names) == "big", cluster.brokers.code_of["cool"], cluster.bundles.broker)
    return replace(cluster, bundles=replace(cluster.bundles, broker=owner))


def cooler(cluster: ClusterView) -> ClusterView:
    usage = cluster.brokers.usage.copy()
    usage[cluster.brokers.code_of["hot"]] *= 0.2
    return without(cluster, usage=usage)


def fuller_destination(cluster: ClusterView) -> ClusterView:
    usage = cluster.brokers.usage.copy()
    usage[[cluster.brokers.code_of[name] for name in ("cold", "cool")]] *= 8
    return without(cluster, usage=np.minimum(usage, 88.0))


def unowned(cluster: ClusterView) -> ClusterView:
    owner = np.where(np.array(cluster.bundles.names) == "big", -1, cluster.bundles.broker)
    return replace(cluster, bundles=replace(cluster.bundles, broker=owner))


def with_another_broker(cluster: ClusterView) -> ClusterView:
    return replace(cluster, missing=("new",))


@pytest.mark.parametrize("change", [elsewhere, cooler, fuller_destination, unowned, with_another_broker])
def test_a_decision_that_no_longer_holds_expires_although_it_is_approved(
    change: Callable[[ClusterView], ClusterView],
) -> None:
    _, memory = decided(WARM)
    assert waiting(memory)[0][0] == "big"
    found, _ = decided(memory, 1, approved(memory.proposed), cluster=change(UNEVEN))
    assert found.commands == ()
    assert Reason.EXPIRED in of_cluster(found)


@pytest.mark.parametrize(
    "change",
    [
        {"recently_unloaded": {"big": INTERVAL}},
        {"failed": {"big": Failed(times=1, interval=INTERVAL)}},
        {
            "in_flight": {
                "x": InFlight(
                    action="unload", bundle="big", source="hot", destination="cool", interval=INTERVAL,
                    expires_at_ms=INTERVAL + 60 * MINUTE,
                )
            }
        },
    ],
)  # fmt: skip
def test_a_decision_about_a_bundle_to_which_something_happened_expires(change: dict[str, Any]) -> None:
    _, memory = decided(WARM)
    found, _ = decided(replace(memory, **change), 1, approved(memory.proposed))
    assert found.commands == ()
    assert Reason.EXPIRED in of_cluster(found)


@pytest.mark.parametrize("change", [{"excluded": frozenset({"big"})}, {"only": frozenset({"other/one"})}])
def test_a_decision_about_a_bundle_that_the_settings_now_exclude_expires(change: dict[str, Any]) -> None:
    _, memory = decided(WARM)
    found, _ = decided(memory, 1, approved(memory.proposed), **change)
    assert found.commands == ()
    assert Reason.EXPIRED in of_cluster(found)


def test_a_decision_to_a_broker_that_is_drained_now_expires() -> None:
    _, memory = decided(WARM)
    to = waiting(memory)[0][2]
    found, _ = decided(memory, 1, replace(approved(memory.proposed), drained=(to,)))
    assert found.commands == ()
    assert "Drained" in of_cluster(found)[Reason.EXPIRED]


def test_a_decision_waits_while_a_broker_that_it_touches_has_no_data() -> None:
    _, memory = decided(WARM)
    controls = approved(memory.proposed)
    found, after = decided(memory, 1, controls, cluster=UNEVEN.without_data({"hot"}))
    assert found.commands == ()
    assert after.proposed == memory.proposed
    assert "no data of hot" in of_cluster(found)[Reason.APPROVED]
    assert issued(decided(after, 2, controls)[0]) == waiting(memory)


def test_budgets_hold_an_approved_decision_back_as_a_whole() -> None:
    cluster = view(broker("cold", usage=0.1), broker("hot", usage=0.9, **{f"b{n}": 10 for n in range(10)}))
    tight = Limits(window=Budget(unloads=2), window_ms=5 * MINUTE)
    wide = Limits(window=Budget(unloads=20), window_ms=5 * MINUTE)
    _, memory = decided(WARM, cluster=cluster, limits=wide)
    assert len(waiting(memory)) > 2
    found, after = decided(memory, 1, approved(memory.proposed), cluster=cluster, limits=tight)
    assert found.commands == ()
    assert "budget" in of_cluster(found)[Reason.APPROVED]
    assert after.proposed == memory.proposed
    assert issued(decided(after, 2, approved(memory.proposed), cluster=cluster, limits=wide)[0]) == waiting(memory)


def test_a_decision_holds_no_more_than_a_person_can_review() -> None:
    bundles = {f"b{n:04}": 0.2 for n in range(2000)}
    cluster = view(broker("cold", usage=0.1), broker("hot", usage=0.9, **bundles))
    shedder = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=0)
    _, memory = decided(WARM, cluster=cluster, shedder=shedder)
    assert len(waiting(memory)) == MOST_PROPOSED


def test_splits_are_proposed_with_the_unloads_and_issued_as_they_were_approved() -> None:
    cluster = view(
        broker("cold", usage=0.1),
        Broker("hot", cpu=0.9, bundles={LEFT: bundle(10, topics=500), "big": bundle(60), "mid": bundle(30)}),
    )
    active, _ = decided(WARM, controls=Controls(mode="active"), cluster=cluster)
    _, memory = decided(WARM, cluster=cluster)
    assert {each.action for each in active.commands} == {"split", "unload"}
    assert memory.proposed is not None
    assert memory.proposed.commands == active.commands
    found, _ = decided(memory, 1, approved(memory.proposed), cluster=cluster)
    same = [(c.action, c.bundle, c.algorithm, c.boundaries, c.unload_after_split) for c in found.commands]
    assert same == [(c.action, c.bundle, c.algorithm, c.boundaries, c.unload_after_split) for c in active.commands]


def test_a_split_that_is_no_longer_needed_expires() -> None:
    full = view(
        broker("cold", usage=0.1), Broker("hot", cpu=0.2, bundles={LEFT: bundle(10, topics=500), RIGHT: bundle(1)})
    )
    quiet = view(
        broker("cold", usage=0.1), Broker("hot", cpu=0.2, bundles={LEFT: bundle(10, topics=50), RIGHT: bundle(1)})
    )
    _, memory = decided(WARM, cluster=full)
    assert waiting(memory) == [(LEFT, "hot", "")]
    found, after = decided(memory, 1, approved(memory.proposed), cluster=quiet)
    assert found.commands == ()
    assert after.proposed is None
    assert "below the split thresholds" in of_cluster(found)[Reason.EXPIRED]


def test_a_split_of_a_range_that_was_cut_meanwhile_expires() -> None:
    full = view(
        broker("cold", usage=0.1), Broker("hot", cpu=0.2, bundles={LEFT: bundle(10, topics=500), RIGHT: bundle(1)})
    )
    _, memory = decided(WARM, cluster=full)
    cut = replace(full, boundaries={"acme/test": (0, 0x40000000, 0x80000000, 0xFFFFFFFF)})
    assert Reason.EXPIRED in of_cluster(decided(memory, 1, approved(memory.proposed), cluster=cut)[0])


def test_moves_of_the_membership_rebalancer_are_proposed_until_the_broker_has_its_share() -> None:
    rebalance = RebalanceOnMembershipChange(protocol="cooperative", spread_rounds=1)
    before = view(broker("a", usage=0.5, **{f"a{n}": 5 for n in range(6)}), broker("b", usage=0.5, b1=5))
    after = view(broker("a", usage=0.5, **{f"a{n}": 5 for n in range(6)}), broker("b", usage=0.5, b1=5), broker("c"))
    settings: dict[str, Any] = {
        "membership": rebalance,
        "shedder": OverloadShedder(),
        "limits": Limits(freeze_intervals=0),
    }
    memory = replace(WARM, membership=rebalance.initial_memory())
    _, memory = decided(memory, 0, cluster=before, **settings)
    _, memory = decided(memory, 1, cluster=after, **settings)
    assert {each[2] for each in waiting(memory)} == {"c"}
    found, memory = decided(memory, 2, approved(memory.proposed), cluster=after, **settings)
    assert {each.why.reason for each in found.commands} == {Reason.BROKER_JOINED}


def test_a_move_that_would_make_its_destination_fuller_than_its_source_is_not_proposed() -> None:
    one = view(broker("cold", usage=0.3, y=10), broker("hot", usage=0.9, huge=100, tiny=2))
    active, _ = decided(WARM, controls=Controls(mode="active"), cluster=one)
    assert [each.bundle for each in active.commands] == ["huge"]
    found, memory = decided(WARM, cluster=one)
    assert memory.proposed is None
    [refused] = [each for each in found.verdicts if each.reason is Reason.CHECK_FAILED]
    assert (refused.subject, "fuller than hot" in refused.detail or "more than it can carry" in refused.detail) == (
        "huge",
        True,
    )


def test_the_decision_says_what_is_predicted_of_each_broker_that_it_touches() -> None:
    _, memory = decided(WARM)
    assert memory.proposed is not None
    usage = memory.proposed.usage
    touched = {name for each in memory.proposed.commands for name in (each.source, each.destination)}
    assert set(usage) == touched
    assert usage["hot"].before == pytest.approx(0.9)
    assert usage["hot"].after < usage["hot"].before
    assert all(usage[each.destination].after > usage[each.destination].before for each in memory.proposed.commands)


def test_the_same_decision_has_the_same_hash_and_every_other_one_another() -> None:
    _, one = decided(WARM)
    _, same = decided(WARM)
    _, later = decided(replace(WARM, last_interval=INTERVAL), 1)
    assert one.proposed is not None
    assert same.proposed is not None
    assert later.proposed is not None
    first, *rest = one.proposed.commands
    changed = [
        replace(one.proposed, cluster="other"),
        replace(one.proposed, commands=(replace(first, destination="cool2"), *rest)),
        replace(one.proposed, commands=(replace(first, bundle="x"), *rest)),
        replace(one.proposed, commands=(replace(first, source="x"), *rest)),
        replace(one.proposed, commands=tuple(rest)),
        later.proposed,
    ]
    assert one.proposed.hash == same.proposed.hash
    assert len({one.proposed.hash, *(each.hash for each in changed)}) == 1 + len(changed)


@pytest.mark.parametrize(
    ("free", "needs"),
    [((0, 0), True), ((3, 0), False), ((2, 0), True), ((0, 50), False), ((0, 49), True), ((3, 49), True)],
)
def test_small_decisions_need_no_approval_where_the_policy_says_so(free: tuple[int, int], needs: bool) -> None:
    assert needs_no_approval(3, 50, free_moves=free[0], free_connections=free[1]) is not needs


def test_a_decision_that_needs_no_approval_is_issued_as_in_mode_active() -> None:
    active, after = decided(WARM, controls=Controls(mode="active"), free_moves=5)
    free, memory = decided(WARM, free_moves=5)
    assert issued(free) == issued(active)
    assert memory == after


def test_an_approved_decision_leaves_predictions_of_others_moves_out() -> None:
    _, memory = decided(WARM)
    found, after = decided(memory, 1, approved(memory.proposed))
    assert found.commands
    assert after.shedder.failed_predictions(INTERVAL + 2 * MINUTE) == ()


def test_other_modes_know_nothing_of_approvals() -> None:
    given = DecisionApproval(decision="0f" * 32, by=("bob",), at_ms=1)
    for mode in ("active", "dry_run", "observe"):
        plain = decided(WARM, 0, Controls(mode=mode))
        assert decided(WARM, 0, Controls(mode=mode, approved=(given,))) == plain
