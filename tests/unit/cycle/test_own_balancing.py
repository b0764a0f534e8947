"""Commands wait in mode active while brokers balance by themselves, or while nobody knows whether they do."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from controller.cycle import Policy
from controller.cycle.limits import Limits
from controller.model.balancing import Balancing
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory, Roster
from tests.cluster import INTERVAL
from tests.unit.cycle.test_cycle import PERIOD, POLICY, UNEVEN, WARM, cycle, moved

OFF = Balancing(enabled=True, shedding=False, splitting=False)
SHEDS, SPLITS = OFF._replace(shedding=True), OFF._replace(splitting=True)
ALL_OFF = {"cold": OFF, "hot": OFF}
#: What was known last is believed for two intervals.
HOLDING = replace(POLICY, limits=Limits(balancing_unknown_intervals=2))
BALANCE, UNKNOWN = Reason.BROKERS_BALANCE, Reason.BROKERS_BALANCE_UNKNOWN


def at(number: int, **balancing: Balancing) -> ClusterView:
    """The uneven cluster *number* intervals later, with what is known of its brokers' switches."""
    return replace(UNEVEN, as_of_ms=INTERVAL + number * PERIOD, balancing=balancing)


def refusal(decision: Decision) -> Verdict | None:
    found = [each for each in decision.verdicts if each.reason in (BALANCE, UNKNOWN)]
    assert not (found and decision.commands)
    return found[0] if found else None


def reasons(views: Iterable[ClusterView], policy: Policy = HOLDING, memory: Memory = WARM) -> list[Reason | None]:
    """Why each interval waits for the brokers; None: it does not."""
    told: list[Reason | None] = []
    for view in views:
        decision, memory = cycle(view, memory=memory, policy=policy)
        found = refusal(decision)
        told.append(None if found is None else found.reason)
    return told


@pytest.mark.parametrize(
    ("broker", "switches"),
    [("hot", SHEDS), ("cold", SHEDS), ("cold", SPLITS), ("cold", SHEDS._replace(splitting=True))],
)
def test_one_broker_that_balances_holds_all_commands_back_and_is_named(broker: str, switches: Balancing) -> None:
    decision, memory = cycle(at(0, **{**ALL_OFF, broker: switches}))
    found = refusal(decision)
    assert found is not None
    assert (found.reason, found.observed, found.unit) == (BALANCE, 1.0, "brokers")
    assert f"=true on {broker}" in found.detail
    assert ("loadBalancerSheddingEnabled" in found.detail) is switches.shedding
    assert ("loadBalancerAutoBundleSplitEnabled" in found.detail) is switches.splitting
    assert (memory.balancing.on, memory.balancing.why) == (1, found.detail)
    assert "BrokersBalance, 1 commands held back" in decision.summary


def test_balancing_that_is_off_again_lets_commands_go_on_in_the_next_interval() -> None:
    """Also where the switch flaps: each interval goes by what is known at its end."""
    on, off = {**ALL_OFF, "hot": SHEDS}, ALL_OFF
    flapping = [at(0, **off), at(1, **on), at(2, **on), at(3, **off), at(4, **on), at(5, **off)]
    assert reasons(flapping) == [None, BALANCE, BALANCE, None, BALANCE, None]


def test_what_waited_is_issued_when_balancing_is_off_again() -> None:
    held, memory = cycle(at(0, **{**ALL_OFF, "cold": SHEDS}))
    assert not held.commands
    assert memory.recently_unloaded == {}
    freed, memory = cycle(at(1, **ALL_OFF), memory=memory)
    assert moved(freed) == moved(cycle()[0])
    assert memory.balancing == Memory().balancing


def test_only_what_trimtab_does_counts() -> None:
    on = at(0, **{**ALL_OFF, "cold": SPLITS})
    assert reasons([on], replace(HOLDING, split=False)) == [None]
    assert reasons([on], replace(HOLDING, shed=False)) == [BALANCE]


@pytest.mark.parametrize("mode", ["dry_run", "observe"])
def test_in_another_mode_nothing_waits_and_what_mode_active_would_do_is_remembered(mode: str) -> None:
    decision, memory = cycle(at(0, **{**ALL_OFF, "cold": SHEDS}), controls=Controls(mode=mode))
    assert refusal(decision) is None
    assert bool(decision.commands) is (mode == "dry_run")
    assert "true on cold" in memory.balancing.why


def test_a_pause_and_old_data_are_said_first() -> None:
    on = at(0, **{**ALL_OFF, "cold": SHEDS})
    for controls in (Controls(mode="active", paused=True), Controls(mode="active", stale=True)):
        assert refusal(cycle(on, controls=controls)[0]) is None


def test_of_many_brokers_five_are_named() -> None:
    names = [f"broker-{number:04}" for number in range(1000)]
    view = replace(at(0), missing=tuple(names), balancing=dict.fromkeys(names, SHEDS) | ALL_OFF)
    found = refusal(cycle(view)[0])
    assert found is not None
    assert found.observed == 1000
    assert "broker-0000, broker-0001, broker-0002, broker-0003, broker-0004 and 995 more" in found.detail
    assert len(found.detail) < 300


def test_switches_that_cannot_be_read_any_more_hold_commands_back_after_some_intervals() -> None:
    lost = [at(0, **ALL_OFF), *(at(number, hot=OFF) for number in range(1, 6)), at(6, **ALL_OFF)]
    assert reasons(lost) == [None, None, None, UNKNOWN, UNKNOWN, UNKNOWN, None]


def test_a_broker_whose_switches_were_never_read_holds_commands_back_at_once() -> None:
    """A new controller, and a broker that joins."""
    assert reasons([at(0), at(1)]) == [UNKNOWN, UNKNOWN]
    known = replace(WARM, roster=Roster(brokers=("cold",)))
    assert reasons([at(0, cold=OFF)], memory=known) == [UNKNOWN]


def test_the_verdict_on_unread_switches_names_the_broker_and_the_setting() -> None:
    decision, memory = cycle(at(0, hot=OFF), policy=HOLDING)
    found = refusal(decision)
    assert found is not None
    assert found.by == "guardrails.brokers_balance_unknown"
    assert "the balancing switches of cold:" in found.detail
    assert 'set brokers_balance_unknown = "ignore" in [guardrails]' in found.detail
    assert memory.balancing.unknown == {"cold": 0}


def test_unread_switches_may_be_ignored_and_known_ones_still_count() -> None:
    ignoring = replace(POLICY, limits=Limits(balancing_unknown_intervals=None))
    assert reasons([at(0), at(1, hot=SHEDS)], ignoring) == [None, BALANCE]
    assert cycle(at(0), policy=ignoring)[1].balancing == Memory().balancing


def test_where_trimtab_moves_and_splits_nothing_nobody_has_to_know() -> None:
    assert reasons([at(0)], replace(HOLDING, shed=False, split=False)) == [None]


def test_one_unread_interval_after_the_other_with_a_read_one_between_them_holds_nothing_back() -> None:
    assert (
        reasons([at(number, **(ALL_OFF if number % 3 == 0 else {"hot": OFF})) for number in range(12)]) == [None] * 12
    )


def test_a_broker_without_data_counts_too() -> None:
    view = replace(at(0, **ALL_OFF, silent=SHEDS), missing=("silent",))
    assert reasons([view]) == [BALANCE]
    assert reasons([replace(at(0, **ALL_OFF), missing=("silent",))]) == [UNKNOWN]
