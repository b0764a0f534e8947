"""Budgets: commands above them are held back in the strategies' order, give one verdict, and are issued later."""

from dataclasses import replace
from typing import Any

from controller.cycle import Policy, decide
from controller.cycle.guardrails.budgets import PLACED_IN_VAIN, Ledger, Rejection
from controller.cycle.limits import Budget, Limits
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Unload, Verdict
from controller.model.load import ClusterView
from controller.model.memory import InFlight, Issued, Memory
from controller.model.records import CommandResult
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.default_namespace_bundle_split_strategy import SplitHitCounts
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, bundle, view

PERIOD = 60_000
ACTIVE = Controls(mode="active")


def name(number: int, namespace: str = "acme/one") -> str:
    return f"{namespace}/0x{number:08x}_0x{number + 1:08x}"


def policy(**limits: Any) -> Policy:
    return Policy(
        cluster="lab",
        period_ms=PERIOD,
        shedder=OverloadShedder(overloaded_percent=50),
        placement=LeastLongTermMessageRate(),
        split_policy=BundleSplitterTask(max_topics=1000, max_bundles=99),
        split_algorithm=RangeEquallyDivide(),
        limits=Limits(**limits),
    )


def warm(policy: Policy, **more: Any) -> Memory:
    return replace(policy.initial_memory(1), last_interval=INTERVAL - PERIOD, samples=9, **more)


def _bundles(namespace: str, **more: int) -> dict[str, Any]:
    return {name(i, namespace): bundle(40 - i, producers=2, **more) for i in range(6)}


#: Both overloaded; each gives its busiest bundles until it is below the limit.
OVERLOADED = view(
    broker("a:80", usage=0.99, **_bundles("acme/one", consumers=3)),
    broker("b:80", usage=0.99, **_bundles("acme/two")),
    broker("c:80", usage=0.01, **{name(90): 1}),
    broker("d:80", usage=0.01, **{name(91): 1}),
)


def cycle(
    policy: Policy, seen: ClusterView = OVERLOADED, *, memory: Memory | None = None, at: int = INTERVAL
) -> tuple[Decision, Memory]:
    return decide(replace(seen, as_of_ms=at), [], memory or warm(policy), ACTIVE, policy)


def unloaded(decision: Decision) -> list[str]:
    return [command.bundle for command in decision.commands if command.action == "unload"]


def over(decision: Decision) -> list[Verdict]:
    return [verdict for verdict in decision.verdicts if verdict.reason is Reason.BUDGET]


ALL = unloaded(cycle(policy())[0])


def test_without_limits_everything_chosen_is_issued() -> None:
    assert len(ALL) >= 5
    assert {bundle.rpartition("/")[0] for bundle in ALL} == {"acme/one", "acme/two"}


def test_the_clusters_budget_admits_the_first_commands_and_counts_the_rest() -> None:
    limited = policy(interval=Budget(unloads=2))
    decision, memory = cycle(limited)
    assert unloaded(decision) == ALL[:2]
    (verdict,) = over(decision)
    assert (verdict.subject, verdict.observed, verdict.limit) == ("cluster", 2, 2)
    assert (verdict.unit, verdict.by) == ("unloads an interval", "guardrails.interval.unloads")
    assert verdict.detail == f"{len(ALL) - 2} held back, the first is {ALL[2]}"
    assert set(memory.recently_unloaded) == set(ALL[:2])
    assert len(memory.issued) == len(memory.in_flight) == 2
    assert decision.summary.endswith(f": 2 unloads, {len(ALL) - 2} held back by budgets")


def test_a_source_over_its_budget_does_not_use_the_budgets_of_others() -> None:
    decision, _ = cycle(policy(interval=Budget(unloads_per_source=1)))
    assert unloaded(decision) == [name(0), name(0, "acme/two")]
    assert [(v.subject, v.by) for v in over(decision)] == [
        ("a:80", "guardrails.interval.unloads_per_source"),
        ("b:80", "guardrails.interval.unloads_per_source"),
    ]


def test_a_namespace_and_a_destination_have_budgets_of_their_own() -> None:
    decision, _ = cycle(policy(interval=Budget(unloads_per_namespace=2)))
    assert unloaded(decision) == [name(0), name(1), name(0, "acme/two"), name(1, "acme/two")]
    decision, _ = cycle(policy(interval=Budget(unloads_per_destination=1)))
    assert sorted(command.destination for command in decision.commands) == ["c:80", "d:80"]
    assert {v.by for v in over(decision)} == {"guardrails.interval.unloads_per_destination"}


