"""One cycle: memory and view in, commands and verdicts out."""

from dataclasses import replace
from typing import Any

import pytest

from controller.cycle import BalancerOptions, Policy, decide
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import InFlight, Memory
from controller.model.records import CommandResult
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, Broker, broker, bundle, view

PERIOD, MINUTE = 60_000, 60_000
ACTIVE = Controls(mode="active")
LEFT, RIGHT = "acme/test/0x00000000_0x80000000", "acme/test/0x80000000_0xffffffff"
TINY = "acme/test/0x00000000_0x00000001"
HEARTBEAT = "pulsar/hot:8080/0x00000000_0xffffffff"

POLICY = Policy(
    cluster="lab",
    period_ms=PERIOD,
    shedder=ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(max_topics=100, max_bundles=3),
    split_algorithm=RangeEquallyDivide(),
)
#: Enough samples: not warming up.
WARM = replace(POLICY.initial_memory(7), last_interval=INTERVAL - PERIOD, samples=10)
HOT = {"big": 60, "small": 40}
UNEVEN = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, **HOT))


def cycle(
    cluster: ClusterView = UNEVEN,
    *results: CommandResult,
    memory: Memory = WARM,
    controls: Controls = ACTIVE,
    policy: Policy = POLICY,
) -> tuple[Decision, Memory]:
    return decide(cluster, results, memory, controls, policy)


def balancer(**options: Any) -> Policy:
    return replace(POLICY, balancer=BalancerOptions(**options))


def verdicts(decision: Decision, subject: str) -> list[tuple[Reason, str]]:
    return [(v.reason, v.by) for v in decision.verdicts if v.subject == subject]


def the(decision: Decision, reason: Reason) -> Verdict:
    (found,) = [v for v in decision.verdicts if v.reason is reason]
    return found


def moved(decision: Decision) -> list[tuple[str, str]]:
    return [(c.bundle, c.destination) for c in decision.commands if c.action == "unload"]


def split(decision: Decision) -> list[str]:
    return [c.bundle for c in decision.commands if c.action == "split"]


def under_way(command: str = "c-1", bundle: str = "big", expires_at_ms: int = INTERVAL + PERIOD) -> Memory:
    flight = InFlight(
        action="unload", bundle=bundle, source="hot", destination="cold", interval=0, expires_at_ms=expires_at_ms
    )
    return replace(WARM, in_flight={command: flight})


def crowded(*names: str) -> ClusterView:
    """Two brokers alike; the bundles *names* have too many topics."""
    return view(Broker("a", cpu=0.0, bundles={name: bundle(1, topics=101) for name in names}), broker("b", usage=0.0))


# ---- issued commands, and the memory of them ----


def test_the_busiest_bundle_of_the_overloaded_broker_is_sent_to_the_other_one() -> None:
    decision, memory = cycle()
    (command,) = decision.commands
    assert (command.action, command.bundle, command.source, command.destination) == ("unload", "big", "hot", "cold")
    assert (command.interval, command.expires_at_ms) == (INTERVAL, INTERVAL + POLICY.command_ttl_ms)
    assert memory.in_flight[command.id].bundle == "big"
    assert memory.recently_unloaded == {"big": INTERVAL}
    assert (memory.last_interval, memory.samples) == (INTERVAL, 11)
    assert decision.summary == "3 bundles on 2 brokers: 1 unloads"


def test_the_same_decision_has_the_same_id_and_another_cluster_or_interval_another() -> None:
    def command(policy: Policy = POLICY, at: int = INTERVAL) -> Command:
        memory = replace(WARM, last_interval=at - PERIOD)
        return cycle(replace(UNEVEN, as_of_ms=at), memory=memory, policy=policy)[0].commands[0]

    ids = [command().id, command().id, command(replace(POLICY, cluster="other")).id, command(at=INTERVAL + PERIOD).id]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_a_bundle_with_too_many_topics_is_split_and_another_one_is_unloaded() -> None:
    hot = Broker("hot", cpu=0.9, bundles={LEFT: bundle(60, topics=101), RIGHT: bundle(40)})
    decision, memory = cycle(view(hot, broker("cold", usage=0.1)))
    assert [(c.action, c.bundle) for c in decision.commands] == [("split", LEFT), ("unload", RIGHT)]
    assert verdicts(decision, LEFT)[-1] == (Reason.IN_FLIGHT, "split")
    assert [*memory.recently_unloaded] == [RIGHT]


