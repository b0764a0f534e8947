"""A plan is carried out by the controllers, wave by wave: on a modelled cluster with the real engine and controls."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.cli.controls import stop_all
from controller.log.factory import log_system
from controller.model.controls import Drained, OrderedMove, Orders, Pause
from controller.model.decision import Reason
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.progress import plan_progress
from controller.offline.plans.repair import repaired
from controller.offline.plans.source import PlanSource
from controller.offline.plans.step_lease import PlanHaltedError
from controller.planning.plans.plan import BALANCE, DRAIN, JOIN, Plan
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ClusterShape
from controller.wire.plan import encode_plan, hash_of, parse_plan
from tests.effort import tries
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in
from tests.records import PERIOD

pytestmark = pytest.mark.slow

PAUSED = Pause(reason="upgrade", by="bob", at_ms=1)
BROKER = "broker-1:8080"


@pytest.fixture
def live(tmp_path: Path) -> LiveCluster:
    return LiveCluster(settings_in(tmp_path, broker_conf=QUIET, more=SETTINGS))


def drain(live: LiveCluster, **changes: object) -> Plan:
    asked = PlanRequest(kind=DRAIN, brokers=(BROKER,), wave_moves=3, wave_moves_per_broker=3)
    return planned_cluster(live.source(), replace(asked, **changes)).plan  # type: ignore[arg-type]


def orders_of(plan: Plan, live: LiveCluster, *, moves: tuple[OrderedMove, ...] = ()) -> Orders:
    """What a run of *plan* that has died left in force."""
    return Orders(
        plan=hash_of(plan),
        step=1,
        wave=1 if moves else 0,
        waves=1,
        moves=moves,
        checked_at=live.interval,
        expires_at_ms=live.interval + 150_000,
        holder="dead",
        by="ada",
    )


def test_a_drained_broker_ends_empty_and_each_bundle_is_unloaded_once(live: LiveCluster) -> None:
    plan = drain(live)
    held = live.bundles_on(BROKER)
    done = live.run(plan).run()
    assert (done.done, done.left_behind) == (len(plan.moves), ())
    assert live.bundles_on(BROKER) == []
    assert sorted(command.bundle for command in live.commands) == sorted(held)
    assert {command.why.reason for command in live.commands} == {Reason.PLANNED}
    assert live.controls.orders is None
    assert [(each.action, each.by, each.reason) for each in live.controls.history] == [("apply", "ada", "new kernels")]


@pytest.fixture
def six(tmp_path: Path) -> LiveCluster:
    """Six brokers under Pulsar's default filters, of which any three are nearly full with the load of all."""
    shape = ClusterShape(brokers=6, bundles=60, topics=600)
    (tmp_path / "six").mkdir()
    return LiveCluster(settings_in(tmp_path / "six", broker_conf=QUIET, more=SETTINGS), shape)


HALF = ("broker-1:8080", "broker-2:8080", "broker-3:8080")


def test_half_of_the_brokers_are_drained_while_loads_change_and_even_spreading_prefers_others(six: LiveCluster) -> None:
    plan = planned_cluster(six.source(), PlanRequest(kind=DRAIN, brokers=HALF)).plan
    assert len(plan.steps[0].waves) > 2
    done = six.run(plan).run()
    assert (done.done, done.left_behind) == (len(plan.moves), ())
    assert [six.bundles_on(broker) for broker in HALF] == [[], [], []]


def test_lookups_that_were_faster_do_not_end_the_drain_of_half_of_the_brokers(six: LiveCluster) -> None:
    plan = planned_cluster(six.source(), PlanRequest(kind=DRAIN, brokers=HALF)).plan
    elsewhere = {"broker-4:8080": "broker-5:8080", "broker-5:8080": "broker-6:8080", "broker-6:8080": "broker-4:8080"}
    smallest = plan.steps[0].waves[0][-4:]
    six.diverted = {plan.bundles[move.bundle]: elsewhere[plan.brokers[move.destination]] for move in smallest}
    done = six.run(plan).run()
    assert (done.done, done.left_behind) == (len(plan.moves), ())
    assert sum("and the plan said" in each for each in six.said) == len(smallest)