def test_connections_are_producers_and_consumers_and_a_closed_budget_lets_no_smaller_bundle_overtake() -> None:
    # Five connections a bundle of a:80, two a bundle of b:80: there is room for two and one.
    decision, _ = cycle(policy(interval=Budget(connections=12)))
    assert unloaded(decision) == ALL[:2]
    (verdict,) = over(decision)
    assert (verdict.observed, verdict.limit, verdict.unit) == (10, 12, "connections an interval")


def test_a_bundle_larger_than_a_budget_is_never_issued_and_closes_no_budget() -> None:
    decision, memory = cycle(policy(interval=Budget(connections=4)))
    assert unloaded(decision) == [name(0, "acme/two"), name(1, "acme/two")]
    never = over(decision)[0]
    assert never.detail.endswith("alone more than this limit, so never issued while it stands")
    assert name(0) not in memory.recently_unloaded


def test_the_window_counts_earlier_intervals_until_they_lie_outside_of_it() -> None:
    limited = policy(window=Budget(unloads=3), window_ms=2 * PERIOD)
    first, memory = cycle(limited)
    assert len(unloaded(first)) == 3
    second, memory = cycle(limited, memory=memory, at=INTERVAL + PERIOD)
    assert unloaded(second) == []
    assert over(second)[0].unit == "unloads in 120 s"
    assert len(memory.issued) == 3
    third, memory = cycle(limited, memory=memory, at=INTERVAL + 2 * PERIOD)
    assert len(unloaded(third)) == 3
    assert {each.interval for each in memory.issued.values()} == {INTERVAL + 2 * PERIOD}, "the old ones are dropped"


def test_commands_that_were_never_begun_do_not_count_in_the_window() -> None:
    limited = policy(window=Budget(unloads=3))
    first, memory = cycle(limited)
    results = [CommandResult(id=command.id, status="expired") for command in first.commands[:2]]
    seen = replace(OVERLOADED, as_of_ms=INTERVAL + PERIOD)
    second, memory = decide(seen, results, memory, ACTIVE, limited)
    assert len(unloaded(second)) == 2
    assert len(memory.issued) == 3


def test_no_more_commands_are_in_flight_than_allowed_in_the_cluster_and_for_each_broker() -> None:
    flight = InFlight(
        action="unload", bundle="x", source="a:80", destination="c:80", interval=0, expires_at_ms=INTERVAL + PERIOD
    )
    limited = policy(in_flight=3)
    decision, memory = cycle(limited, memory=warm(limited, in_flight={"c-1": flight}))
    assert len(memory.in_flight) == 3
    assert (over(decision)[0].by, over(decision)[0].unit) == ("guardrails.in_flight", "commands in flight")
    limited = policy(in_flight_per_broker=1)
    decision, _ = cycle(limited, memory=warm(limited, in_flight={"c-1": flight}))
    assert [(c.source, c.destination) for c in decision.commands] == [("b:80", "d:80")]


def test_splits_have_budgets_and_count_connections_only_where_they_unload() -> None:
    wide = [f"acme/one/0x{i:08x}_0x{i + 0x100:08x}" for i in range(0, 0x400, 0x100)]
    large: dict[str, Any] = {each: bundle(1, topics=2000, producers=3) for each in wide}
    seen = view(
        broker("a:80", **large),
        broker("b:80", **{name(0x900): 1}),
    )
    for limits, splits in (
        (Limits(interval=Budget(splits=1)), 1),
        (Limits(interval=Budget(splits_per_namespace=2)), 2),
        (Limits(interval=Budget(splits_per_source=3)), 3),
        (Limits(interval=Budget(connections=7)), 2),
        (Limits(interval=Budget(unloads=1, unloads_per_destination=1)), 4),
    ):
        limited = replace(policy(), limits=limits)
        decision, _ = cycle(limited, seen)
        assert [c.bundle for c in decision.commands if c.action == "split"] == wide[:splits]
    quiet = replace(limited, limits=Limits(interval=Budget(connections=1)))
    quiet = replace(quiet, balancer=replace(quiet.balancer, unload_split_bundles=False))
    assert len(cycle(quiet, seen)[0].commands) == 4


def test_a_move_of_the_membership_rebalancer_that_is_held_back_comes_in_the_next_interval() -> None:
    limited = replace(
        policy(interval=Budget(unloads=1)),
        membership=RebalanceOnMembershipChange(protocol="cooperative", spread_rounds=1),
    )
    quiet: dict[str, Any] = {name(i): bundle(1) for i in range(6)}
    before = view(broker("a:80", **quiet), broker("b:80", **{name(90): 1}))
    _, memory = cycle(limited, before, memory=warm(limited))
    joined = view(broker("a:80", **quiet), broker("b:80", **{name(90): 1}), broker("c:80"))
    moved = []
    for number in (1, 2):
        decision, memory = cycle(limited, joined, memory=memory, at=INTERVAL + number * PERIOD)
        moved += [(command.bundle, command.destination) for command in decision.commands]
    assert len(set(moved)) == 2
    assert {destination for _, destination in moved} == {"c:80"}


