"""What bounds, parts of plans, fits and histories of small random problems are stays what it is.

Loads and capacities are few small whole numbers: many are equal, and many brokers are exactly at a limit.
The numbers are tests.small_worlds.digits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

import numpy as np

from controller.model.load import CPU, Bools
from controller.model.peak_history import PeakHistory
from controller.planning.checking.checker import flaws
from controller.planning.checking.wave_checker import wave_flaws
from controller.planning.foresight.bundle_history import BundleHistory
from controller.planning.foresight.foresee import error_of, followed, foreseen
from controller.planning.from_view import Counted, fitted_below_the_limit, reported, stated, weight
from controller.planning.objective import above, ceilings, load_after, loads, score
from controller.planning.plans.rightsizing import brokers_needed
from controller.planning.plans.waves import WaveLimits, WavePace, waves_of
from controller.planning.problem import (
    FIXED,
    MEAN,
    PIGEONHOLE,
    PRICES,
    REMOVAL,
    BalanceProblem,
    Certificate,
    PlannedMove,
)
from controller.planning.shares import fitted
from controller.planning.solving.bounds import fewest_moves, indivisible, lower_bounds, mean_level, plain_bound
from controller.planning.solving.certify import planned
from controller.planning.solving.frontier import numbers_of_moves, plans_by_moves
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.rounds import PartLimits, part_for_a_round
from controller.planning.units import of_one_unit
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.balance_problems import whole_numbers
from tests.plans import rules_of, tight_problem
from tests.small_worlds import digits, numbers_in

MINUTE_MS: Final = 60_000


def without_resources(one: BalanceProblem) -> BalanceProblem:
    of = {name: getattr(one, name)[:, :0] for name in ("capacity", "fixed", "size")}
    return replace(one, resources=(), **of)


def bounded(seed: int) -> int:
    """Bounds, and what follows from them."""
    chance = Random(seed)
    one = tight_problem(chance)
    levels, most = (0.0, 0.25, 0.5, 0.8, 1.0), chance.choice((None, 0, 1, 2, 5))
    with np.errstate(divide="raise", invalid="raise"):
        found = lower_bounds(one, most)
    return digits(
        found,
        plain_bound(one),
        mean_level(one),
        [fewest_moves(each, level) for each in (one, without_resources(one)) for level in levels],
        [indivisible(one, level) for level in levels],
        [brokers_needed(one, headroom) for headroom in (0.0, 0.2, 0.5, 0.9, 1.0)],
        numbers_of_moves(chance.choice((0, 1, 11, 12, 13, 14, 40)), [chance.choice((-1, 0, 3))]),
    )


def checked(seed: int) -> int:
    """What is wrong with moves, certificates and waves of which nothing is right but by chance."""
    chance, told = Random(seed), list[Any]()
    one = tight_problem(chance)
    n, m = len(one.capacity), len(one.owner)
    before = float((loads(one, one.owner) / one.capacity).max(initial=0.0))
    even = np.full(one.capacity.shape, 1 / one.capacity.size)
    odd = even.copy()
    odd[0, 0] = -0.1
    for _ in range(6):
        rows = [chance.randrange(m) if m and chance.random() < 0.95 else chance.choice((-1, m)) for _ in range(3)]
        moves = [
            PlannedMove(
                row,
                int(one.owner[row]) if 0 <= row < m and chance.random() < 0.95 else chance.randrange(n),
                chance.randrange(n) if chance.random() < 0.95 else chance.choice((-1, n)),
            )
            for row in rows[: chance.choice((0, 1, 2, 3))]
        ]
        possible = [move for move in moves if 0 <= move.bundle < m and 0 <= move.destination < n]
        reached = float((load_after(one, possible) / one.capacity).max(initial=0.0))
        certificate = Certificate(
            max_moves=chance.choice((0, 1, 2, 5)),
            before=before + chance.choice((0.0, 0.0, 0.0, 1.5e-7, 0.1)),
            reached=reached + chance.choice((0.0, 0.0, 0.0, 1.5e-7, -0.1)),
            bound=chance.choice((0.0, 0.1, 0.5, 1.0, reached, reached + 1.5e-7, np.inf)),
            kind=chance.choice((MEAN, FIXED, PIGEONHOLE, REMOVAL, PRICES, "none")),
            resource=chance.choice((0, 0, 1, -1, len(one.resources))),
            size=chance.choice((0.0, 1.0, 2.0, 5.0)),
            prices=chance.choice((None, even, odd, np.ones((1, 1)))),
            move_price=chance.choice((0.0, 0.01, 0.1)),
        )
        told.append([numbers_in(flaw) for flaw in flaws(one, moves, certificate)])
        cut = chance.randrange(len(moves) + 1)
        ceiling = [chance.choice((0.5, 0.8, 1.0, 1.2)) for _ in range(n)]
        if chance.random() < 0.1:
            ceiling[-1] = chance.choice((np.nan, -0.1))
        emptied, most = [chance.randrange(n)] if chance.random() < 0.4 else [], chance.choice((0.0, 5.0, 12.0, np.inf))
        if chance.random() < 0.3:
            most = float(sum(one.connections[move.bundle] for move in possible[:cut]))
        told.append([numbers_in(flaw) for flaw in wave_flaws(one, [moves[:cut], moves[cut:]], ceiling, emptied, most)])
        told.append(certificate.gap)
    return digits(told)


def parted(seed: int) -> int:
    """The part of a plan that one round carries out, and what the plan would be with fewer moves."""
    chance = Random(seed)
    one = tight_problem(chance)
    asked = list[str]()
    allowed = rules_of(chance, len(one.capacity), asked)
    search = SearchLimits(max_moves=chance.choice((3, 8)), effort=5_000)
    moves = tuple(planned(one, search, allowed if chance.random() < 0.7 else None).moves)
    limits = PartLimits(
        max_moves=chance.choice((0, 1, 2, 4, 8)),
        max_connections=chance.choice((None, None, 5.0, 20.0)),
        max_per_broker=chance.choice((1, 2, 8)),
    )
    part = part_for_a_round(one, moves, limits, allowed)
    told: list[Any] = [
        part,
        ceilings(one, part),
        score(one, part),
        above(np.array([0.5, 0.7, 1.0]), 0.6),
        above(np.array([0.6 + 4e-10]), 0.6),
    ]
    if seed % 3 == 0:
        told += plans_by_moves(one, numbers_of_moves(2), 4_000, allowed)
    return digits(told, " ".join(asked))


def waved(seed: int) -> int:
    """Any moves, cut into waves, or that these are not possible."""
    chance, told = Random(seed), list[Any]()
    one = tight_problem(chance)
    n, m, asked = len(one.capacity), len(one.owner), list[str]()
    for _ in range(3):
        allowed = rules_of(chance, n, asked)
        rows = [row for row in range(m) if chance.random() < 0.6]
        moves = [PlannedMove(row, int(one.owner[row]), chance.randrange(n)) for row in rows]
        limits = WaveLimits(
            max_moves=chance.choice((1, 2, 5, 9)),
            max_per_broker=chance.choice((1, 2, 3, 9)),
            max_connections=chance.choice((None, None, 2.0, 5.0, 12.0)),
        )
        ceiling = ceilings(one, moves) + chance.choice((0.0, 0.5, 9.0))
        rate, burst = chance.choice((None, 2.0)), chance.choice((None, 30.0, 90.0))
        told.append(WavePace(wave_seconds=60.0, connections_per_second=rate, burst_seconds=burst).max_connections)
        try:
            told.append(
                waves_of(one, [move for move in moves if move.source != move.destination], limits, ceiling, allowed)
            )
        except ValueError:
            told.append("not possible")
    return digits(told, " ".join(asked))


def fits(seed: int) -> int:
    """How usage follows load, of few brokers, of which some are full or do not say what their limit is."""
    chance, told = Random(seed), list[Any]()
    for _ in range(3):
        n = chance.choice((0, 1, 2, 3, 4, 5, 6, 8))
        driven = np.array([[chance.choice((0.0, 1.0, 2.0, 5.0)) for _ in range(3)] for _ in range(n)]).reshape(n, 3)
        if chance.random() < 0.3:
            driven[:, 1] = driven[:, 0] * chance.choice((1, 3))
        factors = np.array([chance.choice((0.0, 0.0, 1.0, 2.0)) for _ in range(3)])
        usage = chance.choice((0.0, 0.0, 1.0, 10.0)) + driven @ factors
        usage = usage + np.array([chance.choice((0.0, 0.0, 0.1, 3.0)) for _ in range(n)])
        limit = np.array([chance.choice((3.0, 10.0, 100.0)) for _ in range(n)])
        for cautious in (False, True):
            told.append(fitted(usage, driven, cautious=cautious))
            told.append(fitted_below_the_limit(np.minimum(usage, limit), limit, driven, cautious=cautious))
    return digits(told)


def stated_cluster(seed: int) -> int:
    """The problem of brokers that report in percent, nothing, no numbers, or more than they have."""
    chance = Random(seed)
    brokers = []
    for row in range(chance.choice((1, 2, 3, 5))):
        held = {
            f"acme/a/{row}{at}": Bundle(
                msg_rate_in=chance.choice((0.0, 10.0, 100.0)),
                msg_rate_out=chance.choice((0.0, 100.0)),
                mbytes_in=chance.choice((0.0, 1.0, 5.0)),
                mbytes_out=chance.choice((0.0, 2.0)),
                topics=chance.choice((0, 1, 10)),
                producers=chance.choice((0, 1, 5)),
                consumers=chance.choice((0, 2)),
            )
            for at in range(chance.choice((0, 1, 3)))
        }
        brokers.append(Broker(f"b-{row}:8080", bundles=held))
    view = cluster_view(*brokers)
    usage, limit = view.brokers.usage.copy(), view.brokers.limit.copy()
    for row in range(len(usage)):
        for column in range(usage.shape[1]):
            limit[row, column] = chance.choice((100.0, 1600.0, 1000.0, 1001.0, 1e6, 1.0, 0.0, np.inf))
            usage[row, column] = chance.choice((0.0, 0.1, 0.5, 0.994, 0.995, 1.0, 1.2, np.nan, -1.0)) * min(
                limit[row, column], 1e6
            )
        if chance.random() < 0.4:
            limit[row] = 100.0
        if chance.random() < 0.3:
            limit[row, CPU] = chance.choice((100.0, 400.0))
    view = replace(view, brokers=replace(view.brokers, usage=usage, limit=limit))
    names = ("cpu", "direct memory", "bandwidth in", "bandwidth out", "memory")
    counted = Counted(
        weights={name: chance.choice((1.0, 1.0, 0.5, 0.0)) for name in names},
        msg_rate=chance.choice((0.0, 0.5, 1000.0)),
        topics=chance.choice((0.0, 1.0)),
        sessions=chance.choice((0.0, 100.0)),
    )
    stays = np.array([chance.random() < 0.2 for _ in view.bundles.names], np.bool_)
    found = stated(view, stays, counted, following=chance.choice(((), ("cpu", "bandwidth in"))))
    return digits(found, reported(view, found), of_one_unit(usage, limit), weight(view.bundles.load))


def remembered(seed: int) -> int:
    """The history of bundles that come, go, burst and have a rhythm, by minutes and then by hours."""
    chance, told, memory = Random(seed), list[Any](), PeakHistory()
    at_ms, names = chance.choice((0, 59, 600)) * MINUTE_MS, [f"acme/a/{at}" for at in range(chance.choice((1, 3, 6)))]
    known = {name: chance.choice((0.0, 0.2, 1.0, 10.0, 300.0)) for name in names}
    hours = chance.random() < 0.6
    for turn in range(30 if hours else 12):
        if chance.random() < 0.1:
            known[f"acme/a/{chance.randrange(9)}"] = 20.0
        if chance.random() < 0.1 and len(known) > 1:
            del known[chance.choice(sorted(known))]
        for name in known:
            if name[-1] in "24":  # it grows, or shrinks
                known[name] = 1.0 + known[name] * (1.03 if name[-1] == "2" else 0.95)
            elif chance.random() < 0.3:
                known[name] = chance.choice((0.0, 0.3, 1.0, 10.0, 11.0, 300.0, 1e6))
        bundles = {name: Bundle(msg_rate_in=rate, mbytes_out=chance.choice((0.0, 1.0))) for name, rate in known.items()}
        view = cluster_view(Broker("b-0:8080", bundles=bundles), as_of_ms=at_ms)
        history = followed(view, BundleHistory.read(memory, view.bundles.names))
        memory = history.written(memory)
        if turn % 5 == 0 or turn > 26:
            ahead = foreseen(view, history, minutes=chance.choice((0.0, 1.0, 30.0)), by_day=chance.random() < 0.8)
            told += [ahead, error_of(history), history.varies(), history.day()]
        told.append([memory, history.of_view()])
        at_ms += MINUTE_MS * (60 if hours else chance.choice((1, 1, 2, 9, 11)))
    names = list(view.bundles.names)  # of columns that do not fit together, or are no columns, nothing is kept
    for level, keys in ((memory.level[:-8], memory.keys), (memory.level, "AAA"), (f"!{memory.level}", memory.keys)):
        told.append(BundleHistory.read(replace(memory, level=level, keys=keys), names).written(memory))
    return digits(told)


def wide(seed: int) -> int:
    """A search among more brokers, bundles or resources than a step looks at, whose filters refuse most."""
    chance = Random(seed)
    n, m, columns = ((140, 300, 1), (30, 420, 1), (40, 90, 9), (150, 160, 2), (3, 300, 30))[seed % 5]
    sizes = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0)
    full = chance.randrange(n)
    connections = np.array([float(chance.choice((0, 1, 2, 5))) for _ in range(m)])
    one = BalanceProblem(
        resources=tuple(f"r{column}" for column in range(columns)),
        capacity=np.full((n, columns), 400.0),
        fixed=np.array([[float(chance.choice((0, 1, 2, 3, 60, 90)))] * columns for _ in range(n)]),
        size=np.array([[chance.choice(sizes) for _ in range(columns)] for _ in range(m)]),
        owner=np.array([full if chance.random() < 0.6 else chance.randrange(n) for _ in range(m)], np.int64),
        connections=connections,
        disturbance=connections + 10.0,
    )
    asked = list[str]()
    refused = chance.choice((0, 20, 60, 98))

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        asked.append(f"{bundle}/{len(moves)}")
        return (np.arange(n) % 7 != bundle % 7) if bundle % 100 >= refused else np.zeros(n, np.bool_)

    limits = SearchLimits(
        max_moves=chance.choice((6, 12, 40)), goal=0.2, effort=chance.choice((20_000, 100_000)), begin=0.2
    )
    found = planned(one, limits, allowed if seed % 4 else None)
    return digits(found, score(one, found.moves), " ".join(asked))


def larger(seed: int) -> int:
    """A search among 30 to 80 bundles on brokers that are alike and six tenths full, with an effort to spare."""
    chance = Random(seed)
    one = whole_numbers(chance.choice((4, 6, 8)), chance.choice((30, 50, 80)), chance.choice((1, 1, 2, 3)), seed)
    one = replace(one, size=one.size ** chance.choice((1, 2)))
    whole = one.size.sum(axis=0) + one.fixed.sum(axis=0)
    one = replace(one, capacity=np.ones_like(one.capacity) * whole / len(one.capacity) / 0.6)
    goal = mean_level(one) * chance.choice((1.0, 1.02, 1.05, 1.1, 1.2))
    effort, most = chance.choice((20_000, 100_000, 300_000)), chance.choice((10, 30, 100))
    asked = list[str]()
    allowed = rules_of(chance, len(one.capacity), asked) if seed % 2 else None
    limits = SearchLimits(max_moves=most, goal=goal, begin=goal, effort=effort)
    return digits(planned(one, limits, allowed), " ".join(asked))


#: Worlds of `larger` in which a search does all that it can do.
LARGER: Final = (19, 21, 30, 31, 45, 53, 67)
BOUNDED: Final = 26_794_789
CHECKED: Final = 92_453_522
PARTED: Final = 3_685_692
WAVED: Final = 7_111_087
FITS: Final = 27_886_853
STATED: Final = 91_277_115
REMEMBERED: Final = 37_048_764
WIDE: Final = 85_717_117
SEARCHED: Final = 14_323_922


def of_all(told: Callable[[int], int], seeds: Iterable[int]) -> int:
    return digits([told(seed) for seed in seeds])


def test_levels_that_no_plan_goes_below_are_the_same() -> None:
    assert of_all(bounded, range(40)) == BOUNDED


def test_the_same_is_found_wrong_with_moves_certificates_and_waves() -> None:
    assert of_all(checked, range(90)) == CHECKED


def test_a_round_carries_out_the_same_part_of_a_plan() -> None:
    assert of_all(parted, range(60)) == PARTED


def test_moves_are_cut_into_the_same_waves() -> None:
    assert of_all(waved, range(90)) == WAVED


def test_usage_follows_load_in_the_same_way() -> None:
    assert of_all(fits, range(30)) == FITS


def test_brokers_that_report_anything_state_the_same_problem() -> None:
    assert of_all(stated_cluster, range(40)) == STATED


def test_the_same_is_remembered_and_foreseen_of_bundles() -> None:
    assert of_all(remembered, range(6)) == REMEMBERED


def test_among_more_than_it_looks_at_a_search_takes_the_same_moves() -> None:
    assert of_all(wide, range(10)) == WIDE


def test_a_search_with_an_effort_to_spare_takes_the_same_moves() -> None:
    assert of_all(larger, LARGER) == SEARCHED
