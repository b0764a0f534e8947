"""A hook restarts the brokers that a plan has emptied: on a modelled cluster with the real engine and controls."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from controller.model.controls import Pause
from controller.model.errors import TrimtabError
from controller.offline.plans.applying import Applied, PlanRun, together
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.restarting import BrokerRestarts, RestartFailedError, first_step
from controller.offline.plans.source import PlanSource
from controller.offline.plans.step_lease import PlanHaltedError
from controller.planning.plans.plan import DRAIN, RESTART, Plan
from controller.simulator.cluster import ClusterShape
from controller.wire.plan import hash_of
from tests.effort import tries
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in
from tests.records import PERIOD

pytestmark = pytest.mark.slow

BROKER = "broker-1:8080"
SHAPE = ClusterShape(brokers=3, bundles=9, topics=90)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Brokers:
    """The brokers' processes, and the hook that restarts them."""

    live: LiveCluster
    #: Broker -> when its process started.
    started: dict[str, int] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    ill: set[str] = field(default_factory=set)
    #: Brokers in the order in which the hook ran for them.
    hooked: list[str] = field(default_factory=list)
    #: How many bundles that broker had.
    cut_off: list[int] = field(default_factory=list)
    #: What the hook does beside restarting; returns why it failed.
    hook_does: Callable[[str], str] = lambda _: ""
    restarts: bool = True

    def started_ms(self, broker: str) -> int:
        if broker in self.away:
            raise TrimtabError(f"{broker} does not answer")
        return self.started.setdefault(broker, 1000)

    def require_healthy(self, broker: str) -> None:
        if broker in self.ill:
            raise TrimtabError(f"{broker} cannot store a message")

    def hook(self, broker: str, meanwhile: Callable[[], None]) -> str:
        self.cut_off.append(len(self.live.bundles_on(broker)) if broker in self.live.view.brokers.code_of else 0)
        self.hooked.append(broker)
        meanwhile()
        if self.restarts:
            self.started[broker] = self.started_ms(broker) + 5
        return self.hook_does(broker)

    def run(self, plan: Plan, *, holder: str = "this", releases: bool = True) -> Applied:
        """Carry out what is left of *plan*."""
        how = BrokerRestarts(hook=self.hook, probe=self, limit_ms=3 * PERIOD, releases=releases)
        numbers = range(first_step(self.live.controls, hash_of(plan)) - 1, len(plan.steps))
        return together([self._run(plan, number, numbers, how, holder).run() for number in numbers])

    def _run(self, plan: Plan, number: int, numbers: range, how: BrokerRestarts, holder: str) -> PlanRun:
        run = self.live.run(plan, number, holder=holder)
        return replace(run, restarts=how, follows=number > numbers[0], precedes=number < numbers[-1])

    @property
    def drained(self) -> list[str]:
        return [each.broker for each in self.live.controls.drained]


@pytest.fixture
def brokers(tmp_path: Path) -> Brokers:
    return Brokers(LiveCluster(settings_in(tmp_path, broker_conf=QUIET, more=SETTINGS), SHAPE))