def test_moves_that_a_person_named_are_carried_out_and_no_others(live: LiveCluster) -> None:
    view = live.view
    names = [view.bundles.names[row] for row in view.bundles.of_broker(view.brokers.code_of[BROKER]).tolist()][:2]
    target = view.brokers.names[-1]  # no filter is against it
    wanted = tuple((bundle, target) for bundle in names)
    plan = planned_cluster(live.source(), PlanRequest(kind=BALANCE, named=wanted, text="move")).plan
    assert live.run(parse_plan(encode_plan(plan))[0]).run().done == 2
    assert [(command.bundle, command.destination) for command in live.commands] == list(wanted)
    assert set(names) <= set(live.bundles_on(target))


def test_waves_follow_each_other_and_each_is_in_one_interval(live: LiveCluster) -> None:
    plan = drain(live)
    live.run(plan).run()
    of_interval = [len(each.entry.decision.commands) for each in live.decided if each.entry.decision.commands]
    assert of_interval == [len(wave) for wave in plan.steps[0].waves]


def test_a_decision_reconnects_no_more_than_the_rate_allows_in_its_period_but_for_one_bundle(live: LiveCluster) -> None:
    plan, free = drain(live, connections_per_second=150 / 60, burst_seconds=60.0), drain(live)
    connections = dict(zip(plan.bundles, plan.problem.connections.tolist(), strict=True))
    live.run(plan).run()
    decided = [[connections[command.bundle] for command in each.entry.decision.commands] for each in live.decided]
    assert sum(map(len, decided)) == len(plan.moves)
    assert all(sum(each) <= 150 or len(each) == 1 for each in decided)
    assert any(len(each) > 1 for each in decided)
    assert len(list(filter(None, decided))) > len(free.steps[0].waves)


def test_a_drained_broker_gets_nothing_until_it_is_released(live: LiveCluster) -> None:
    live.run(drain(live)).run()
    assert [each.broker for each in live.controls.drained] == [BROKER]
    live.advance()
    back = planned_cluster(live.source(), PlanRequest(kind=JOIN, brokers=(BROKER,)))
    assert back.plan.moves == ()
    live.change(drained=())
    live.advance()
    back = planned_cluster(live.source(), PlanRequest(kind=JOIN, brokers=(BROKER,)))
    assert len(back.plan.moves) > 0
    assert live.run(back.plan).run().done == len(back.plan.moves)
    assert live.bundles_on(BROKER)


def test_a_plan_that_sends_bundles_to_a_drained_broker_is_refused(live: LiveCluster) -> None:
    plan = planned_cluster(live.source(), PlanRequest(kind=JOIN, brokers=("broker-6:8080",))).plan
    live.change(drained=(Drained(broker="broker-6:8080", by="bob", at_ms=1),))
    with pytest.raises(PlanHaltedError, match="is drained and gets no bundles"):
        live.run(plan).run()
    assert live.commands == []


def test_a_paused_controller_issues_nothing_and_goes_on_when_it_is_resumed(live: LiveCluster) -> None:
    plan = drain(live)
    live.change(pauses=(PAUSED,))
    intervals = iter(range(1000))

    def resume() -> None:
        if next(intervals) == 20:
            assert live.commands == []
            live.change(pauses=())

    live.meanwhile = resume
    assert live.run(plan).run().done == len(plan.moves)
    assert any("paused" in each for each in live.said)
    assert "resumed" in live.said


def test_what_was_not_issued_before_a_pause_is_checked_again_after_it(live: LiveCluster) -> None:
    plan = drain(live)
    wave = [plan.bundles[move.bundle] for move in plan.steps[0].waves[1]]
    elsewhere = next(name for name in plan.brokers[1:] if name != BROKER)
    paused_at: list[int] = []

    def pause() -> None:
        orders = live.controls.orders
        if not paused_at and orders is not None and wave[0] in {move.bundle for move in orders.moves}:
            paused_at.append(live.interval)
            live.change(pauses=(PAUSED,))
        elif paused_at and live.interval == paused_at[0] + 3 * PERIOD:
            # While it is paused somebody moves a bundle of the wave by hand.
            assert live.controls.orders is not None
            assert live.controls.orders.moves == ()
            live.hand(wave[0], BROKER, elsewhere)
        elif paused_at and live.interval == paused_at[0] + 6 * PERIOD:
            live.change(pauses=())

    live.meanwhile = pause
    planned = {plan.bundles[move.bundle]: plan.brokers[move.destination] for move in plan.moves}
    if planned[wave[0]] == elsewhere:
        elsewhere = next(name for name in plan.brokers[1:] if name not in (BROKER, elsewhere))
    with pytest.raises(PlanHaltedError, match=f"{wave[0]} is on {elsewhere}"):
        live.run(plan).run()
    assert {command.bundle for command in live.commands}.isdisjoint(wave)


