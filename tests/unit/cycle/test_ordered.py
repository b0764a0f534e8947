"""Orders of a plan and drained brokers in a cycle: what is issued, what holds it back, and what stays as it was."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from controller.cycle import decide
from controller.cycle.limits import Budget, Limits
from controller.cycle.ordered import with_controls
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Decision, Reason
from controller.model.load import ClusterView, Ints
from controller.model.memory import Failed, InFlight, Memory, Roster
from controller.strategies.catalogue import SHEDDERS
from controller.strategies.rebalance.membership import BrokerMembership, RebalanceOnMembershipChange
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.transfer_shedder import TransferShedder
from tests.cluster import INTERVAL, Broker, broker, view
from tests.unit.cycle.test_cycle import POLICY, WARM

ONE, TWO = "acme/own/0x00000000_0x80000000", "acme/own/0x80000000_0xffffffff"
UNEVEN = view(broker("a:80", usage=0.9, **{ONE: 60.0, TWO: 40.0}), broker("b:80"), broker("c:80"))


def orders(*moves: tuple[str, str, str], **changes: Any) -> Orders:
    found = Orders(
        plan="0f" * 32,
        step=1,
        wave=1,
        waves=2,
        moves=tuple(OrderedMove(bundle=b, source=s, destination=d) for b, s, d in moves),
        checked_at=INTERVAL - 60_000,
        expires_at_ms=INTERVAL + 60_000,
        holder="one",
        by="ada",
        held_back=False,
    )
    return replace(found, **changes)


def decided(
    given: Orders | None, *, memory: Memory = WARM, limits: Limits | None = None, **controls: Any
) -> tuple[Decision, Memory]:
    policy = POLICY if limits is None else replace(POLICY, limits=limits)
    controls = {"mode": "active", "orders": given, **controls}
    return decide(UNEVEN, [], memory, Controls(**controls), policy)


def moved(found: Decision) -> dict[str, str]:
    return {command.bundle: command.destination for command in found.commands}


def reasons(found: Decision, subject: str) -> set[Reason]:
    return {verdict.reason for verdict in found.verdicts if verdict.subject == subject}


def test_shedders_that_ask_filters_themselves_ask_for_drained_brokers_as_well() -> None:
    asking, drains = TransferShedder(), Controls(mode="active", drained=("b:8080",))
    drained = with_controls(replace(POLICY, shedder=asking), drains)
    [step] = drained.filters
    assert drained.shedder == replace(asking, filters=(step,))
    assert with_controls(POLICY, drains).shedder is POLICY.shedder
    assert with_controls(POLICY, Controls(mode="active")) is POLICY


def test_ordered_moves_are_issued_and_name_their_plan() -> None:
    found, memory = decided(orders((ONE, "a:80", "c:80"), (TWO, "a:80", "b:80")))
    assert moved(found) == {ONE: "c:80", TWO: "b:80"}
    assert {command.why.reason for command in found.commands} == {Reason.PLANNED}
    assert {command.why.detail for command in found.commands} == {"plan 0f0f0f0f0f0f, step 1, wave 1 of 2"}
    assert {each.bundle for each in memory.in_flight.values()} == {ONE, TWO}
    assert set(memory.recently_unloaded) == {ONE, TWO}


def test_strategies_unload_nothing_while_a_plan_is_in_force() -> None:
    assert decided(None)[0].commands
    found, memory = decided(orders())
    assert found.commands == ()
    assert reasons(found, "cluster") >= {Reason.PLAN_IN_FORCE}
    assert memory.shedder == WARM.shedder


def test_orders_that_have_expired_are_as_none() -> None:
    found, _ = decided(orders((ONE, "a:80", "c:80"), expires_at_ms=INTERVAL - 1))
    assert found == decided(None)[0]


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        (("acme/own/0x00000000_0xffffffff", "a:80", "b:80"), Reason.PLAN_OUTDATED),
        ((ONE, "b:80", "c:80"), Reason.PLAN_OUTDATED),
        ((ONE, "a:80", "d:80"), Reason.PLAN_OUTDATED),
        ((ONE, "a:80", "a:80"), Reason.PLAN_OUTDATED),
    ],
)
def test_what_is_not_as_the_plan_says_is_not_issued(move: tuple[str, str, str], reason: Reason) -> None:
    found, _ = decided(orders(move))
    assert found.commands == ()
    assert reasons(found, move[0]) == {reason}


def test_what_was_unloaded_since_the_check_is_not_unloaded_again() -> None:
    since = replace(WARM, recently_unloaded={ONE: INTERVAL - 30_000})
    assert moved(decided(orders((ONE, "a:80", "c:80")), memory=since)[0]) == {}
    just_then = replace(WARM, recently_unloaded={ONE: orders().checked_at})
    assert moved(decided(orders((ONE, "a:80", "c:80")), memory=just_then)[0]) == {}
    before = replace(WARM, recently_unloaded={ONE: INTERVAL - 120_000})
    assert moved(decided(orders((ONE, "a:80", "c:80")), memory=before)[0]) == {ONE: "c:80"}


def test_a_bundle_that_is_ordered_twice_is_moved_once() -> None:
    found, _ = decided(orders((ONE, "a:80", "c:80"), (ONE, "a:80", "b:80")))
    assert [(command.bundle, command.destination) for command in found.commands] == [(ONE, "c:80")]


def test_bundles_in_flight_and_after_a_failure_stay() -> None:
    flight = InFlight(
        action="unload", bundle=ONE, source="a:80", destination="b:80", interval=INTERVAL, expires_at_ms=INTERVAL + 1
    )
    found, _ = decided(orders((ONE, "a:80", "c:80")), memory=replace(WARM, in_flight={"x": flight}))
    assert (moved(found), reasons(found, ONE)) == ({}, {Reason.IN_FLIGHT})
    failed = replace(WARM, failed={ONE: Failed(times=1, interval=INTERVAL - 60_000)})
    found, _ = decided(orders((ONE, "a:80", "c:80")), memory=failed)
    assert (moved(found), reasons(found, ONE)) == ({}, {Reason.BACK_OFF})


def test_excluded_bundles_stay() -> None:
    policy = replace(POLICY, excluded=frozenset({"acme/own"}))
    given = orders((ONE, "a:80", "c:80"))
    found, _ = decide(UNEVEN, [], WARM, Controls(mode="active", orders=given), policy)
    assert (moved(found), reasons(found, ONE)) == ({}, {Reason.EXCLUDED})


@pytest.mark.parametrize("name", ["acme/own", ONE])
def test_what_a_person_excluded_stays_also_where_a_plan_moves_it(name: str) -> None:
    given = orders((ONE, "a:80", "c:80"))
    found, memory = decided(given, excluded=(name,))
    assert (moved(found), reasons(found, ONE)) == ({}, {Reason.EXCLUDED})
    assert "controls.excluded" in {each.by for each in found.verdicts}
    included, _ = decided(given, memory=memory)
    assert moved(included) == {ONE: "c:80"}


def test_budgets_hold_and_what_they_hold_back_is_issued_later() -> None:
    given = orders((ONE, "a:80", "c:80"), (TWO, "a:80", "b:80"))
    found, memory = decided(given, limits=Limits(interval=Budget(unloads=1)))
    assert moved(found) == {ONE: "c:80"}
    assert reasons(found, "cluster") >= {Reason.BUDGET}
    later = replace(UNEVEN, as_of_ms=INTERVAL + 60_000)
    policy = replace(POLICY, limits=Limits(interval=Budget(unloads=1)))
    found, _ = decide(later, [], memory, Controls(mode="active", orders=given), policy)
    assert moved(found) == {TWO: "b:80"}


@pytest.mark.parametrize("controls", [{"paused": True}, {"mode": "observe"}, {"stale": True}, {"unknown": "down"}])
def test_what_forbids_commands_forbids_those_of_a_plan(controls: dict[str, Any]) -> None:
    found, memory = decided(orders((ONE, "a:80", "c:80")), **controls)
    assert found.commands == ()
    assert memory.recently_unloaded == WARM.recently_unloaded


@pytest.mark.parametrize("name", sorted(SHEDDERS))
def test_a_drained_broker_gets_nothing_whichever_strategy_chooses(name: str) -> None:
    policy = replace(POLICY, shedder=SHEDDERS[name]())
    controls = Controls(mode="active", drained=("b:80",))
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - 60_000, samples=10)
    for _ in range(3):
        found, memory = decide(UNEVEN, [], memory, controls, policy)
        assert "b:80" not in moved(found).values()


def _commands(name: str, cluster: ClusterView, *drained: str) -> list[dict[str, str]]:
    """What is moved in each of five intervals, by the shedder *name*; the load stays as it is."""
    policy = replace(POLICY, shedder=SHEDDERS[name]())
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - 60_000, samples=10)
    found = []
    for number in range(5):
        now = replace(cluster, as_of_ms=INTERVAL + number * 60_000)
        decision, memory = decide(now, [], memory, Controls(mode="active", drained=drained), policy)
        found.append(moved(decision))
    return found


def _some(usage: float, letter: str) -> Broker:
    bundles = {f"acme/{letter}/0x{n}0000000_0x{n + 1}0000000": 40.0 * usage + n for n in range(8)}
    return broker(f"{letter}:80", usage=usage, **bundles)


@pytest.mark.parametrize("name", ["AvgShedder", "PeakShedder", "ThresholdShedder", "TransferShedder"])
def test_an_empty_drained_broker_is_no_reason_to_move_anything_nor_to_leave_anything(name: str) -> None:
    # Its room is for nobody: shedders that counted with it moved bundles among the others all the time, or none.
    rest = [_some(usage, letter) for usage, letter in zip((0.95, 0.2, 0.2), "abc", strict=True)]
    found = _commands(name, view(*rest, broker("d:80", usage=0.05)), "d:80")
    assert any(found)
    assert found == _commands(name, view(*rest))


def test_a_drained_broker_that_has_more_than_the_others_may_give() -> None:
    cluster = view(_some(0.95, "a"), _some(0.3, "b"), _some(0.2, "c"))
    found = _commands("OverloadShedder", cluster, "a:80")
    assert found[0]
    assert found == _commands("OverloadShedder", cluster)


@pytest.mark.parametrize("name", ["OverloadShedder", "PeakShedder", "TransferShedder"])
def test_where_all_other_brokers_are_drained_nothing_goes_to_them_either(name: str) -> None:
    policy = replace(POLICY, shedder=SHEDDERS[name]())
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - 60_000, samples=10)
    for _ in range(3):
        found, memory = decide(UNEVEN, [], memory, Controls(mode="active", drained=("b:80", "c:80")), policy)
        assert found.commands == ()


def test_orders_to_a_drained_broker_are_not_issued() -> None:
    found, _ = decided(orders((ONE, "a:80", "b:80"), (TWO, "a:80", "c:80")), drained=("b:80",))
    assert moved(found) == {TWO: "c:80"}
    assert reasons(found, ONE) == {Reason.DRAINED}


@dataclass(frozen=True)
class Prefers:
    """A filter that keeps every bundle where it is, and prefers one broker."""

    name: str
    reason: ClassVar[Reason] = Reason.ANTI_AFFINITY
    binding: ClassVar[bool] = False

    def keep(self, view: ClusterView, _bundle: int, candidates: Ints) -> Ints:
        kept: Ints = candidates[candidates == view.brokers.code_of[self.name]]
        return kept

    def may_leave(self, _view: ClusterView, _bundle: int, _candidates: Ints) -> bool:
        return False


def test_a_filter_that_keeps_bundles_where_they_are_holds_no_order_back() -> None:
    policy = replace(POLICY, filters=(Prefers("b:80"),))
    given = orders((ONE, "a:80", "b:80"), (TWO, "a:80", "c:80"))
    found, _ = decide(UNEVEN, [], WARM, Controls(mode="active", orders=given), policy)
    assert moved(found) == {ONE: "b:80"}
    assert reasons(found, TWO) == {Reason.ANTI_AFFINITY}  # it says where a bundle goes


def test_of_a_drained_broker_only_binding_filters_say_where_ordered_bundles_go() -> None:
    policy = replace(POLICY, filters=(Prefers("b:80"),))
    controls = Controls(mode="active", orders=orders((ONE, "a:80", "c:80")), drained=("a:80",))
    assert moved(decide(UNEVEN, [], WARM, controls, with_controls(policy, controls))[0]) == {ONE: "c:80"}
    controls = replace(controls, drained=("a:80", "c:80"))
    assert decide(UNEVEN, [], WARM, controls, with_controls(policy, controls))[0].commands == ()


@pytest.mark.parametrize("freeze", [0, 2])
def test_orders_that_were_checked_before_a_broker_came_or_went_are_not_issued(freeze: int) -> None:
    policy = replace(POLICY, limits=Limits(freeze_intervals=freeze))
    given = orders((ONE, "a:80", "c:80"), checked_at=INTERVAL - 60_000, expires_at_ms=INTERVAL + 600_000)
    memory = replace(WARM, roster=Roster(brokers=("a:80", "b:80", "c:80", "d:80")))
    for number in range(4):
        seen = replace(UNEVEN, as_of_ms=INTERVAL + number * 60_000)
        found, memory = decide(seen, [], memory, Controls(mode="active", orders=given), policy)
        assert moved(found) == {}, f"interval {number}"
        assert reasons(found, ONE) == {Reason.PLAN_OUTDATED}
    anew = replace(given, checked_at=seen.as_of_ms)
    found, memory = decide(
        replace(seen, as_of_ms=seen.as_of_ms + 60_000), [], memory, Controls(mode="active", orders=anew), policy
    )
    assert moved(found) == {ONE: "c:80"}
    assert memory.roster == Roster(brokers=("a:80", "b:80", "c:80")), "what it had to know of the change is forgotten"


def test_orders_that_were_checked_long_ago_are_not_issued() -> None:
    for late, expected in ((300_000, {ONE: "c:80"}), (300_001, {})):
        found, _ = decided(orders((ONE, "a:80", "c:80"), checked_at=INTERVAL - late))
        assert moved(found) == expected
    assert reasons(found, ONE) == {Reason.PLAN_OUTDATED}
    (why,) = {verdict.detail for verdict in found.verdicts if verdict.reason is Reason.PLAN_OUTDATED}
    assert "300 s ago" in why


@pytest.mark.parametrize(
    ("urgent", "held_back", "moves", "asked"),
    [(80, True, False, True), (95, True, False, False), (80, False, False, False), (80, True, True, False)],
)
def test_a_plan_that_is_held_back_leaves_a_broker_that_cannot_wait_to_the_shedder(
    urgent: float, held_back: bool, moves: bool, asked: bool
) -> None:
    policy = replace(POLICY, shedder=PeakShedder(urgent_percent=urgent))
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - 60_000, samples=10)
    given = orders(*[(ONE, "a:80", "c:80")] * moves, held_back=held_back)
    found, _ = decide(UNEVEN, [], memory, Controls(mode="active", orders=given), policy)
    assert Reason.PLAN_IN_FORCE in reasons(found, "cluster")
    assert {command.why.by for command in found.commands} == (
        {"PeakShedder"} if asked else {"plan"} if moves else set()
    )


def test_orders_whose_check_is_void_leave_a_broker_that_cannot_wait_to_the_shedder() -> None:
    policy = replace(POLICY, shedder=PeakShedder())
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - 60_000, samples=10)
    before = Roster(brokers=("a:80", "b:80", "c:80", "d:80"))
    for roster, by in ((before, "PeakShedder"), (Roster(), "plan")):
        given = Controls(mode="active", orders=orders((ONE, "a:80", "c:80")))
        found, _ = decide(UNEVEN, [], replace(memory, roster=roster), given, policy)
        assert {command.why.by for command in found.commands} == {by}


def test_of_a_plan_that_is_held_back_only_brokers_that_cannot_wait_are_relieved() -> None:
    """A broker has joined, and another one is above the goal: that waits for the plan."""
    cuts = [*(f"0x{number << 28:08x}" for number in range(16)), "0xffffffff"]
    names = [f"acme/own/{lower}_{upper}" for lower, upper in pairwise(cuts)]
    full = broker("a:80", usage=0.95, **dict.fromkeys(names[:8], 10.0))
    above = broker("b:80", usage=0.62, **dict.fromkeys(names[8:], 6.5))
    seen = view(full, above, broker("c:80"))
    policy = replace(POLICY, shedder=PeakShedder(), membership=RebalanceOnMembershipChange(protocol="eager"))
    joined = BrokerMembership(brokers=("a:80", "b:80"))
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - 60_000, samples=10, membership=joined)
    given = Controls(mode="active", orders=orders(held_back=True))
    found, after = decide(seen, [], memory, given, policy)
    assert {(command.source, command.why.by) for command in found.commands} == {("a:80", "PeakShedder")}
    assert after.membership == joined, "the rebalancer knows of the broker when the plan has ended"