def test_a_range_that_cannot_be_cut_is_left_whole_with_the_reason() -> None:
    decision, _ = cycle(crowded(TINY))
    assert decision.commands == ()
    assert the(decision, Reason.RANGE_TOO_SMALL).by == "range_equally_divide"


def test_a_bundle_without_a_better_broker_stays() -> None:
    # As fast as it is, the hot broker has the fewest messages.
    hot = broker("hot", usage=0.8, big=bundle(60, msg_rate=1), small=bundle(40, msg_rate=1))
    decision, memory = cycle(view(hot, broker("cold", usage=0.1, z=bundle(5, msg_rate=1000))))
    assert decision.commands == ()
    assert the(decision, Reason.SAME_BROKER).subject == "big"
    assert memory.in_flight == {}


# ---- results ----


@pytest.mark.parametrize("status", ["done", "already_done", "obsolete", "skipped", "dry_run"])
def test_an_answered_command_is_settled(status: str) -> None:
    decision, memory = cycle(UNEVEN, CommandResult(id="c-1", status=status), memory=under_way(bundle="z"))
    assert "c-1" not in memory.in_flight
    assert the(decision, Reason.SETTLED).subject == "z"


@pytest.mark.parametrize("status", ["failed", "expired", "fenced", "unknown"])
def test_a_failed_command_gives_a_failed_verdict(status: str) -> None:
    result = CommandResult(id="c-1", status=status, detail="HTTP 500")
    decision, memory = cycle(UNEVEN, result, memory=under_way(bundle="z"))
    assert "c-1" not in memory.in_flight
    assert the(decision, Reason.FAILED).detail == f"{status}: HTTP 500"


@pytest.mark.parametrize("status", ["done", "expired", "fenced"])
def test_a_bundle_whose_command_was_just_answered_may_be_chosen_again(status: str) -> None:
    assert moved(cycle(UNEVEN, CommandResult(id="c-1", status=status), memory=under_way())[0]) == [("big", "cold")]


def test_a_failed_move_is_not_repeated_at_once_even_without_a_grace_period() -> None:
    policy = balancer(grace_period_minutes=0)
    result = CommandResult(id="c-1", status="failed", detail="HTTP 500")
    decision, memory = cycle(UNEVEN, result, memory=under_way(), policy=policy)
    assert moved(decision) == [("small", "cold")]
    assert (Reason.BACK_OFF, "decisions.retry_failed_after_seconds") in verdicts(decision, "big")
    later = INTERVAL + policy.retry_failed_after_ms
    for at, expected in ((later - PERIOD, []), (later, [("big", "cold")])):
        alone = view(
            broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, big=60, other=40), recently_unloaded=("other",)
        )
        before = replace(memory, last_interval=at - PERIOD, in_flight={})
        assert moved(cycle(replace(alone, as_of_ms=at), memory=before, policy=policy)[0]) == expected


def test_a_split_that_failed_is_not_repeated_at_once() -> None:
    failed = CommandResult(id="c-1", status="failed")
    decision, _ = cycle(crowded(LEFT, RIGHT), failed, memory=under_way(bundle=LEFT))
    assert split(decision) == [RIGHT]
    told = the(decision, Reason.BACK_OFF)
    assert told.by == "decisions.retry_failed_after_seconds"
    assert (
        str(told)
        == "cluster: BackOff (1 bundles): not split, since commands about them failed, and they rest for a while"
    )


def test_a_result_of_an_unknown_command_changes_nothing() -> None:
    assert cycle(UNEVEN, CommandResult(id="c-9", status="done")) == cycle(UNEVEN)


def test_a_command_is_lost_when_its_executor_can_no_longer_answer() -> None:
    last = INTERVAL - POLICY.executor_timeout_ms - 2 * PERIOD
    _, waiting = cycle(memory=under_way(expires_at_ms=last))
    assert "c-1" in waiting.in_flight
    decision, memory = cycle(memory=under_way(expires_at_ms=last - 1))
    assert "c-1" not in memory.in_flight
    assert the(decision, Reason.LOST).subject == "big"