def test_orders_that_have_expired_are_checked_before_they_are_given_again(live: LiveCluster) -> None:
    plan, died = drain(live), live.run(drain(live), holder="first")

    def die() -> None:
        if live.controls.orders is not None and live.controls.orders.moves:
            live.gone.add("first")
            raise Crash

    live.meanwhile = die
    with suppress(Crash):
        died.run()
    live.meanwhile = lambda: None
    orders = live.controls.orders
    assert orders is not None
    moved = orders.moves[0].bundle
    live.change(pauses=(PAUSED,))
    while orders.hold_at(live.interval):
        live.advance()
    to = next(name for name in plan.brokers[1:] if name not in (BROKER, orders.moves[0].destination))
    live.hand(moved, BROKER, to)
    live.change(pauses=())
    live.advance()
    with pytest.raises(PlanHaltedError, match=f"{moved} is on {to}"):
        live.run(plan, holder="second").run()
    assert moved not in {command.bundle for command in live.commands}


def test_a_broker_that_is_to_be_empty_and_sends_nothing_is_not_taken_for_empty(live: LiveCluster) -> None:
    plan = drain(live)
    live.silent = {BROKER}
    live.advance()
    with pytest.raises(PlanHaltedError, match=f"{BROKER}, which is to be empty, has no data"):
        live.run(plan).run()
    assert live.commands == []


def test_the_first_wave_waits_for_a_decision_that_knows_of_the_plan(live: LiveCluster) -> None:
    plan, seen = drain(live), list[Orders]()

    def look() -> None:
        if live.controls.orders is not None:
            seen.append(live.controls.orders)

    live.meanwhile = look
    live.run(plan).run()
    assert seen[0].moves == ()
    first = next(orders for orders in seen if orders.moves)
    assert first.checked_at > seen[0].checked_at