def drain(brokers: Brokers) -> Plan:
    return planned_cluster(brokers.live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan


def rolling(brokers: Brokers) -> Plan:
    return planned_cluster(brokers.live.source(), PlanRequest(kind=RESTART)).plan


def emptied(plan: Plan) -> list[str]:
    return [name for number in range(len(plan.steps)) for name in plan.emptied_by(number)]


def test_a_drained_broker_is_restarted_and_released(brokers: Brokers) -> None:
    done = brokers.run(drain(brokers))
    assert (brokers.hooked, brokers.cut_off, brokers.drained, done.restarted) == ([BROKER], [0], [], (BROKER,))
    assert [each.action for each in brokers.live.controls.history] == ["apply", "restart", "release"]
    assert brokers.live.controls.orders is None


def test_a_rolling_restart_restarts_each_broker_once_while_it_is_empty_and_moves_what_the_plan_says(
    brokers: Brokers,
) -> None:
    plan = rolling(brokers)
    done = brokers.run(plan)
    assert brokers.hooked == emptied(plan)
    assert sorted(brokers.hooked) == sorted(plan.brokers)
    assert set(brokers.cut_off) == {0}
    assert (brokers.drained, done.moves) == ([], len(plan.moves))
    assert len(brokers.live.commands) == len(plan.moves)


def test_strategies_are_held_back_between_the_steps_too(brokers: Brokers) -> None:
    plan = rolling(brokers)
    before = len(brokers.live.decided)
    brokers.run(plan)
    in_force = [each.entry.controls.orders is not None for each in brokers.live.decided[before + 1 :]]
    assert all(in_force)


@pytest.mark.parametrize("fails", ["hook", "same process", "ill", "away"])
def test_a_broker_that_is_not_restarted_stays_drained_and_no_other_one_is_touched(brokers: Brokers, fails: str) -> None:
    plan = rolling(brokers)
    first = emptied(plan)[0]

    def fail(broker: str) -> str:
        {"ill": brokers.ill, "away": brokers.away}.get(fails, set()).add(broker)
        return "ended with exit code 3" if fails == "hook" else ""

    brokers.hook_does, brokers.restarts = fail, fails != "same process"
    why = {
        "hook": "the hook ended with exit code 3",
        "same process": "the hook has not restarted it",
        "ill": f"{first} cannot store a message",
        "away": f"{first} does not answer",
    }[fails]
    with pytest.raises(RestartFailedError, match=f"{first} is not restarted.*{why}.*run the same command again"):
        brokers.run(plan)
    assert (brokers.hooked, brokers.drained, brokers.live.controls.orders) == ([first], [first], None)
    assert any(f"`trimtab release {first}`" in each for each in brokers.live.said)


def test_after_a_failure_it_goes_on_there_and_restarts_what_is_not_restarted(brokers: Brokers) -> None:
    plan = rolling(brokers)
    _, second, *_ = emptied(plan)
    brokers.hook_does = lambda broker: "was ended by signal 9" if broker == second else ""
    brokers.restarts = True
    with pytest.raises(RestartFailedError):
        brokers.run(plan)
    assert brokers.drained == [second]
    brokers.hook_does = lambda _: ""
    brokers.run(plan, holder="next")
    # The second one's new process answers, whatever its hook said.
    assert brokers.hooked == emptied(plan)
    assert brokers.drained == []


def test_a_broker_whose_old_process_still_runs_is_restarted_by_the_next_run(brokers: Brokers) -> None:
    plan = drain(brokers)
    brokers.restarts = False
    with pytest.raises(RestartFailedError, match="still the one that started at 1970-01-01"):
        brokers.run(plan)
    brokers.restarts = True
    assert brokers.run(plan, holder="next").restarted == (BROKER,)
    assert brokers.hooked == [BROKER, BROKER]


def test_a_broker_that_a_person_released_after_a_failure_is_left_alone(brokers: Brokers) -> None:
    plan = drain(brokers)
    brokers.hook_does = lambda _: "ended with exit code 1"
    with pytest.raises(RestartFailedError):
        brokers.run(plan)
    brokers.live.change(drained=())
    assert brokers.run(plan, holder="next").restarted == ()
    assert brokers.hooked == [BROKER]


def test_no_hook_runs_while_bundles_are_on_the_broker(brokers: Brokers) -> None:
    plan = drain(brokers)
    brokers.restarts = False
    with suppress(RestartFailedError):
        brokers.run(plan)
    came = brokers.live.bundles_on(other := next(each for each in plan.brokers if each != BROKER))[0]
    brokers.live.hand(came, other, BROKER)
    brokers.live.advance()
    with pytest.raises(RestartFailedError, match=f"it has 1 bundle: {came}"):
        brokers.run(plan, holder="next")
    assert brokers.hooked == [BROKER]


def test_no_hook_runs_before_a_pause_has_ended(brokers: Brokers) -> None:
    plan, live = drain(brokers), brokers.live
    live.run(plan).run()
    live.change(pauses=(Pause(by="bob", reason="storm", at_ms=1),))
    slept = iter(range(1000))

    def resume() -> None:
        if next(slept) == 6:
            assert brokers.hooked == []
            live.change(pauses=())

    live.meanwhile = resume
    brokers.run(plan)
    assert brokers.hooked == [BROKER]


@pytest.mark.parametrize("drained_again", [False, True])
def test_no_hook_runs_for_a_broker_that_a_person_released_in_a_pause(brokers: Brokers, drained_again: bool) -> None:
    plan, live = drain(brokers), brokers.live
    live.run(plan).run()
    live.change(pauses=(Pause(by="bob", reason="storm", at_ms=1),))
    slept, drained = iter(range(1000)), live.controls.drained

    def release() -> None:
        if next(slept) == 6:
            live.change(pauses=(), drained=drained if drained_again else ())
            other = next(each for each in plan.brokers if each != BROKER)
            live.hand(live.bundles_on(other)[0], other, BROKER)

    live.meanwhile = release
    if drained_again:
        with pytest.raises(RestartFailedError, match="it has 1 bundle"):
            brokers.run(plan)
    else:
        assert brokers.run(plan).restarted == ()
    assert brokers.hooked == []


@pytest.mark.parametrize("when", ["the hook runs", "the broker is waited for"])
def test_stop_all_ends_it_once_the_restart_is_done(brokers: Brokers, when: str) -> None:
    plan, live = rolling(brokers), brokers.live

    def stop(_: str = "") -> str:
        live.change(orders=None, stopped_ms=live.interval)
        return ""

    if when == "the hook runs":
        brokers.hook_does = stop
    else:
        live.meanwhile = lambda: stop() if brokers.hooked and live.controls.orders is not None else ""
    with pytest.raises(PlanHaltedError, match="stop-all"):
        brokers.run(plan)
    assert (brokers.hooked, brokers.drained) == (emptied(plan)[:1], emptied(plan)[:1])


def test_a_second_run_of_the_same_plan_takes_over_and_the_first_one_ends(brokers: Brokers) -> None:
    plan, live = drain(brokers), brokers.live

    def take_over(_: str) -> str:
        orders = live.controls.orders
        assert orders is not None
        live.change(orders=replace(orders, holder="another"))
        return ""

    brokers.hook_does = take_over
    with pytest.raises(PlanHaltedError, match="another `trimtab apply`"):
        brokers.run(plan)
    assert brokers.drained == [BROKER]


def test_a_broker_without_data_in_the_newest_load_is_not_taken_for_empty(brokers: Brokers) -> None:
    plan = drain(brokers)
    brokers.live.run(plan).run()
    brokers.live.silent = {BROKER}
    brokers.live.advance()
    with pytest.raises(TrimtabError, match="has no data"):
        brokers.run(plan)
    assert brokers.hooked == []


def test_where_a_release_needs_an_approval_of_its_own_the_broker_stays_drained(brokers: Brokers) -> None:
    done = brokers.run(drain(brokers), releases=False)
    assert (done.restarted, brokers.drained) == ((BROKER,), [BROKER])
    assert done.notes == (
        f"{BROKER} is back and healthy, and stays drained: `trimtab release {BROKER} --key FILE` proposes its release",
    )


def kill_at_change(brokers: Brokers, nth: int) -> None:
    """The process "first" is killed at its *nth* look at the controls, or change of them."""
    live, changes = brokers.live, iter(range(10_000))
    changed = live._changed

    def killed(holder: str, how: Callable[..., object]) -> object:
        if holder == "first" and next(changes) >= nth:
            live.gone.add("first")
            raise Killed
        return changed(holder, how)  # type: ignore[arg-type]

    live._changed = killed  # type: ignore[method-assign, assignment]


def kill_in_hook(brokers: Brokers, *, restarted: bool) -> None:
    """The process is killed in the second hook: once the broker was *restarted*, or while it is away."""
    hook = brokers.hook

    def killed(broker: str, meanwhile: Callable[[], None]) -> str:
        if len(brokers.hooked) != 1:
            brokers.away.discard(broker)
            return hook(broker, meanwhile)
        brokers.restarts = restarted
        hook(broker, meanwhile)
        brokers.restarts = True
        if not restarted:
            brokers.away.add(broker)
        brokers.live.gone.add("first")
        raise Killed

    brokers.hook = killed  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "at",
    [
        *[0, 14, 33, 27, 45, *range(1, 45, 4)][: tries(plain=3, thorough=16)],
        "in the hook, restarted",
        "in the hook, away",
    ],
)
def test_wherever_it_is_killed_another_run_goes_on_and_no_broker_is_restarted_with_bundles(
    brokers: Brokers, at: int | str
) -> None:
    plan, live = rolling(brokers), brokers.live
    if isinstance(at, int):
        kill_at_change(brokers, at)
    else:
        kill_in_hook(brokers, restarted=at.endswith("restarted"))
    with pytest.raises(Killed):
        brokers.run(plan, holder="first")
    done = brokers.run(plan, holder="second")
    assert (brokers.drained, set(brokers.cut_off), done.left_behind) == ([], {0}, ())
    assert set(brokers.hooked) == set(plan.brokers)
    assert len(brokers.hooked) <= len(plan.brokers) + 1
    assert len(live.commands) == len(plan.moves)