# ---- bundles that stay put, each with its own reason ----


def test_a_bundle_in_flight_stays_with_an_in_flight_verdict() -> None:
    decision, _ = cycle(memory=under_way())
    assert moved(decision) == [("small", "cold")]
    assert verdicts(decision, "big") == [(Reason.IN_FLIGHT, "in_flight")]


def test_a_broker_with_unloads_in_flight_gives_no_more_if_the_option_is_set() -> None:
    asked = balancer(waits_for_results=True)
    decision, _ = cycle(memory=under_way(), policy=asked)
    assert moved(decision) == []
    assert verdicts(decision, "big") == [(Reason.IN_FLIGHT, "in_flight")]
    assert verdicts(decision, "small") == [(Reason.IN_FLIGHT, "trimtabSheddingWaitsForResults")]
    of_another = replace(under_way().in_flight["c-1"], source="cold", destination="hot", bundle="z")
    decision, _ = cycle(memory=replace(WARM, in_flight={"c-1": of_another}), policy=asked)
    assert moved(decision) == [("big", "cold")]
    done = CommandResult(id="c-1", status="done")
    assert moved(cycle(UNEVEN, done, memory=under_way(), policy=asked)[0]) == [("big", "cold")]


@pytest.mark.parametrize("excluded", ["acme/test", LEFT])
def test_an_excluded_bundle_or_namespace_stays_with_an_excluded_verdict(excluded: str) -> None:
    cluster = view(
        broker("hot", usage=0.9, **{LEFT: 60, "acme/other/0x00000000_0xffffffff": 40}), broker("cold", usage=0.1)
    )
    decision, _ = cycle(cluster, policy=replace(POLICY, excluded=frozenset({excluded})))
    assert [bundle for bundle, _ in moved(decision)] == ["acme/other/0x00000000_0xffffffff"]
    assert verdicts(decision, LEFT) == [(Reason.EXCLUDED, "decisions.excluded")]


@pytest.mark.parametrize("own", [HEARTBEAT, "pulsar/system/0x00000000_0xffffffff"])
def test_a_system_bundle_stays_with_a_system_namespace_verdict(own: str) -> None:
    decision, _ = cycle(view(broker("hot", usage=0.9, **{own: 60, "small": 40}), broker("cold", usage=0.1)))
    assert moved(decision) == [("small", "cold")]
    assert verdicts(decision, own) == [(Reason.SYSTEM_NAMESPACE, "system_namespaces")]


def test_a_bundle_unloaded_within_the_grace_period_is_told_by_the_shedder() -> None:
    recent = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, **HOT), recently_unloaded=("big",))
    decision, _ = cycle(recent)
    assert verdicts(decision, "big") == [(Reason.RECENTLY_UNLOADED, "ThresholdShedder")]


def test_if_guardrails_leave_nothing_to_unload_the_decisions_reason_is_theirs() -> None:
    decision, _ = cycle(policy=replace(POLICY, excluded=frozenset(HOT)))
    assert decision.commands == ()
    assert verdicts(decision, "cluster")[-1] == (Reason.EXCLUDED, "ThresholdShedder")


def test_a_bundle_within_the_grace_period_is_the_reason_where_a_guardrail_holds_only_others() -> None:
    recent = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, **HOT), recently_unloaded=("small",))
    decision, _ = cycle(recent, policy=replace(POLICY, excluded=frozenset({"big"})))
    assert verdicts(decision, "cluster")[-1] == (Reason.RECENTLY_UNLOADED, "ThresholdShedder")


def test_what_was_unloaded_is_remembered_for_the_grace_period_and_no_longer() -> None:
    since = INTERVAL - 30 * MINUTE
    _, memory = cycle(memory=replace(WARM, recently_unloaded={"kept": since, "gone": since - 1}))
    assert memory.recently_unloaded == {"kept": since, "big": INTERVAL}
    _, shorter = cycle(memory=replace(WARM, recently_unloaded={"kept": since}), policy=balancer(grace_period_minutes=1))
    assert shorter.recently_unloaded == {"big": INTERVAL}


# ---- bundles that are not split ----