def test_a_decision_that_comes_between_two_looks_at_the_journal_is_no_failure(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, decided = drain(live), live.interval
    first = plan.moves[0]
    move = OrderedMove(bundle=plan.bundles[first.bundle], source=BROKER, destination=plan.brokers[first.destination])
    orders = Orders(
        plan=hash_of(plan),
        step=1,
        wave=1,
        waves=1,
        moves=(move,),
        checked_at=decided,
        expires_at_ms=decided + 10 * PERIOD,
        holder="this",
        by="ada",
    )
    live.obeys = lambda _: False

    def system(settings: Settings) -> Mock:
        tail = log_system(settings).tail()

        def last_entry() -> JournalEntry | None:
            found = tail.last_entry()
            live.change(orders=orders)
            live.advance()
            return found

        return Mock(tail=lambda: Mock(wraps=tail, last_entry=last_entry))

    monkeypatch.setattr("controller.offline.plans.progress.log_system", system)
    found = plan_progress(live.settings, hash_of(plan), decided)
    assert [command.bundle for command in live.commands] == [move.bundle]
    assert (found.decided, found.states) == (decided, {})


def test_stop_all_ends_it(live: LiveCluster) -> None:
    plan = drain(live)

    def stop() -> None:
        if live.commands:
            live.change(pauses=(PAUSED,), orders=None)

    live.meanwhile = stop
    with pytest.raises(PlanHaltedError, match="stopped by `trimtab stop-all`"):
        live.run(plan).run()
    assert len(live.commands) == len(plan.steps[0].waves[0])


@pytest.mark.parametrize("before", ["first load is read", "wave that is left is handed over again"])
def test_stop_all_ends_it_also_before_anything_is_in_force(live: LiveCluster, tmp_path: Path, before: str) -> None:
    plan, reads_first = drain(live), before == "first load is read"
    asked = tuple(
        OrderedMove(bundle=plan.bundles[move.bundle], source=BROKER, destination=plan.brokers[move.destination])
        for move in plan.steps[0].waves[0]
    )
    left = orders_of(plan, live, moves=asked)
    live.change(orders=None if reads_first else left)
    run = live.run(plan)

    def stop() -> None:
        if not live.controls.pauses:
            stop_all(conf=tmp_path / "trimtab.toml", reason="", by="bob")

    def source() -> PlanSource:
        stop()
        return live.source()

    def say(text: str) -> None:
        live.said.append(text)
        stop()

    run.around = replace(run.around, source=source) if reads_first else replace(run.around, say=say)
    live.meanwhile = Mock(side_effect=[None] * 5)  # it must not wait for `trimtab resume`
    with pytest.raises(PlanHaltedError, match="stopped by `trimtab stop-all`"):
        run.run()
    assert (live.controls.orders, live.controls.drained, live.commands) == (None, (), [])


@pytest.mark.parametrize("end", [TrimtabError("the log is away"), KeyboardInterrupt()])
def test_whatever_ends_it_the_brokers_that_stay_drained_are_told(live: LiveCluster, end: BaseException) -> None:
    def stop() -> None:
        if live.commands:
            raise end

    live.meanwhile = stop
    with pytest.raises(type(end)):
        live.run(drain(live)).run()
    assert (live.said[-1], live.controls.orders) == (
        f"{BROKER}: drained, no bundles before `trimtab release {BROKER}`",
        None,
    )


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("after", [1, 3, 7, 2, 5][: tries(plain=3, thorough=5)])
def test_a_run_that_dies_is_taken_up_and_nothing_is_issued_twice(live: LiveCluster, after: int) -> None:
    plan, died = drain(live), live.run(drain(live), holder="first")
    intervals = iter(range(1000))

    def die() -> None:
        if next(intervals) == after:
            live.gone.add("first")
            raise Crash

    live.meanwhile = die
    with suppress(Crash):
        died.run()
    live.meanwhile = lambda: None
    done = live.run(plan, holder="second").run()
    assert done.done == len(plan.moves)
    bundles = [command.bundle for command in live.commands]
    assert len(bundles) == len(set(bundles)) == len(plan.moves)


def test_balancing_goes_on_some_intervals_after_a_run_has_died(live: LiveCluster) -> None:
    orders = orders_of(drain(live), live)
    live.change(orders=orders)
    reasons = []
    for _ in range(4):
        live.advance()
        reasons.append(Reason.PLAN_IN_FORCE in {v.reason for v in live.decided[-1].entry.decision.verdicts})
    assert reasons == [True, True, False, False]


def test_another_plan_waits_for_the_one_that_is_being_applied(live: LiveCluster) -> None:
    plan, other = drain(live), drain(live, ceiling=0.99)
    refused: list[object] = []

    def second() -> None:
        if not refused and live.controls.orders is not None:
            with pytest.raises(PlanHaltedError, match="is being applied by ada") as halted:
                live.run(other, holder="other").run()
            refused.append(halted)

    live.meanwhile = second
    assert live.run(plan).run().done == len(plan.moves)
    assert refused


def test_a_process_whose_plan_another_one_took_up_ends(live: LiveCluster) -> None:
    plan = drain(live)
    orders: list[Orders] = []

    def taken() -> None:
        now = live.controls.orders
        if now is not None and now.moves and not orders:
            orders.append(replace(now, holder="other"))
            live.change(orders=orders[0])

    live.meanwhile = taken
    with pytest.raises(PlanHaltedError, match="stopped by another `trimtab apply`"):
        live.run(plan).run()
    assert live.controls.orders == orders[0]


def test_a_command_without_a_result_ends_it_and_names_the_bundle(live: LiveCluster) -> None:
    plan = drain(live)
    lost = plan.bundles[plan.steps[0].waves[0][0].bundle]
    live.obeys = lambda command: command.bundle != lost
    with pytest.raises(PlanHaltedError, match=f"no result came back.*before `trimtab release {BROKER}`"):
        live.run(plan).run()
    assert [each.broker for each in live.controls.drained] == [BROKER]
    assert live.controls.orders is None


def test_a_bundle_that_a_lookup_brought_elsewhere_is_told_and_the_plan_goes_on(live: LiveCluster) -> None:
    plan = drain(live)
    first = plan.moves[0]
    bundle = plan.bundles[first.bundle]
    elsewhere = next(name for name in plan.brokers[1:] if name != plan.brokers[first.destination])
    live.diverted = {bundle: elsewhere}
    done = live.run(plan).run()
    assert (done.done, done.left_behind) == (len(plan.moves), ())
    assert done.notes == (f"{bundle} went to {elsewhere}, and the plan said {plan.brokers[first.destination]}",)


def test_a_bundle_that_comes_back_ends_the_run_and_is_in_the_repaired_plan(live: LiveCluster) -> None:
    plan = drain(live)
    bundle = plan.bundles[plan.moves[0].bundle]
    live.diverted = {bundle: BROKER}
    with pytest.raises(PlanHaltedError, match=f"{bundle} was unloaded, and is still on {BROKER}"):
        live.run(plan).run()
    assert [command.bundle for command in live.commands].count(bundle) == 1
    live.diverted = {}
    new = repaired(plan, 0, live.source(), tolerance=0.25).plan
    assert bundle in {new.bundles[move.bundle] for move in new.moves}
    assert live.run(new).run().left_behind == ()


def test_a_budget_slows_the_waves_and_is_kept(tmp_path: Path) -> None:
    (tmp_path / "budget").mkdir()
    conf = settings_in(tmp_path / "budget", broker_conf=QUIET, more=f"{SETTINGS}guardrails.interval.unloads = 2\n")
    live = LiveCluster(conf)
    plan = drain(live)
    assert live.run(plan).run().done == len(plan.moves)
    assert max(len(each.entry.decision.commands) for each in live.decided) == 2


def test_what_has_changed_is_named_and_nothing_is_issued(live: LiveCluster) -> None:
    plan = drain(live)
    first = plan.moves[0]
    moved = plan.bundles[first.bundle]
    assert live.run(plan).check().changed == ()
    elsewhere = next(name for name in plan.brokers[1:] if name != plan.brokers[first.destination])
    live.hand(moved, BROKER, elsewhere)
    live.advance()
    with pytest.raises(PlanHaltedError, match=f"{moved} is on {elsewhere}"):
        live.run(plan).run()
    assert live.commands == []
    assert live.controls == live.controls.__class__()


def test_a_load_that_has_changed_is_named(live: LiveCluster) -> None:
    plan = drain(live)
    heavy = replace(plan, problem=replace(plan.problem, size=plan.problem.size * 3, fixed=plan.problem.fixed))
    with pytest.raises(PlanHaltedError, match="of its broker, and the plan says"):
        live.run(heavy, tolerance=0.25).check()
    live.run(plan, tolerance=0.25).check()


def test_what_is_left_is_planned_anew_with_a_hash_of_its_own(live: LiveCluster) -> None:
    plan = drain(live)
    moved = plan.bundles[plan.moves[0].bundle]
    live.hand(moved, BROKER, "broker-6:8080")
    live.advance()
    new = repaired(plan, 0, live.source(), tolerance=0.25).plan
    assert parse_plan(encode_plan(new))[1] != hash_of(plan)
    assert moved not in {new.bundles[move.bundle] for move in new.moves}
    assert live.run(new).run().left_behind == ()


def test_a_balance_is_repaired_to_the_moves_that_are_still_possible(live: LiveCluster) -> None:
    plan = planned_cluster(live.source(), PlanRequest(to=1.1)).plan
    assert len(plan.moves) > 1
    first = plan.moves[0]
    live.hand(plan.bundles[first.bundle], plan.brokers[first.source], plan.brokers[first.destination])
    live.advance()
    new = repaired(plan, 0, live.source(), tolerance=0.5).plan
    left = {plan.bundles[move.bundle] for move in plan.moves[1:]}
    assert {new.bundles[move.bundle] for move in new.moves} <= left


@pytest.fixture(autouse=True)
def _closed(live: LiveCluster) -> Iterator[None]:
    yield
    live.store.close()