def test_of_several_brokers_of_a_step_one_is_restarted_after_the_other_and_one_that_a_person_released_is_left_out(
    tmp_path: Path,
) -> None:
    conf = settings_in(
        tmp_path, broker_conf=f"{QUIET}loadBalancerDistributeBundlesEvenlyEnabled=false\n", more=SETTINGS
    )
    brokers = Brokers(LiveCluster(conf, ClusterShape(bundles=24)))
    first, second, third = "broker-1:8080", "broker-2:8080", "broker-3:8080"
    request = PlanRequest(kind=DRAIN, brokers=(first, second, third))
    plan = planned_cluster(brokers.live.source(), request).plan

    def release_the_last(broker: str) -> str:
        now = brokers.live.controls.drained
        if broker == first:
            brokers.live.change(drained=tuple(each for each in now if each.broker != third))
        return ""

    brokers.hook_does = release_the_last
    done = brokers.run(plan)
    assert (done.restarted, brokers.hooked, brokers.drained) == ((first, second), [first, second], [])
    assert f"{third} is not drained any more, so it was not restarted" in done.notes


def test_a_broker_that_is_still_starting_when_another_run_goes_on_is_not_restarted_again(brokers: Brokers) -> None:
    plan = drain(brokers)

    def killed_while_it_starts(broker: str) -> str:
        brokers.away.add(broker)
        brokers.live.gone.add("first")
        raise Killed

    brokers.hook_does = killed_while_it_starts
    with pytest.raises(Killed):
        brokers.run(plan, holder="first")
    intervals = iter(range(1000))
    brokers.live.meanwhile = lambda: brokers.away.clear() if next(intervals) == 2 else None
    assert brokers.run(plan, holder="second").restarted == (BROKER,)
    assert brokers.hooked == [BROKER]


