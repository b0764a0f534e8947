"""After a broker joins or leaves nothing is issued for some intervals; the membership rebalancer still acts later."""

from dataclasses import replace

from controller.cycle import decide
from controller.cycle.limits import Limits
from controller.model.decision import Decision, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory, Roster
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from tests.cluster import INTERVAL, broker, view
from tests.unit.cycle.test_cycle import ACTIVE, HOT, PERIOD, POLICY, UNEVEN, WARM

LIMITED = replace(POLICY, limits=Limits(freeze_intervals=2))
THREE = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, **HOT), broker("new", usage=0.1))


def at(number: int, seen: ClusterView, memory: Memory) -> tuple[Decision, Memory]:
    return decide(replace(seen, as_of_ms=INTERVAL + number * PERIOD), [], memory, ACTIVE, LIMITED)


def frozen(decision: Decision) -> Verdict | None:
    return next((verdict for verdict in decision.verdicts if verdict.reason is Reason.FROZEN), None)


def settled() -> Memory:
    decision, memory = at(0, UNEVEN, WARM)
    assert decision.commands, "the brokers of the first interval have not come"
    assert memory.roster == Roster(brokers=("cold", "hot"))
    return replace(memory, recently_unloaded={}, in_flight={})


def test_a_broker_that_joins_freezes_that_interval_and_the_next() -> None:
    memory = settled()
    for number in (1, 2):
        decision, memory = at(number, THREE, memory)
        verdict = frozen(decision)
        assert verdict is not None
        assert (decision.commands, verdict.detail, verdict.by) == ((), "came: new", "guardrails.freeze_intervals")
    decision, memory = at(3, THREE, memory)
    assert frozen(decision) is None
    assert decision.commands
    assert memory.roster == Roster(brokers=("cold", "hot", "new"))


def test_a_broker_that_leaves_freezes_too_and_every_change_restarts_the_freeze() -> None:
    _, memory = at(1, THREE, settled())
    decision, memory = at(2, UNEVEN, memory)
    verdict = frozen(decision)
    assert verdict is not None
    assert verdict.detail == "came: new; went: new"
    assert frozen(at(3, UNEVEN, memory)[0])
    assert at(4, UNEVEN, at(3, UNEVEN, memory)[1])[0].commands


def test_a_cluster_without_brokers_misses_none() -> None:
    assert frozen(at(0, view(), WARM)[0]) is None


def test_a_broker_without_data_has_not_left() -> None:
    memory = replace(settled(), roster=Roster(brokers=("cold", "hot", "late")))
    assert frozen(at(1, replace(UNEVEN, missing=("late",)), memory)[0]) is None


def test_no_freeze_where_it_is_switched_off() -> None:
    unlimited = replace(LIMITED, limits=Limits(freeze_intervals=0))
    seen = replace(THREE, as_of_ms=INTERVAL + PERIOD)
    assert decide(seen, [], settled(), ACTIVE, unlimited)[0].commands


def test_the_membership_rebalancer_acts_on_a_broker_that_joined_once_the_freeze_is_over() -> None:
    policy = replace(LIMITED, membership=RebalanceOnMembershipChange(protocol="cooperative", spread_rounds=1))
    names = [f"acme/test/0x{i:08x}_0x{i + 1:08x}" for i in range(6)]
    few, others = dict.fromkeys(names[:3], 1.0), dict.fromkeys(names[3:], 1.0)
    two = view(broker("a", **few), broker("b", **others))
    three = view(broker("a", **few), broker("b", **others), broker("c"))
    memory = replace(policy.initial_memory(1), last_interval=INTERVAL - PERIOD, samples=9)
    _, memory = decide(replace(two, as_of_ms=INTERVAL), [], memory, ACTIVE, policy)
    commands = []
    for number in (1, 2, 3):
        seen = replace(three, as_of_ms=INTERVAL + number * PERIOD)
        decision, memory = decide(seen, [], memory, ACTIVE, policy)
        commands.append([command.destination for command in decision.commands])
    assert commands == [[], [], ["c", "c"]]