def test_an_excluded_bundle_does_not_count_as_a_split_of_its_namespace() -> None:
    # Two bundles, three allowed: one may be split, and the excluded one comes first by name.
    cluster = crowded(LEFT, RIGHT)
    assert split(cycle(cluster)[0]) == [LEFT]
    decision, _ = cycle(cluster, policy=replace(POLICY, excluded=frozenset({LEFT})))
    assert split(decision) == [RIGHT]
    assert (the(decision, Reason.EXCLUDED).observed, the(decision, Reason.EXCLUDED).unit) == (1, "bundles")


def test_a_bundle_in_flight_or_of_the_system_is_not_split() -> None:
    decision, _ = cycle(crowded(HEARTBEAT, LEFT, RIGHT), memory=under_way(bundle=LEFT))
    assert split(decision) == [RIGHT]


# ---- guardrails over everything ----


def held_back(decision: Decision, reason: Reason, by: str) -> bool:
    """Assert that nothing is issued, that the shedder's verdicts are there, and that the reason is given."""
    told = (Reason.OVERLOADED, "ThresholdShedder") in verdicts(decision, "hot")
    return (
        told
        and decision.commands == ()
        and verdicts(decision, "cluster")[-1] == (reason, by)
        and decision.summary.endswith(f": {reason}, 1 commands held back")
    )


@pytest.mark.parametrize(
    ("controls", "policy", "reason", "by"),
    [
        (ACTIVE, balancer(enabled=False), Reason.DISABLED, "loadBalancerEnabled"),
        (Controls(mode="observe"), POLICY, Reason.OBSERVE_ONLY, "mode"),
        (Controls(mode="active", paused=True), POLICY, Reason.PAUSED, "operator"),
        (Controls(mode="active", stale=True), POLICY, Reason.STALE, "stale_after_seconds"),
    ],
)
def test_nothing_is_issued_if_not_allowed_but_the_memory_is_updated(
    controls: Controls, policy: Policy, reason: Reason, by: str
) -> None:
    decision, memory = cycle(controls=controls, policy=policy)
    assert held_back(decision, reason, by)
    assert memory.in_flight == {}
    assert memory.recently_unloaded == {}
    assert (memory.last_interval, memory.samples) == (INTERVAL, 11)
    assert memory.shedder == cycle()[1].shedder


def test_a_dry_run_issues_commands_that_say_so() -> None:
    decision, _ = cycle(controls=Controls(mode="dry_run"))
    assert [command.mode for command in decision.commands] == ["dry_run"]
    assert [command.mode for command in cycle()[0].commands] == ["active"]


def test_a_new_cluster_warms_up_first() -> None:
    memory = POLICY.initial_memory(7)
    decision, memory = cycle(memory=memory)
    assert held_back(decision, Reason.WARMING_UP, "warm_up_samples")
    assert (the(decision, Reason.WARMING_UP).observed, the(decision, Reason.WARMING_UP).limit) == (1, 2)
    assert cycle(replace(UNEVEN, as_of_ms=INTERVAL + PERIOD), memory=memory)[0].commands


def test_a_gap_in_the_log_starts_the_warm_up_again() -> None:
    decision, memory = cycle(memory=replace(WARM, last_interval=INTERVAL - 2 * PERIOD))
    assert held_back(decision, Reason.GAP, "warm_up_samples")
    assert memory.samples == 1
    longer = replace(POLICY, warm_up_samples=3)
    decision, memory = cycle(replace(UNEVEN, as_of_ms=INTERVAL + PERIOD), memory=memory, policy=longer)
    assert held_back(decision, Reason.WARMING_UP, "warm_up_samples")
    assert cycle(replace(UNEVEN, as_of_ms=INTERVAL + 2 * PERIOD), memory=memory, policy=longer)[0].commands


def test_with_more_than_forty_percent_of_the_brokers_missing_nothing_moves() -> None:
    # Two brokers are there: one missing of three is a third, two of four are a half.
    policy = replace(POLICY, limits=Limits(freeze_share=0.4))
    assert cycle(replace(UNEVEN, missing=("x",)), policy=policy)[0].commands
    decision, _ = cycle(replace(UNEVEN, missing=("x", "y")), policy=policy)
    assert held_back(decision, Reason.FROZEN, "roster")
    assert the(decision, Reason.FROZEN).observed == 0.5
    assert verdicts(decision, "x") == [(Reason.OUTDATED_DATA, "roster")]


