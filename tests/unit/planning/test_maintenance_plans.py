"""Drains, joins, rolling restarts and rightsizing, on problems whose answer is known and on random ones."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.objective import highest, loads
from controller.planning.plans.emptying import Emptied, emptied
from controller.planning.plans.plan import EMPTY, FILL, SPREAD, PlanStep, broker_changes, disturbed
from controller.planning.plans.plan_steps import (
    PlanLimits,
    emptied_step,
    empty_step,
    fill_step,
    restart_steps,
    spread_step,
)
from controller.planning.plans.restarting import fewest_restart_moves, rolling_restart
from controller.planning.plans.rightsizing import BrokersNeeded, brokers_needed, removable, with_more_brokers
from controller.planning.plans.waves import WaveLimits
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.bounds import lower_bounds
from tests.balance_problems import problem, seeded
from tests.effort import tries
from tests.plans import plan_of, some_problem

LIMITS = PlanLimits(waves=WaveLimits(max_moves=5, max_per_broker=3), effort=2000)


def owner_after(one: BalanceProblem, *steps: PlanStep) -> np.ndarray:
    owner = one.owner.copy()
    for step in steps:
        for move in step.moves:
            owner[move.bundle] = move.destination
    return owner


def test_a_drained_broker_ends_empty_and_each_of_its_bundles_moves_once() -> None:
    one = problem([[10.0]] * 3, [(0, [3.0]), (0, [2.0]), (1, [4.0]), (2, [1.0])])
    step = empty_step(one, [0], LIMITS)
    assert sorted(move.bundle for move in step.moves) == [0, 1]
    assert not (owner_after(one, step) == 0).any()
    assert step.certificate.reached == pytest.approx(0.6)
    assert plan_flaws(plan_of(one, [step])) == []


def test_a_bundle_without_room_elsewhere_stays_and_is_told() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0]), (0, [1.0]), (1, [8.0])])
    found = emptied(one, [0], 1.0)
    assert [(each.bundle, each.no_room) for each in found.stuck] == [(0, True)]
    assert found.moves == (PlannedMove(1, 0, 1),)


def test_a_bundle_that_no_broker_may_have_is_told_apart() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0])])
    found = emptied(one, [0], 1.0, closing=lambda *_, **__: lambda _bundle, _moves: np.zeros(2, np.bool_))
    assert [(each.bundle, each.no_room) for each in found.stuck] == [(0, False)]


def test_the_bound_of_a_drain_counts_no_room_on_what_is_emptied() -> None:
    # Equal brokers, the bundles of one of four spread over three: 20 bundles of 10 on 3 brokers are 70 on one of them.
    one = problem([[100.0]] * 4, [(broker, [10.0]) for broker in range(4) for _ in range(5)])
    certificate = empty_step(one, [0], LIMITS).certificate
    assert certificate.kind == "pigeonhole"
    assert certificate.gap < 1e-6
    assert certificate.reached == 0.7
    liquid = problem([[100.0]] * 3, [(broker, [1.0]) for broker in range(3) for _ in range(30)])
    certificate = empty_step(liquid, [0], LIMITS).certificate
    assert (certificate.reached, certificate.bound) == pytest.approx((0.45, 0.45))
    # What does not move, on the emptied broker or on another one, is no matter of where the bundles go.
    for fixed, owner in (([[90.0], [0.0], [0.0]], 1), ([[0.0], [0.0], [0.0]], 0)):
        full = problem([[100.0]] * 3, [(0, [3.0]), (owner, [80.0]), (2, [60.0])], fixed=fixed)
        step = emptied_step(full, [0], Emptied(moves=(PlannedMove(0, 0, 2),), stuck=()), LIMITS)
        assert (step.certificate.kind, step.certificate.gap) == ("fixed", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.3, 0.6])
def test_of_all_destinations_none_ends_below_the_bound_of_a_random_drain_and_the_checker_refuses_a_higher_one(
    mean: float,
) -> None:
    tighter = 0
    for seed in range(tries(plain=30, thorough=300)):
        one = seeded(3 + seed % 2, 8, 1 + seed % 2, seed, uneven=seed % 3 == 0, mean=mean)
        drained = int(np.bincount(one.owner, minlength=1).argmax())
        step = empty_step(one, [drained], LIMITS)
        plan, certificate = plan_of(one, [step]), step.certificate
        assert plan_flaws(plan) == []
        others = [row for row in range(len(one.capacity)) if row != drained]
        rows = [move.bundle for move in step.moves]
        ends = []
        for to in product(others, repeat=len(rows)):
            owner = one.owner.copy()
            owner[rows] = to
            ends.append(float(highest(loads(one, owner), one.capacity).max()))
        best = min(ends)
        assert certificate.bound <= best + 1e-9
        tighter += certificate.bound > lower_bounds(one, len(rows))[0].level + 1e-6
        for kind in ("mean", "fixed", "pigeonhole", "removal", "prices"):
            for resource in range(len(one.resources)):
                forged = replace(
                    certificate, bound=min(best * 1.001, certificate.reached), kind=kind, resource=resource
                )
                if forged.bound > best * (1 + 1e-6):
                    assert plan_flaws(replace(plan, steps=(replace(step, certificate=forged),)))
    assert tighter > tries(plain=15, thorough=150)


def test_a_lower_ceiling_leaves_peers_more_room() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0]), (1, [6.0])])
    assert empty_step(one, [0], PlanLimits(ceiling=0.8)).stuck == (0,)
    assert empty_step(one, [0], PlanLimits(ceiling=0.9)).stuck == ()


@pytest.mark.parametrize("mean", [0.3, 0.6, 0.95])
def test_every_random_drain_is_verified_and_leaves_only_what_it_names(mean: float) -> None:
    for seed in range(tries(plain=30, thorough=150)):
        one = some_problem(seed, mean)
        drained = seed % len(one.capacity)
        step = empty_step(one, [drained], LIMITS)
        assert plan_flaws(plan_of(one, [step])) == []
        assert set(np.flatnonzero(owner_after(one, step) == drained)) == set(step.stuck)


def test_a_broker_that_joins_is_filled_to_the_mean_by_moves_to_it_alone() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 6 + [(1, [1.0])] * 6)
    step = fill_step(one, [2], LIMITS)
    assert step.task == FILL
    assert {move.destination for move in step.moves} == {2}
    assert len(step.moves) == 4
    assert step.certificate.reached == pytest.approx(0.4)
    assert plan_flaws(plan_of(one, [step], "join")) == []


def test_the_bound_of_a_join_counts_no_room_on_brokers_that_get_nothing() -> None:
    # Broker 1 is nearly empty, but only broker 2 gets bundles: 60 on two brokers are 30 on one of them.
    one = problem([[100.0]] * 3, [(0, [1.0])] * 60)
    certificate = fill_step(one, [2], LIMITS, goal=0.3).certificate
    assert (certificate.reached, certificate.bound, certificate.kind) == pytest.approx((0.3, 0.3, "mean"))


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.3, 0.6])
def test_no_moves_to_a_random_broker_that_joins_end_below_the_bound_and_the_checker_refuses_a_higher_one(
    mean: float,
) -> None:
    tighter = 0
    for seed in range(tries(plain=30, thorough=300)):
        one = seeded(3 + seed % 2, 8, 1 + seed % 2, seed, uneven=seed % 3 == 0, mean=mean)
        joins = int(np.bincount(one.owner, minlength=len(one.capacity)).argmin())
        step = fill_step(one, [joins], LIMITS)
        plan, certificate = plan_of(one, [step], "join"), step.certificate
        assert plan_flaws(plan) == []
        ends = []
        for moves in product((False, True), repeat=len(one.owner)):
            if sum(moves) <= certificate.max_moves:
                owner = np.where(moves, joins, one.owner)
                ends.append(float(highest(loads(one, owner), one.capacity).max()))
        best = min(ends)
        assert certificate.bound <= best + 1e-9
        tighter += certificate.bound > lower_bounds(one, certificate.max_moves)[0].level + 1e-6
        for kind, resource in product(("mean", "fixed", "pigeonhole", "removal", "prices"), range(len(one.resources))):
            forged = replace(certificate, bound=min(best * 1.001, certificate.reached), kind=kind, resource=resource)
            if forged.bound > best * (1 + 1e-6):
                assert plan_flaws(replace(plan, steps=(replace(step, certificate=forged),)))
    assert tighter > tries(plain=10, thorough=100)


def test_every_random_join_is_verified() -> None:
    for seed in range(tries(plain=16, thorough=80)):
        one = some_problem(seed)
        empty = seed % len(one.capacity)
        one = replace(one, owner=np.where(one.owner == empty, (empty + 1) % len(one.capacity), one.owner))
        step = fill_step(one, [empty], LIMITS)
        assert plan_flaws(plan_of(one, [step], "join")) == []


def test_a_rolling_restart_begins_where_the_fewest_bundles_are_and_moves_only_these_twice() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 4 + [(1, [2.0])] * 2 + [(2, [1.0])] * 4)
    found, steps = restart_steps(one, [[0], [1], [2]], LIMITS)
    assert found.fewest == 12
    assert found.moves == 12
    assert [step.brokers for step in steps[:3]] == [(1,), (0,), (2,)]
    assert sorted(found.times().tolist()) == [1] * 8 + [2] * 2
    assert plan_flaws(plan_of(one, steps, "rolling_restart")) == []


def test_of_the_other_brokers_the_emptiest_is_restarted_first() -> None:
    one = problem([[10.0]] * 4, [(0, [2.0])] * 3 + [(1, [1.0])] * 3 + [(2, [1.5])] * 3 + [(3, [8.0])])
    found, _ = restart_steps(one, [[0], [1], [2], [3]], LIMITS)
    assert [step.brokers for step in found.steps] == [(3,), (1,), (2,), (0,)]


def test_what_was_restarted_last_is_filled_again() -> None:
    one = problem([[10.0]] * 3, [(broker, [1.0]) for broker in (0, 0, 1, 1, 2, 2)])
    _, steps = restart_steps(one, [[0], [1], [2]], LIMITS)
    told = [(step.task, step.brokers, len(step.moves)) for step in steps]
    assert told == [(EMPTY, (0,), 2), (EMPTY, (1,), 3), (EMPTY, (2,), 3), (FILL, (2,), 2)]


def test_what_is_not_restarted_takes_bundles_for_good() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 3 + [(1, [1.0])] * 3)
    assert fewest_restart_moves(one, [[0], [1]]) == 6
    assert rolling_restart(one, [[0], [1]], 1.0).moves == 6


@pytest.mark.parametrize("mean", [0.2, 0.5])
def test_no_random_restart_is_below_its_lower_bound_and_each_step_ends_empty(mean: float) -> None:
    at_bound, seeds = 0, tries(plain=12, thorough=60)
    for seed in range(seeds):
        one = some_problem(seed, mean)
        groups = [[row] for row in range(len(one.capacity))]
        found, steps = restart_steps(one, groups, LIMITS)
        owner = one.owner.copy()
        for step in found.steps:
            for move in step.moves:
                owner[move.bundle] = move.destination
            assert set(np.flatnonzero(np.isin(owner, step.brokers))) == {each.bundle for each in step.stuck}
        if not any(step.stuck for step in found.steps):
            assert found.moves >= found.fewest
            at_bound += found.moves == found.fewest
        assert plan_flaws(plan_of(one, steps, "rolling_restart")) == []
    assert at_bound > seeds // 3


def test_a_zone_is_restarted_together() -> None:
    one = problem([[10.0]] * 4, [(0, [1.0]), (1, [1.0]), (2, [1.0]), (3, [1.0])])
    found, _ = restart_steps(one, [[0, 1], [2, 3]], LIMITS)
    assert found.fewest == 6
    assert found.moves == 6


def test_no_brokers_are_no_restart() -> None:
    found, steps = restart_steps(problem([[1.0]], []), [], LIMITS)
    assert (found.moves, found.fewest, steps) == (0, 0, [])


def test_so_many_brokers_are_needed_for_a_headroom() -> None:
    one = problem([[10.0]] * 4, [(0, [3.0])] * 8)
    found = [brokers_needed(one, headroom) for headroom in (0.0, 0.4, 0.5, 0.8, 1.0)]
    assert [each.at_least for each in found] == [3, 4, 8, None, None]
    assert [each.sufficient for each in found] == [3, 4, 8, None, None]


def test_no_number_of_brokers_keeps_all_of_their_capacity_free_whatever_counts() -> None:
    nothing_counts = problem([[]] * 2, [(0, []), (1, [])])
    for headroom in (1.0, 1.5):
        assert brokers_needed(nothing_counts, headroom) == BrokersNeeded(at_least=None, sufficient=None, resource=0)


def test_where_no_number_of_brokers_is_enough_the_resource_is_told_that_lacks_most() -> None:
    one = problem([[10.0, 10.0]] * 2, [(0, [6.0, 9.0]), (1, [7.0, 1.0])])
    assert brokers_needed(one, 0.5) == BrokersNeeded(at_least=None, sufficient=None, resource=1)


def test_bundles_that_cannot_share_a_broker_need_one_each_whatever_the_mean_is() -> None:
    forty = problem([[100.0]] * 6, [(i, [40.0]) for i in range(6)])
    for headroom, needed in ((0.1, 3), (0.2, 3), (0.21, 6), (0.3, 6), (0.6, 6)):
        found = brokers_needed(forty, headroom)
        assert (found.at_least, found.sufficient) == (needed, needed)


def test_where_no_placement_is_found_on_as_few_as_are_proved_both_numbers_are_told() -> None:
    one = problem([[10.0]] * 2, [(0, [size]) for size in (6.0, 3.0, 3.0, 3.0, 2.5, 2.5)])
    found = brokers_needed(one, 0.0)
    assert (found.at_least, found.sufficient) == (2, 3)


def test_the_fewest_brokers_are_found_far_above_what_is_proved() -> None:
    # No two of these share a broker, in any one resource two thirds of them count, and small ones go everywhere.
    kinds = ([6.0, 6.0, 0.0], [6.0, 0.0, 6.0], [0.0, 6.0, 6.0])
    for times in (4, 5, 7):
        one = problem([[10.0] * 3] * 2, [(0, kind) for kind in kinds * times] + [(1, [0.1] * 3)] * 30)
        found = brokers_needed(one, 0.0)
        assert (found.at_least, found.sufficient) == (2 * times, 3 * times)


def test_what_stays_on_a_broker_has_to_have_room_as_well() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 3, fixed=[[0.0], [7.0], [0.0]])
    found = brokers_needed(one, 0.4)
    assert (found.at_least, found.sufficient) == (2, None)
    assert brokers_needed(one, 0.2).sufficient == 2
    to_the_last_bit = problem([[100.0]] * 3, [(0, [1.0])] * 3, fixed=[[10.0], [60.0], [10.0]])
    assert brokers_needed(to_the_last_bit, 0.4).sufficient == 2


def test_of_more_than_1e15_brokers_the_number_is_not_counted() -> None:
    for load, at_least in ((1e12 - 1, 10**11), (1e300, 10**15)):
        one = problem([[10.0]] * 2, [(0, [1.0])], fixed=[[0.0], [load]])
        found = brokers_needed(one, 0.0)
        assert (found.at_least, found.sufficient) == (at_least, None)


def _has_room(sizes: list[list[float]], left: list[list[float]]) -> bool:
    """Whether there is any placement of *sizes* on brokers that have so much *left*."""
    if not sizes:
        return True
    first, rest = sizes[0], sizes[1:]
    for at, broker in enumerate(left):
        after = [have - take for have, take in zip(broker, first, strict=True)]
        if broker not in left[:at] and min(after) >= -1e-9 and _has_room(rest, [*left[:at], after, *left[at + 1 :]]):
            return True
    return False


def test_of_all_placements_none_is_on_fewer_brokers_than_are_needed_and_one_is_on_as_many_as_are_enough() -> None:
    for seed in range(tries(plain=30, thorough=400)):
        one = seeded(3, 7, 1 + seed % 2, seed, mean=(0.4, 0.6, 0.9)[seed % 3])
        found, left = brokers_needed(one, 0.2), (one.capacity.mean(axis=0) * 0.8).tolist()
        if found.at_least is None:
            assert not all(_has_room([size], [left]) for size in one.size.tolist())
            continue
        assert found.sufficient is not None
        assert found.sufficient <= found.at_least + 1
        assert _has_room(one.size.tolist(), [left] * found.sufficient)
        assert not _has_room(one.size.tolist(), [left] * (found.at_least - 1))


def test_what_a_broker_uses_by_itself_is_needed_again_for_each() -> None:
    one = problem([[10.0]] * 2, [(0, [1.0])] * 8, fixed=[[2.0], [2.0]])
    assert brokers_needed(one, 0.0).sufficient == 1
    assert brokers_needed(one, 0.4).sufficient == 2
    more = with_more_brokers(one, 2)
    assert more.capacity.tolist() == [[10.0]] * 4
    assert more.fixed.tolist() == [[2.0]] * 4


def test_the_brokers_whose_bundles_disturb_least_are_removed() -> None:
    one = problem([[10.0]] * 3, [(0, [3.0]), (1, [3.0]), (2, [3.0])], disturbance=[30.0, 10.0, 20.0])
    found = removable(one, 2, 1.0)
    assert found.brokers == (1, 2)
    assert found.is_complete
    assert not removable(one, 2, 0.7).is_complete
    assert removable(one, 2, 0.7).brokers == (1,)
    assert not removable(one, 3, 1.0).is_complete


def test_the_16_brokers_whose_bundles_disturb_least_are_tried_and_no_others() -> None:
    one = problem([[10.0]] * 18, [(row, [1.0]) for row in range(18)], disturbance=[11.0 + row for row in range(18)])

    def without(stuck: int) -> tuple[int, ...]:
        """Who is removed where the bundles of so many brokers can go nowhere."""
        return removable(one, 1, 1.0, lambda *_, **__: lambda bundle, _moves: np.full(18, bundle >= stuck)).brokers

    assert (without(15), without(16)) == ((15,), ())


def test_the_changes_of_a_broker_and_whose_clients_reconnect_are_told() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0]), (0, [2.0]), (1, [1.0])], connections=[7.0, 5.0, 1.0])
    plan = plan_of(one, [empty_step(one, [0], LIMITS)])
    first, second = broker_changes(plan)
    assert (first.before, first.after, first.highest) == pytest.approx((0.5, 0.0, 0.5))
    assert (second.before, second.after, second.highest) == pytest.approx((0.1, 0.6, 0.6))
    assert (first.bundles_before, first.bundles_after, second.bundles_after) == (2, 0, 3)
    assert [(each.namespace, each.connections, each.msg_rate) for each in disturbed(plan)] == [
        ("acme/ns0", 7.0, 0.0),
        ("acme/ns1", 5.0, 1.0),
    ]


def test_random_plans_are_verified_and_with_a_false_certificate_they_are_not() -> None:
    for seed in range(tries(plain=50, thorough=350)):
        one = some_problem(seed, (0.4, 0.7, 1.2)[seed % 3])
        step = spread_step(one, PlanLimits(max_moves=seed % 12, effort=0, waves=LIMITS.waves), 1.05)
        plan = plan_of(one, [step], "balance")
        assert plan_flaws(plan) == []
        lie = replace(step.certificate, bound=step.certificate.bound * 1.01 + 1e-3)
        assert plan_flaws(replace(plan, steps=(replace(step, certificate=lie),)))


def test_what_a_forged_plan_says_of_its_brokers_is_refused() -> None:
    one = problem([[10.0]] * 3, [(0, [3.0]), (0, [2.0]), (1, [4.0]), (2, [1.0])])
    step = empty_step(one, [0], LIMITS)
    honest = plan_of(one, [step])
    less = fill_step(one, [2], LIMITS)

    def flaw(**changes: object) -> str:
        return " ".join(plan_flaws(replace(honest, **changes)))  # type: ignore[arg-type]

    assert "stays on a broker that is to be empty" in flaw(steps=(replace(less, task=EMPTY, brokers=(0,)),))
    unproved = replace(step.certificate, bound=0.0)
    assert "is not to be filled" in flaw(steps=(replace(step, task=FILL, brokers=(2,), certificate=unproved),))
    assert "both moves and stays" in flaw(steps=(replace(step, stuck=(step.moves[0].bundle,)),))
    assert "unknown" in flaw(kind="trust me")
    assert "unknown" in flaw(steps=(replace(step, task="trust me"),))  # type: ignore[arg-type]
    assert "unknown" in flaw(steps=(step, replace(step, task="trust me")))  # type: ignore[arg-type]
    assert "is not in the plan" in flaw(steps=(replace(step, brokers=(3,)),))
    assert "named twice" in flaw(brokers=("a:1", "a:1", "b:1"))
    assert "has the shape" in flaw(bundles=("acme/a/0x00000000_0x80000000",))
    assert "not finite" in flaw(msg_rate=np.array([np.nan, 0, 0, 0]))
    assert "ceiling" in flaw(ceiling=1.5)
    assert "ceiling" in flaw(ceiling=float("nan"))
    for beyond in (3, 7):
        assert "not in the plan" in flaw(problem=replace(one, owner=np.array([0, 0, 1, beyond])))
    assert "not in the plan" in flaw(problem=replace(one, owner=np.array([-1, 0, 1, 2])))
    assert "time of a wave" in flaw(pace=replace(honest.pace, wave_seconds=0.0))
    assert "connections in a second" in flaw(pace=replace(honest.pace, connections_per_second=-1.0))
    nothing = replace(one, resources=(), capacity=np.ones((3, 0)), fixed=np.ones((3, 0)), size=np.ones((4, 0)))
    assert "no resource" in flaw(problem=nothing)
    for move in ((4, 0, 1), (-1, 0, 1), (0, 3, 1), (0, -1, 1), (0, 0, 3), (0, 0, -1)):
        spread = replace(step, task=SPREAD, brokers=(), waves=((PlannedMove(*move),),))
        assert "not in the plan" in flaw(kind="balance", steps=(spread,)), move
    own = ("pulsar/system/0x00000000_0x80000000", *honest.bundles[1:])
    assert "belongs to Pulsar itself" in flaw(bundles=own)
