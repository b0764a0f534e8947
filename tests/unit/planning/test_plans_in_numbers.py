"""Plans that a person approves, in numbers worked out by hand: times, changes, destinations, and defaults."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.checking.checker import flaws
from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.checking.wave_checker import wave_flaws
from controller.planning.plans.emptying import Stuck, emptied
from controller.planning.plans.filling_bound import filling_bound
from controller.planning.plans.plan import Disturbed, broker_changes, disturbed
from controller.planning.plans.plan_steps import (
    PlanLimits,
    empty_step,
    fill_step,
    given_step,
    named_step,
    spread_step,
)
from controller.planning.plans.rightsizing import BrokersNeeded, brokers_needed
from controller.planning.plans.waves import WaveLimits
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, PRICES, REMOVAL, Certificate, PlannedMove
from controller.planning.solving.bounds import lower_bounds
from tests.balance_problems import problem
from tests.plans import plan_of

LIMITS: Final = PlanLimits(waves=WaveLimits(max_moves=2), effort=2000)


def test_a_plan_knows_where_its_bundles_are_before_each_step() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 5, connections=[7000.0, 1.0, 1.0, 1.0, 9000.0])
    step = empty_step(one, [0], LIMITS)
    assert [[move.bundle for move in wave] for wave in step.waves] == [[0, 1], [2, 3], [4]]
    after = replace(one, owner=np.array([move.destination for move in sorted(step.moves)]))
    plan = plan_of(one, [step, empty_step(after, [1], LIMITS)])
    assert plan.before(0).owner.tolist() == [0] * 5
    assert plan.before(1).owner.tolist() == after.owner.tolist()
    assert plan.moves == (*step.moves, *plan.steps[1].moves)


def test_what_a_plan_does_to_each_broker_is_told_by_its_fullest_resource() -> None:
    one = problem([[10.0, 100.0]] * 2, [(0, [3.0, 60.0]), (0, [2.0, 5.0]), (1, [5.0, 10.0])])
    first, second = broker_changes(plan_of(one, [empty_step(one, [0], replace(LIMITS, ceiling=1.0))]))
    assert (first.broker, first.resource, first.before, first.after, first.highest) == (
        "broker-000:8080", "bandwidth in", 0.65, 0.0, 0.65,
    )  # fmt: skip
    assert (second.broker, second.resource, second.before, second.after) == ("broker-001:8080", "cpu", 0.5, 1.0)
    assert (second.highest, second.bundles_before, second.bundles_after) == (1.0, 1, 3)
    nothing = problem([[], []], [(0, [])])
    assert [each.resource for each in broker_changes(plan_of(nothing, []))] == ["", ""]


def test_namespaces_are_told_with_their_moves_those_with_most_connections_first() -> None:
    one = problem([[10.0]] * 2, [(0, [1.0])] * 5, connections=[1.0, 5.0, 6.0, 1.0, 5.0])
    told = disturbed(plan_of(one, [empty_step(one, [0], LIMITS)]))
    # Bundle i is of namespace i modulo 3, with i messages/s.
    assert told == [
        Disturbed(namespace="acme/ns1", moves=2, connections=10.0, msg_rate=5.0),
        Disturbed(namespace="acme/ns2", moves=1, connections=6.0, msg_rate=2.0),
        Disturbed(namespace="acme/ns0", moves=2, connections=2.0, msg_rate=3.0),
    ]


# ---- emptying ----


def test_the_largest_bundles_leave_first_each_to_the_broker_that_is_emptiest_with_it() -> None:
    # By a share of the widest broker: 0.2, 0.3, 0.25.
    one = problem(
        [[10.0, 20.0], [10.0, 20.0], [20.0, 20.0]], [(0, [1.0, 4.0]), (0, [6.0, 1.0]), (0, [1.0, 5.0]), (1, [1.0, 1.0])]
    )
    found = emptied(one, [0], 1.0)
    assert found.moves == (PlannedMove(1, 0, 2), PlannedMove(2, 0, 1), PlannedMove(0, 0, 2))
    assert found.stuck == ()


def test_brokers_of_last_choice_get_what_fits_nowhere_else_and_rounding_does_not_decide() -> None:
    one = problem([[10.0]] * 4, [(0, [5.0]), (0, [4.0]), (3, [3.0])])
    assert [move.destination for move in emptied(one, [0], 1.0, last_choice=[1, 2]).moves] == [3, 1]
    two = problem([[1.0]] * 2, [(0, [0.1]), (0, [0.2])])
    assert len(emptied(two, [0], 0.3).moves) == 2, "0.1 and 0.2 are a little more than 0.3"
    assert emptied(two, [0], 0.29).stuck == (Stuck(bundle=0, no_room=True),)


# ---- steps ----


def no_two(bundle: int, _moves: Sequence[PlannedMove]) -> Bools:
    """The first two bundles may not go to broker 2."""
    return np.array([True, True, bundle > 1])


def test_an_even_step_brings_the_fullest_broker_to_the_multiple_of_the_mean() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 6 + [(1, [1.0])] * 3)
    assert [len(spread_step(one, LIMITS, to).moves) for to in (1.0, 4 / 3, 5 / 3, 2.0)] == [3, 2, 1, 0]
    assert spread_step(one, LIMITS, 1.0).certificate.max_moves == 10_000
    assert spread_step(one, replace(LIMITS, max_moves=1), 1.0).certificate.reached == 0.5
    filtered = spread_step(one, replace(LIMITS, effort=100_000), 1.0, no_two)
    assert filtered.certificate.reached == 0.3
    assert all(move.bundle > 1 for move in filtered.moves if move.destination == 2)


def test_of_given_moves_those_are_kept_that_follow_each_other_within_the_capacity() -> None:
    one = problem([[10.0]] * 3, [(0, [6.0]), (1, [5.0]), (2, [8.0])])
    moves = [PlannedMove(0, 0, 1), PlannedMove(1, 1, 0)]
    step = given_step(one, moves, LIMITS)
    assert (step.moves, step.task, step.certificate.max_moves, step.certificate.reached) == ((), "spread", 0, 0.8)
    roomy = problem([[12.0]] * 3, [(0, [6.0]), (1, [5.0]), (2, [8.0])])
    assert given_step(roomy, moves, LIMITS).moves == tuple(moves)
    assert given_step(roomy, moves, LIMITS, lambda bundle, _: np.full(3, bundle == 1)).moves == (moves[1],)


def test_a_named_move_never_brings_a_broker_above_its_capacity() -> None:
    one = problem([[10.0]] * 3, [(0, [6.0]), (1, [5.0]), (2, [8.0])])
    assert named_step(one, [PlannedMove(0, 0, 1)], LIMITS).moves == ()
    follow = [PlannedMove(0, 0, 1), PlannedMove(1, 1, 0)]
    assert named_step(one, follow, LIMITS).moves == ()
    roomy = problem([[11.0]] * 3, [(0, [6.0]), (1, [5.0]), (2, [8.0])])
    assert named_step(roomy, follow, LIMITS).moves == tuple(follow)
    assert named_step(roomy, follow, LIMITS, lambda bundle, _: np.full(3, bundle == 1)).moves == (follow[1],)


def test_a_broker_is_filled_to_two_hundredths_above_the_mean_from_the_fullest_ones() -> None:
    one = problem([[10.0]] * 3, [(0, [1.0])] * 5 + [(1, [1.0])] * 3)
    step = fill_step(one, [2], LIMITS)
    assert [(move.source, move.destination) for move in step.moves] == [(0, 2), (0, 2)]
    assert (step.certificate.reached, step.brokers, step.task) == (0.3, (2,), "fill")
    only_last = fill_step(one, [2], LIMITS, allowed=lambda bundle, _: np.full(3, bundle in (3, 4, 5)))
    assert {move.bundle for move in only_last.moves} <= {3, 4, 5}
    assert len(fill_step(one, [2], LIMITS, goal=0.4).moves) == 1
    assert fill_step(one, [2], LIMITS, goal=0.5).moves == ()


def test_brokers_that_are_filled_end_no_lower_than_they_are_even_where_all_others_are_lower() -> None:
    one = problem([[1.0]] * 3, [(0, [0.3]), (0, [0.3]), (1, [0.1]), (2, [0.2])])
    found = filling_bound(one, [0], 4)
    assert (round(found.level, 9), found.kind) == (0.6, MEAN)
    assert round(filling_bound(one, [1], 4).level, 9) == 0.35
    assert filling_bound(one, [], 4).level == lower_bounds(one, 4)[0].level
    # Of the others the fullest counts, not the largest.
    uneven = problem([[10.0], [10.0], [100.0]], [*[(1, [2.0])] * 4, *[(2, [2.5])] * 4])
    assert round(filling_bound(uneven, [0], 8).level, 9) == 0.4


# ---- how many brokers ----


@pytest.mark.parametrize("unit", [0.01, 1.0, 1e6])
def test_so_many_brokers_are_needed_whatever_the_unit(unit: float) -> None:
    bundles = [(0, [3.0 * unit, 1.0])] * 8
    one = problem([[10.0 * unit, 100.0]] * 4, bundles, fixed=[[1.0 * unit, 0.0]] * 3 + [[3.0 * unit, 0.0]])
    # 24 and 2 that stay, of 9 each; with a headroom of a half 4 each, so that no two have room on one.
    assert brokers_needed(one, 0.0) == BrokersNeeded(at_least=3, sufficient=3, resource=0)
    assert brokers_needed(one, 0.5) == BrokersNeeded(at_least=8, sufficient=9, resource=0)
    # The largest bundle does not fit beside what the broker uses itself.
    assert brokers_needed(one, 0.7) == BrokersNeeded(at_least=None, sufficient=None, resource=0)
    second = problem([[100.0, 10.0 * unit]] * 4, [(0, [1.0, 3.0 * unit])] * 8)
    assert brokers_needed(second, 0.0) == BrokersNeeded(at_least=3, sufficient=3, resource=1)


def test_no_number_of_brokers_is_enough_where_one_has_nothing_left_or_too_little_for_a_bundle() -> None:
    without_any = problem([[10.0, 10.0]], [(0, [1.0, 0.0])], fixed=[[0.0, 10.0]])
    assert brokers_needed(without_any, 0.0) == BrokersNeeded(at_least=None, sufficient=None, resource=1)
    too_large = problem([[100.0, 0.1]], [(0, [90.0, 0.0])])
    assert brokers_needed(too_large, 0.7) == BrokersNeeded(at_least=None, sufficient=None, resource=0)
    by_far = problem([[100.0, 0.1]], [(0, [40.0, 0.09])])
    assert [brokers_needed(by_far, headroom).resource for headroom in (0.7, 1.0)] == [1, 0]


def test_a_load_that_fits_to_the_last_bit_needs_no_more_brokers_and_none_needs_one() -> None:
    assert brokers_needed(problem([[0.3]] * 2, [(0, [0.1])] * 9), 0.0).sufficient == 3
    assert brokers_needed(problem([[10.0]] * 2, []), 0.0).sufficient == 1
    many = problem([[10.0]] * 2, [(0, [1e-3])] * 2, fixed=[[0.0], [0.0]])
    assert brokers_needed(replace(many, size=many.size * 1e3 + np.array([[0.0], [9.0]])), 0.0).sufficient == 2


# ---- parts of a plan ----


# ---- what the checkers accept ----


def test_rounding_is_a_ten_millionth() -> None:
    one = problem([[10.0]] * 2, [(0, [5.0]), (1, [1.0])])
    honest = Certificate(max_moves=0, before=0.5, reached=0.5, bound=0.3, kind=MEAN)
    assert flaws(one, [], honest) == []
    for off, wrong in ((5e-8, 0), (5e-7, 1)):
        assert len(flaws(one, [], replace(honest, before=0.5 + off))) == wrong
        assert len(flaws(one, [], replace(honest, reached=0.5 - off))) == wrong
        assert len(flaws(one, [], replace(honest, bound=0.3 * (1 + off)))) == wrong
    large = problem([[1.0]] * 2, [(0, [500.0]), (1, [100.0])])
    told = Certificate(max_moves=0, before=500 + 2e-5, reached=500 - 2e-5, bound=300.0, kind=MEAN)
    assert flaws(large, [], told) == []


def test_each_kind_of_bound_is_proved_by_its_numbers() -> None:
    small = problem([[1.0], [1.0]], [(0, [0.4]), (0, [0.4]), (0, [0.4])], fixed=[[0.5], [0.0]])

    def wrong(bound: float, kind: str, size: float = 0.0, moves: int = 0) -> bool:
        told = Certificate(max_moves=moves, before=1.7, reached=1.7, bound=bound, kind=kind, size=size)
        return flaws(small, [], told) != []

    assert (wrong(0.85, MEAN), wrong(0.86, MEAN)) == (False, True)
    assert (wrong(0.5, FIXED), wrong(0.51, FIXED)) == (False, True)
    assert (wrong(0.9, PIGEONHOLE, 0.4), wrong(0.91, PIGEONHOLE, 0.4)) == (False, True)
    assert (wrong(1.69, REMOVAL, moves=0), wrong(1.29, REMOVAL, moves=1)) == (False, False)
    assert (wrong(1.31, REMOVAL, moves=1), wrong(0.89, REMOVAL, moves=2)) == (True, False)
    assert wrong(0.9, PIGEONHOLE, 0.0)


def test_prices_prove_what_the_load_costs_less_what_the_moves_may_save() -> None:
    one = problem([[10.0], [20.0]], [(0, [6.0]), (1, [2.0])], fixed=[[1.0], [4.0]])

    def wrong(bound: float, prices: Sequence[float], move_price: float = 0.0, moves: int = 1) -> bool:
        told = Certificate(
            max_moves=moves, before=0.7, reached=0.7, bound=bound, kind=PRICES, prices=np.array(prices)[:, None],
            move_price=move_price,
        )  # fmt: skip
        return flaws(one, [], told) != []

    # A load of 1 costs 0.05 on the first and 0.025 on the second, where all that may move is cheaper.
    level = 0.05 + 0.1 + 6 * 0.025 + 2 * 0.025
    assert (wrong(level, [0.5, 0.5]), wrong(level + 0.01, [0.5, 0.5])) == (False, True)
    # A move costs 0.1: what the first bundle saves by it; one move may be free.
    paid = 0.05 + 0.1 + (6 * 0.025 + 0.1) + 2 * 0.025 - 0.1
    assert (wrong(paid, [0.5, 0.5], 0.1), wrong(paid + 0.01, [0.5, 0.5], 0.1)) == (False, True)
    assert (wrong(paid + 0.1, [0.5, 0.5], 0.1, moves=0), wrong(paid + 0.11, [0.5, 0.5], 0.1, moves=0)) == (False, True)
    assert wrong(0.1, [0.6, 0.6]), "they are more than 1"


def test_a_wave_begins_where_the_one_before_ended() -> None:
    two = problem([[10.0], [10.0]], [(0, [4.0]), (0, [3.0]), (1, [4.0])])
    first, second = PlannedMove(0, 0, 1), PlannedMove(1, 0, 1)
    assert wave_flaws(two, [(first,)], [0.8, 0.8]) == []
    assert wave_flaws(two, [(first,), (second,)], [1.0, 1.0]) == [
        "wave 2: broker 1 is at 1.1 of its capacity, 1 is allowed"
    ]
    assert wave_flaws(two, [], [0.0, 0.0]) == [], "no broker receives anything"
    together = [(first, second)]
    for connections, most, wrong in (([0.25] * 3, 0.5, False), ([0.25] * 3, 0.4999, True), ([2.0] * 3, 4.0, False)):
        of = problem([[10.0], [20.0]], [(0, [4.0]), (0, [3.0]), (1, [4.0])], connections=connections)
        assert bool(wave_flaws(of, together, [1.0, 1.0], most_connections=most)) is wrong
    back = PlannedMove(2, 1, 0)
    assert wave_flaws(two, [(first,), (back,), (second,)], [1.0, 1.0]) == []


def test_a_ceiling_is_above_0_and_at_most_1_and_rates_are_no_less_than_0() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0]), (1, [2.0])])
    plan = plan_of(one, [empty_step(one, [0], LIMITS)])
    ceiling = "the ceiling is not above 0 and at most 1"
    assert [plan_flaws(replace(plan, ceiling=each)) for each in (1.0, 0.0, 1.01)] == [[], [ceiling], [ceiling]]
    numbers = "a number of connections or messages is not finite, or below 0"
    assert plan_flaws(replace(plan, msg_rate=np.array([1.0, -1.0]))) == [numbers]
    pace = "the connections in a second are not above 0"
    assert plan_flaws(replace(plan, pace=replace(plan.pace, connections_per_second=0.0))) == [pace]
    assert plan_flaws(replace(plan, pace=replace(plan.pace, connections_per_second=None))) == []
    assert plan_flaws(replace(plan, pace=replace(plan.pace, burst_seconds=0.0))) == [
        "the period of the connections is not above 0"
    ]
