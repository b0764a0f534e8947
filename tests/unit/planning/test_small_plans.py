"""What plans for small problems are, of every kind, with their waves and certificates, stays what it is.

Whoever has a plan of one release and carries it out with the next one finds the same plan.  The numbers are
tests.small_worlds.digits.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

import numpy as np

from controller.model.load import RESOURCE_WORDS, Bools, Floats, Ints
from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.from_view import Counted, Foreseen, Later, stated
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
from controller.planning.plans.waves import WaveLimits
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from controller.wire.plan import encode_plan
from tests.balance_problems import whole_numbers
from tests.plans import plan_of
from tests.small_worlds import SmallWorld, digits


def rules(chance: Random, n: int, asked: list[str]) -> Allowed | None:
    """What filters let a bundle do: anything, some brokers by its number, or so many coming to a broker.

    Each question to them is added to *asked*: where a search looks otherwise, it shows there even if it finds the same.
    """
    kind, most = chance.choice(("", "all", "number", "count")), chance.choice((1, 2, 3))

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        asked.append(f"{bundle}:{''.join(f'{move.bundle}>{move.destination}' for move in moves[-2:])}/{len(moves)}")
        if kind == "number":
            return np.isin(np.arange(n), [(bundle + nth) % n for nth in range(most + 1)])
        if kind == "count":
            return np.bincount([move.destination for move in moves], minlength=n) < most
        return np.ones(n, np.bool_)

    return allowed if kind else None


def problem_of(chance: Random) -> BalanceProblem:
    n, columns = chance.choice((1, 2, 3, 4, 5)), chance.choice((1, 1, 2, 3))
    return whole_numbers(n, chance.choice((0, 1, 4, 9, 16, 24)), columns, chance.randrange(1 << 20))


def searched(seed: int) -> int:
    chance = Random(seed)
    one = problem_of(chance)
    limits = SearchLimits(
        max_moves=chance.choice((0, 1, 3, 8, 30)),
        goal=chance.choice((0.0, 0.25, 0.5, 1.0)),
        begin=chance.choice((0.0, 0.25, 0.5, 1.0)),
        effort=chance.choice((0, 2_000, 10_000, 40_000)),
    )
    asked = list[str]()
    found = planned(one, limits, rules(chance, len(one.capacity), asked))
    return digits(found, score(one, found.moves), " ".join(asked))


def closed(asked: list[str], allowed: Allowed, brokers: Collection[int], owner: Ints | None) -> Allowed:
    """*allowed*, whoever is closed; it is added to *asked*."""
    asked.append(f"without {sorted(brokers)} {None if owner is None else owner.tolist()}")
    return allowed


def step_of(chance: Random, one: BalanceProblem, asked: list[str]) -> tuple[PlanKind, list[PlanStep]]:
    n, m = len(one.capacity), len(one.owner)
    allowed = rules(chance, n, asked)
    limits = PlanLimits(
        max_moves=chance.choice((2, 5, 100)),
        waves=WaveLimits(
            max_moves=chance.choice((1, 3, 10)),
            max_per_broker=chance.choice((1, 2, 5)),
            max_connections=chance.choice((None, 40.0, 100.0)),
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


def forged(chance: Random, plan: Plan) -> Plan:
    """*plan* with one number of one step that is a little, or a lot, too low or too high."""
    at = chance.randrange(len(plan.steps))
    step = plan.steps[at]
    certificate = step.certificate
    moves, waves = list(step.moves), list(step.waves)
    by = chance.choice((1e-12, 1e-10, 2e-9, 0.01, 0.5)) * chance.choice((-1, 1))
    match chance.choice(("before", "reached", "bound", "max_moves", "resource", "size", "order", "place", "wave")):
        case "max_moves":
            certificate = replace(certificate, max_moves=certificate.max_moves + chance.choice((-1, 1)))
        case "resource":
            certificate = replace(certificate, resource=certificate.resource + chance.choice((-1, 1)))
        case "size":
            certificate = replace(certificate, size=certificate.size + chance.choice((-1.0, 1.0)))
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
    steps = [*plan.steps[:at], replace(step, waves=tuple(waves), certificate=certificate), *plan.steps[at + 1 :]]
    return replace(plan, steps=tuple(steps), ceiling=chance.choice((plan.ceiling, plan.ceiling, 0.5)))


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
        [len(plan_flaws(each)) for each in (plan, *(forged(chance, plan) for _ in range(6) if steps))],
        fewest_restart_moves(one, [rows[at : at + 2] for at in range(0, len(rows), 2)]),
        brokers_needed(one, chance.choice((0.0, 0.2, 0.5, 1.0))),
        with_more_brokers(one, 2).capacity,
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
    told = [digits(stated(view, stays, counted, following=chance.choice(((), ("cpu",), RESOURCE_WORDS))))]

    def ratios() -> Floats:
        return np.array([chance.choice((0.5, 1.0, 2.0)) for _ in view.bundles.names])

    later = [[Later(f"at {at}", ratios(), 60.0 * at) for at in range(chance.choice((1, 2, 3)))] for _ in range(2)]
    ahead = Foreseen(load=view.bundles.load, later=later)
    split = replace(view, splitting=frozenset(view.bundles.names[:1])).with_preallocated(
        len(view.bundles) - 1, chance.randrange(len(view.brokers))
    )
    told += [digits(stated(each, stays, counted, ahead)) for each in (view, split)]
    known = stated(view, stays, counted, following=RESOURCE_WORDS).fits
    told.append(digits(stated(split, stays, counted, following=RESOURCE_WORDS, fits=known)))
    return digits(told)


SEARCHED: Final = 61_357_213
PLANNED: Final = [
    24_458_773, 19_124_703, 91_300_168, 63_554_194, 21_749_672, 81_607_974, 66_870_253, 19_573_176, 68_042_678,
    85_933_179, 80_135_547, 62_364_612, 35_611_725, 79_813_601, 27_375_730, 96_933,
]  # fmt: skip
STATED: Final = 79_029_897


def test_the_search_finds_the_same_plans() -> None:
    assert digits([searched(seed) for seed in range(48)]) == SEARCHED


def test_steps_of_every_kind_have_the_same_waves_and_forged_ones_the_same_flaws() -> None:
    assert [planned_steps(seed) for seed in range(16)] == PLANNED


def test_a_cluster_states_the_same_problem() -> None:
    assert digits([from_a_view(seed) for seed in range(12)]) == STATED