def test_a_single_broker_unloads_nothing() -> None:
    alone = view(broker("hot", usage=0.9, **HOT))
    decision, _ = cycle(alone)
    assert decision.commands == ()
    assert verdicts(decision, "cluster") == [(Reason.NO_BROKERS, "split"), (Reason.NO_BROKERS, "shed")]


def test_bundles_are_unloaded_at_multiples_of_the_shedding_interval_only() -> None:
    every_five = balancer(shedding_interval_minutes=5)
    due = INTERVAL + (-INTERVAL) % (5 * MINUTE)
    for at, commands in ((due, 1), (due + MINUTE, 0)):
        memory = replace(WARM, last_interval=at - PERIOD)
        decision, _ = cycle(replace(UNEVEN, as_of_ms=at), memory=memory, policy=every_five)
        assert len(decision.commands) == commands
    assert verdicts(decision, "cluster") == [(Reason.NOT_THIS_INTERVAL, "loadBalancerSheddingIntervalMinutes")]


def test_a_shedding_interval_in_seconds_replaces_the_minutes() -> None:
    every_ten_seconds = balancer(shedding_interval_minutes=5, shedding_interval_seconds=10)
    due = INTERVAL + (-INTERVAL) % (5 * MINUTE) + 10_000
    for at, commands in ((due, 1), (due + 5_000, 0)):
        memory = replace(WARM, last_interval=at - PERIOD)
        decision, _ = cycle(replace(UNEVEN, as_of_ms=at), memory=memory, policy=every_ten_seconds)
        assert len(decision.commands) == commands
    assert verdicts(decision, "cluster") == [(Reason.NOT_THIS_INTERVAL, "trimtabSheddingIntervalSeconds")]


def test_shedding_and_splitting_can_be_switched_off_separately() -> None:
    hot = Broker("hot", cpu=0.9, bundles={LEFT: bundle(1, topics=101), "big": bundle(60)})
    cluster = view(hot, broker("cold", usage=0.1))
    decision, _ = cycle(cluster, policy=replace(POLICY, shed=False))
    assert (split(decision), moved(decision)) == ([LEFT], [])
    assert (Reason.DISABLED, "shed") in verdicts(decision, "cluster")
    decision, _ = cycle(cluster, policy=replace(POLICY, split=False))
    assert (split(decision), moved(decision)) == ([], [("big", "cold")])
    assert (Reason.DISABLED, "split") in verdicts(decision, "cluster")


# ---- memory of brokers and strategies ----


def test_brokers_that_left_are_forgotten_but_not_those_without_data() -> None:
    history = UsageHistory(usage={"cold": 0.1, "gone": 0.5, "hot": 0.2, "x": 0.7})
    _, memory = cycle(replace(UNEVEN, missing=("x",)), memory=replace(WARM, shedder=history))
    assert memory.shedder == UsageHistory(usage={"cold": 0.1, "hot": 0.9, "x": 0.7})


def test_a_changed_strategy_starts_with_a_new_memory_and_a_verdict() -> None:
    strange = replace(WARM, shedder=NoMemory(), placement=UsageHistory(usage={"hot": 1.0}))
    decision, memory = cycle(memory=strange)
    plain, expected = cycle()
    assert (decision.commands, memory) == (plain.commands, expected)
    anew = [v for v in decision.verdicts if v.reason is Reason.STARTED_ANEW]
    assert [v.by for v in anew] == ["ThresholdShedder", "LeastLongTermMessageRate"]
    assert "shedder: strategy changed to " in decision.summary
    assert "placement: strategy changed to " in decision.summary
    assert "anew" not in plain.summary


def test_without_any_broker_none_is_missing() -> None:
    policy = replace(POLICY, limits=Limits(freeze_share=0.4))
    assert all(each.reason is not Reason.FROZEN for each in cycle(view(), policy=policy)[0].verdicts)


def test_exactly_forty_percent_missing_is_not_too_many() -> None:
    three = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, **HOT), broker("mild", usage=0.5, m=30))
    policy = replace(POLICY, limits=Limits(freeze_share=0.4))
    assert cycle(replace(three, missing=("x", "y")), policy=policy)[0].commands