def test_after_many_refused_placements_the_rest_is_not_placed() -> None:
    placed = []

    class Counting(LeastLongTermMessageRate):
        def acceptable(self, view: ClusterView, bundle: int, candidates: Any, memory: Any) -> Any:
            placed.append(bundle)
            return super().acceptable(view, bundle, candidates, memory)

    many: dict[str, Any] = {name(2 * i): bundle(1) for i in range(3 * PLACED_IN_VAIN)}
    seen = view(broker("a:80", usage=0.99, **many), broker("c:80", usage=0.01, **{name(0x9000): 1}))
    shedder = OverloadShedder(overloaded_percent=50)
    limited = replace(policy(interval=Budget(unloads_per_destination=1)), placement=Counting(), shedder=shedder)
    decision, _ = cycle(limited, seen)
    assert len(decision.commands) == 1
    assert len(placed) == 1 + PLACED_IN_VAIN
    refused, untried = over(decision)
    assert (refused.subject, refused.observed, refused.limit) == ("c:80", 1, 1)
    assert (untried.subject, untried.observed, untried.limit) == ("cluster", PLACED_IN_VAIN, PLACED_IN_VAIN)


def test_a_split_without_connections_passes_a_closed_budget_of_connections_and_an_unload_without_does_not() -> None:
    ledger = Ledger(Limits(interval=Budget(connections=10)), (), ())
    unload = Issued(action="unload", namespace="n", source="a", destination="b", connections=8, interval=1)
    assert ledger.try_charge("x", unload) is None
    assert ledger.try_charge("y", unload) is Rejection.RETRY
    assert ledger.try_charge("z", replace(unload, connections=0)) is Rejection.RETRY
    assert ledger.try_charge("z", replace(unload, action="split", destination="", connections=0)) is None
    assert ledger.try_charge("z", replace(unload, action="split", destination="", connections=1)) is Rejection.RETRY


# ---- what strategies remember ----


def unload(source: str, destination: str = "") -> Unload:
    why = Verdict(subject=source, reason=Reason.OVERLOADED)
    return Unload(bundle=f"of {source}", source=source, destination=destination, why=why)


def test_commands_that_are_only_tried_find_the_same_budgets_and_use_none() -> None:
    def moved(connections: int) -> Issued:
        return Issued(
            action="unload", namespace="n", source="a", destination="b", connections=connections, interval=INTERVAL
        )

    ledger = Ledger(Limits(interval=Budget(connections=10)), (), ())
    assert [ledger.try_charge("x", moved(8)), ledger.try_charge("y", moved(5))] == [None, Rejection.RETRY]
    tried = ledger.copy()
    assert tried.try_charge("z", moved(1)) is Rejection.RETRY, "what comes later overtakes nothing"
    assert tried.rejects_any_destination("z", moved(1)) is Rejection.RETRY
    assert (tried.held_back, ledger.held_back) == (3, 1)
    fresh = Ledger(Limits(interval=Budget(connections=10)), (), ())
    assert fresh.copy().try_charge("x", moved(8)) is None
    assert fresh.try_charge("y", moved(8)) is None


def test_every_unload_that_finds_its_source_closed_is_counted() -> None:
    ledger = Ledger(Limits(interval=Budget(unloads_per_source=1)), (), ())
    one = Issued(action="unload", namespace="n", source="a", destination="", connections=1, interval=1)
    assert ledger.try_charge("x", one) is None
    assert [ledger.rejects_any_destination(bundle, one) for bundle in "yzw"] == [Rejection.RETRY] * 3
    assert ledger.held_back == 3


def test_where_source_and_destination_both_have_too_much_in_flight_the_source_is_named() -> None:
    under_way = InFlight(action="unload", bundle="x", source="a", destination="b", interval=1, expires_at_ms=9)
    ledger = Ledger(Limits(in_flight_per_broker=1), (), [under_way])
    one = Issued(action="unload", namespace="n", source="b", destination="a", connections=1, interval=1)
    assert ledger.try_charge("y", one) is Rejection.RETRY
    assert [verdict.subject for verdict in ledger.verdicts()] == ["b"]


def test_a_split_that_is_held_back_keeps_its_hits() -> None:
    before = SplitHitCounts(hits={"x": 3, "y": 2}, owners={"x": "b1", "y": "b1"})
    after = SplitHitCounts(hits={"y": 3}, owners={"y": "b2"})
    kept = SplitHitCounts(hits={"x": 3, "y": 3}, owners={"x": "b1", "y": "b2"})
    assert after.revert_unissued_splits(before, {"x"}) == kept
    assert after.revert_unissued_splits(before, ()) == after