def test_a_broker_that_answers_again_while_another_run_looks_is_not_restarted_twice(brokers: Brokers) -> None:
    plan, started_ms = drain(brokers), brokers.started_ms

    def killed_while_it_starts(broker: str) -> str:
        brokers.away.add(broker)
        brokers.live.gone.add("first")
        raise Killed

    def answers_from_now_on(broker: str) -> int:
        try:
            return started_ms(broker)
        finally:
            brokers.away.clear()

    brokers.hook_does = killed_while_it_starts
    with pytest.raises(Killed):
        brokers.run(plan, holder="first")
    brokers.started_ms = answers_from_now_on  # type: ignore[method-assign]
    assert brokers.run(plan, holder="second").restarted == (BROKER,)
    assert brokers.hooked == [BROKER]


def test_a_hook_that_failed_runs_again_at_once_where_the_broker_is_down(brokers: Brokers) -> None:
    plan = drain(brokers)

    def fail(broker: str) -> str:
        brokers.away.add(broker)
        return "ended with exit code 1"

    def mended(_: str) -> str:
        brokers.away.clear()
        return ""

    brokers.hook_does, brokers.restarts = fail, False
    with pytest.raises(RestartFailedError):
        brokers.run(plan)
    before = brokers.live.interval
    brokers.hook_does = mended
    brokers.started[BROKER] += 5
    assert brokers.run(plan, holder="next").restarted == (BROKER,)
    assert brokers.hooked == [BROKER, BROKER]
    assert brokers.live.interval - before <= 2 * PERIOD


def test_a_log_that_is_away_while_its_broker_restarts_is_waited_for(brokers: Brokers) -> None:
    plan, live, failures = drain(brokers), brokers.live, iter(range(3))
    source = live.source

    def away() -> PlanSource:
        if brokers.hooked and next(failures, None) is not None:
            raise TrimtabError("the log does not answer")
        return source()

    live.source = away  # type: ignore[method-assign]
    assert brokers.run(plan).restarted == (BROKER,)


def test_collectors_that_read_nothing_after_a_restart_are_named(brokers: Brokers) -> None:
    plan, live = drain(brokers), brokers.live

    def hide(broker: str) -> str:
        live.silent.add(broker)
        return ""

    brokers.hook_does = hide
    with pytest.raises(RestartFailedError, match=r"the collectors have not read its load for .*trimtab status"):
        brokers.run(plan)
    assert brokers.drained == [BROKER]
