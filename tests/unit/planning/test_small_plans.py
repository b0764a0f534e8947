"""What plans for small problems are, of every kind, with their waves and certificates, stays what it is.

Whoever has a plan of one release and carries it out with the next one finds the same plan.  The numbers are
tests.small_worlds.digits.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

import numpy as np

from controller.model.load import RESOURCE_WORDS, Floats, Ints
from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.from_view import Counted, Foreseen, Later, reported, stated
from controller.planning.objective import score
from controller.planning.plans.plan import Plan, PlanKind, PlanStep, broker_changes, disturbed
from controller.planning.plans.plan_steps import (
    PlanLimits,
    empty_step,
    fill_step,
    kept_step,
    named_step,
    restart_steps,
    spread_step,
)
from controller.planning.plans.restarting import fewest_restart_moves
from controller.planning.plans.rightsizing import brokers_needed, removable, with_more_brokers
from controller.planning.plans.waves import WaveLimits, WavePace
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, PRICES, REMOVAL, BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from controller.wire.plan import encode_plan
from tests.balance_problems import whole_numbers
from tests.plans import plan_of, rules_of, tight_problem
from tests.small_worlds import SmallWorld, digits, numbers_in


def problem_of(chance: Random) -> BalanceProblem:
    if (kind := chance.random()) < 0.5:
        return tight_problem(chance)
    if kind < 0.7:  # full on the whole, of bundles of many sizes
        one = whole_numbers(
            chance.choice((4, 5, 6)), chance.choice((24, 36)), chance.choice((1, 2)), chance.randrange(1 << 20)
        )
        return replace(one, capacity=one.capacity / chance.choice((2, 4)))
    n, columns = chance.choice((1, 2, 3, 4, 5)), chance.choice((1, 1, 2, 3))
    return whole_numbers(n, chance.choice((0, 1, 4, 9, 16, 24)), columns, chance.randrange(1 << 20))


def searched(seed: int) -> int:
    chance = Random(seed)
    one = problem_of(chance)
    limits = SearchLimits(
        max_moves=chance.choice((0, 1, 3, 8, 30)),
        goal=chance.choice((0.0, 0.25, 0.5, 0.75, 0.9, 1.0)),
        begin=chance.choice((0.0, 0.25, 0.5, 1.0)),
        effort=chance.choice((0, 2_000, 10_000, 40_000, 150_000)),
    )
    asked = list[str]()
    with np.errstate(divide="raise", invalid="raise"):
        found = planned(one, limits, rules_of(chance, len(one.capacity), asked))
    return digits(found, found.certificate.gap, score(one, found.moves), " ".join(asked))


def closed(asked: list[str], allowed: Allowed, brokers: Collection[int], owner: Ints | None) -> Allowed:
    """*allowed*, whoever is closed; it is added to *asked*."""
    asked.append(f"without {sorted(brokers)} {None if owner is None else owner.tolist()}")
    return allowed


def step_of(chance: Random, one: BalanceProblem, asked: list[str]) -> tuple[PlanKind, list[PlanStep]]:
    n, m = len(one.capacity), len(one.owner)
    allowed = rules_of(chance, n, asked)
    limits = PlanLimits(
        max_moves=chance.choice((2, 5, 100)),
        waves=WaveLimits(
            max_moves=chance.choice((1, 3, 10)),
            max_per_broker=chance.choice((1, 2, 5)),
            max_connections=chance.choice((None, 5.0, 12.0, 40.0)),
        ),
        ceiling=chance.choice((1.0, 0.8, 0.5)),
        effort=chance.choice((0, 20_000)),
    )
    closing = None if allowed is None else partial(closed, asked, allowed)
    some = sorted(chance.sample(range(n), chance.choice((1, 1, min(2, n)))))
    moves = [PlannedMove(row, int(one.owner[row]), chance.randrange(n)) for row in range(m) if chance.random() < 0.3]
    moves = [move for move in moves if move.source != move.destination]
    match chance.choice(("spread", "spread", "kept", "named", "empty", "fill", "restart")):
        case "spread":
            return "balance", [spread_step(one, limits, chance.choice((1.0, 1.05, 1.2)), allowed)]
        case "kept":
            return "balance", [kept_step(one, moves, limits, allowed)]
        case "named":
            return "balance", [named_step(one, moves, limits, allowed)]
        case "empty":
            return "drain", [empty_step(one, some, limits, closing)]
        case "fill":
            return "join", [fill_step(one, some, limits, chance.choice((0.0, 0.5)), allowed)]
        case _:
            rows = list(range(n))
            groups = [rows[at : at + 2] for at in range(0, n, 2)]
            return "rolling_restart", restart_steps(one, groups, limits, closing)[1]


#: What is forged.
FORGED: Final = (
    *("before", "reached", "bound", "max_moves", "resource", "size", "kind", "prices"),
    *("order", "place", "wave", "twice", "brokers", "stuck"),
)


def forged(chance: Random, plan: Plan) -> Plan:
    """*plan* with one number of one step that is a little, or a lot, too low or too high."""
    at = chance.randrange(len(plan.steps))
    step = plan.steps[at]
    certificate = step.certificate
    moves, waves = list(step.moves), list(step.waves)
    by = chance.choice((1e-12, 2e-9, 1.5e-7, 3e-7, 0.01, 0.5)) * chance.choice((-1, 1))
    brokers, stuck = step.brokers, step.stuck
    match chance.choice(FORGED):
        case "max_moves":
            certificate = replace(certificate, max_moves=certificate.max_moves + chance.choice((-1, 1)))
        case "resource":
            certificate = replace(certificate, resource=certificate.resource + chance.choice((-1, 1)))
        case "size":
            certificate = replace(certificate, size=certificate.size + chance.choice((-1.0, 1.0)))
        case "kind":
            kind = chance.choice((MEAN, FIXED, PIGEONHOLE, REMOVAL, PRICES, "none"))
            certificate = replace(certificate, kind=kind, bound=certificate.bound * chance.choice((0.5, 1.0)))
        case "prices":
            prices = np.full(plan.problem.capacity.shape, chance.choice((0.1, 0.25, 0.5, -0.1)))
            price = chance.choice((0.0, 0.01, 0.1))
            certificate = replace(
                certificate, kind=PRICES, prices=prices, move_price=price, bound=chance.choice((0.1, 0.4))
            )
        case "brokers":
            brokers = tuple(sorted({*brokers, chance.randrange(-1, len(plan.brokers) + 1)} - {chance.randrange(3)}))
        case "stuck":
            stuck = (*stuck, chance.randrange(-1, len(plan.bundles) + 1))
        case "twice" if moves:
            waves = [*waves, (moves[0],)]
        case "order" if moves:
            waves = [tuple(reversed(wave)) for wave in reversed(waves)]
        case "place" if moves:
            row = chance.randrange(len(moves))
            name = chance.choice(("bundle", "source", "destination"))
            moves[row] = moves[row]._replace(**{name: getattr(moves[row], name) + chance.choice((-1, 1, 5))})
            waves = [tuple(moves)]
        case "wave":
            waves = [tuple(moves)]
        case name if hasattr(certificate, name):
            certificate = replace(certificate, **{name: getattr(certificate, name) + by})
    changed = replace(step, waves=tuple(waves), certificate=certificate, brokers=brokers, stuck=stuck)
    steps = (*plan.steps[:at], changed, *plan.steps[at + 1 :])
    return replace(plan, steps=steps, ceiling=chance.choice((plan.ceiling, plan.ceiling, 0.5)))


def misshapen(chance: Random, plan: Plan) -> Plan:
    """*plan* with names, numbers of the problem or a pace that cannot be."""
    n, m, one = len(plan.brokers), len(plan.bundles), plan.problem
    odd = chance.choice((0.0, 1.0, -1.0, np.inf, np.nan))
    match chance.choice(("ceiling", "kind", "names", "shape", "number", "owner", "pace", "pace", "rate", "guarded")):
        case "ceiling":
            return replace(plan, ceiling=chance.choice((0.0, 1.0, 1.1, -0.5)))
        case "kind":
            return replace(plan, kind="other")  # type: ignore[arg-type]
        case "names" if n > 1:
            return replace(plan, brokers=(*plan.brokers[:-1], plan.brokers[0]))
        case "guarded" if m:
            return replace(plan, bundles=("pulsar/system/0x00000000_0xffffffff", *plan.bundles[1:]))
        case "shape":
            name = chance.choice(("capacity", "fixed", "size", "owner", "connections", "disturbance"))
            return replace(plan, problem=replace(one, **{name: getattr(one, name)[:-1]}))
        case "number" if m:
            name = chance.choice(("capacity", "fixed", "size", "connections", "disturbance"))
            values = getattr(one, name).copy()
            values[0] = odd
            return replace(plan, problem=replace(one, **{name: values}))
        case "owner" if m:
            return replace(plan, problem=replace(one, owner=np.append(one.owner[:-1], chance.choice((-1, 0, n)))))
        case "rate" if m:
            return replace(plan, msg_rate=np.append(plan.msg_rate[:-1], odd))
    seconds = [chance.choice((120.0, 60.0, odd)) for _ in range(3)]
    pace = WavePace(
        wave_seconds=seconds[0], connections_per_second=chance.choice((None, 0.1, odd)), burst_seconds=seconds[2]
    )
    return replace(plan, pace=pace)


def told_by(plan: Plan) -> list[list[str]]:
    """The numbers of each flaw, and the gaps of the steps."""
    return [*(numbers_in(flaw) for flaw in plan_flaws(plan)), [f"{step.certificate.gap:g}" for step in plan.steps]]


def planned_steps(seed: int) -> int:
    chance = Random(seed)
    one = problem_of(chance)
    asked = list[str]()
    kind, steps = step_of(chance, one, asked)
    plan, rows = plan_of(one, steps, kind), list(range(len(one.capacity)))
    return digits(
        steps,
        " ".join(asked),
        broker_changes(plan),
        disturbed(plan),
        encode_plan(plan).hex(),
        [told_by(each) for each in (plan, *(forged(chance, plan) for _ in range(6) if steps))],
        [told_by(misshapen(chance, plan)) for _ in range(4)],
        fewest_restart_moves(one, [rows[at : at + 2] for at in range(0, len(rows), 2)]),
        brokers_needed(one, chance.choice((0.0, 0.2, 0.5, 1.0))),
        with_more_brokers(one, 2).capacity,
        with_more_brokers(one, 2).fixed,
        removable(one, chance.choice((1, 2)), chance.choice((1.0, 0.7))),
    )


def from_a_view(seed: int) -> int:
    """The problem of a cluster with some bundles that stay."""
    chance, view = Random(seed), SmallWorld.of(seed).view()
    stays = np.array([chance.random() < 0.2 for _ in view.bundles.names], np.bool_)
    counted = Counted(
        weights=dict.fromkeys(RESOURCE_WORDS, chance.choice((1.0, 0.5))),
        msg_rate=chance.choice((0.0, 1000.0)),
        topics=chance.choice((0.0, 100.0)),
        sessions=chance.choice((0.0, 100.0)),
    )
    told = list[Any]([stated(view, stays, counted, following=chance.choice(((), ("cpu",), RESOURCE_WORDS)))])

    def ratios() -> Floats:
        return np.array([chance.choice((0.5, 1.0, 2.0)) for _ in view.bundles.names])

    def times() -> list[Later]:
        some = range(chance.choice((1, 2, 3)))
        return [Later(f"at {at}", ratios(), chance.choice((0.5, 60.0)) * (at + 1)) for at in some]

    later = [times(), times()]
    steady = view.bundles.load * np.array([[chance.choice((0.5, 1.0, 2.0))] for _ in view.bundles.names])
    ahead = Foreseen(load=steady, later=later)
    split = replace(view, splitting=frozenset(view.bundles.names[:1])).with_preallocated(
        len(view.bundles) - 1, chance.randrange(len(view.brokers))
    )
    for each in (view, split):
        found = stated(each, stays, counted, ahead)
        told += [found, found.now, found.minutes, found.without_later(), reported(each, found)]
    known = stated(view, stays, counted, following=RESOURCE_WORDS).fits
    told.append(stated(split, stays, counted, following=RESOURCE_WORDS, fits=known))
    return digits(told)


SEARCHED: Final = 40_478_125
PLANNED: Final = 79_724_667
STATED: Final = 71_207_371


def test_the_search_finds_the_same_plans() -> None:
    assert digits([searched(seed) for seed in range(120)]) == SEARCHED


def test_steps_of_every_kind_have_the_same_waves_and_forged_ones_the_same_flaws() -> None:
    assert digits([planned_steps(seed) for seed in range(50)]) == PLANNED


def test_a_cluster_states_the_same_problem() -> None:
    assert digits([from_a_view(seed) for seed in range(8)]) == STATED
