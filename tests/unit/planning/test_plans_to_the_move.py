"""What the search finds for some problems, move by move: so a change of any step of it is seen, and is meant.

Where a plan changes because the search got better, the table is written anew; ``reached`` says whether it did.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
import pytest

from controller.model.load import Bools
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import Effort, SearchLimits
from controller.planning.solving.reach import Target, reach
from tests.balance_problems import problem, whole_numbers

PLANS: Final = (
    ((4, 24, 1, 1), {"max_moves": 6}, 0.2575, "12:2 5:3 1:3 2:2 14:3"),
    ((4, 24, 2, 2), {"max_moves": 6}, 0.46, "17:3 14:3 19:2 10:3 7:2 0:0"),
    ((5, 30, 2, 3), {"max_moves": 8}, 0.55, "11:4 17:3 10:4 27:4 26:3 4:3 12:3 3:4"),
    (
        (5, 30, 1, 4),
        {"max_moves": 20},
        0.29,
        "6:3 8:2 9:1 10:0 29:3 15:0 2:0 26:1 17:0 22:1 11:4 25:2 20:4 18:2 19:4 23:2 14:4",
    ),
    (
        (6, 40, 3, 5),
        {"max_moves": 30, "goal": 1.05, "begin": 1.1},
        0.47,
        "10:5 35:4 17:4 33:5 15:4 32:5 22:4 39:2 26:5 9:3 31:3 13:0 20:0 12:3 14:1",
    ),
    ((4, 16, 4, 6), {"max_moves": 5}, 0.2833, "1:3 11:3 2:3 5:0 9:3"),
    ((8, 60, 2, 7), {"max_moves": 12}, 0.48, "56:7 47:6 53:6 52:7 27:6 3:7 6:7 5:6 22:7 12:6 51:7 10:6"),
    (
        (8, 60, 2, 8),
        {"max_moves": 40, "goal": 1.02},
        0.46,
        "11:7 46:6 20:4 17:6 22:7 38:4 53:6 7:7 50:6 52:4 12:7 21:6 15:5 1:3 48:4 10:7 5:7 30:7",
    ),
    (
        (8, 60, 2, 8),
        {"max_moves": 40, "goal": 1.02, "effort": 0},
        0.46,
        "38:7 46:6 22:7 41:4 11:6 10:7 21:4 12:7 20:6 42:4 36:7 53:4 50:7 52:6 6:4 1:5 4:6 24:4 14:3",
    ),
    ((3, 300, 1, 9), {"max_moves": 10}, 8.96, "23:2 223:2 190:2 229:2 41:2 30:2 34:2 69:2 83:2 126:2"),
    (
        (40, 200, 1, 10),
        {"max_moves": 15},
        0.605,
        "138:31 139:34 85:35 82:39 84:24 34:28 42:38 161:36 177:15 113:33 27:34 23:32 26:31 60:37 165:35",
    ),
    (
        (5, 40, 2, 11),
        {"max_moves": 40},
        0.5,
        "23:4 10:3 29:3 3:4 8:4 15:3 9:2 35:4 28:2 13:1 33:3 2:1 7:4 21:3 6:2 25:0 37:3 11:0 39:2 12:0 31:1 4:1 14:0"
        " 16:1 18:1 5:2 19:2",
    ),
    ((6, 36, 2, 14), {"max_moves": 36, "goal": 1.2, "begin": 1.3}, 0.45, "21:3 25:3 18:4 6:5 33:4 20:3 3:4 24:5"),
)


def found(
    shape: tuple[int, int, int, int], limits: dict[str, Any], allowed: Allowed | None = None
) -> tuple[float, str]:
    """The highest usage after the plan, and its moves, each as bundle:destination; goals are times the mean."""
    one = whole_numbers(*shape)
    mean = mean_level(one)
    given = {name: value * mean if name in ("begin", "goal") else value for name, value in limits.items()}
    given.setdefault("effort", 30_000)
    plan = planned(one, SearchLimits(**given), allowed)
    return round(plan.certificate.reached, 4), " ".join(f"{bundle}:{to}" for bundle, _, to in plan.moves)


@pytest.mark.parametrize(("shape", "limits", "reached", "moves"), PLANS)
def test_every_machine_finds_this_plan(
    shape: tuple[int, int, int, int], limits: dict[str, Any], reached: float, moves: str
) -> None:
    assert found(shape, limits) == (reached, moves)


def by_number(bundle: int, _moves: Sequence[PlannedMove]) -> Bools:
    """Bundle 0 may go to broker 0 and 1, bundle 1 to 1 and 2, ..., of five."""
    return np.isin(np.arange(5), (bundle % 5, (bundle + 1) % 5))


def one_after_the_other(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
    """The last two brokers take turns."""
    may = np.ones(5, np.bool_)
    may[3 + len(moves) % 2] = bundle % 3 == 0
    return may


FILTERED: Final = (
    (by_number, {"max_moves": 8}, 0.62, "27:3 15:1 12:3 21:1 34:4 18:4 33:4 35:1"),
    (
        by_number,
        {"max_moves": 40, "goal": 1.1},
        0.5425,
        "27:3 1:1 12:3 21:1 34:4 18:4 39:4 35:1 4:4 19:4 33:4 29:4 3:4",
    ),
    (one_after_the_other, {"max_moves": 8}, 0.5475, "27:4 15:4 12:4 21:4 34:4 25:3 20:4 6:3"),
    (
        one_after_the_other,
        {"max_moves": 40, "goal": 1.05, "begin": 1.1},
        0.52,
        "15:4 12:4 21:4 37:3 34:4 6:3 20:4 14:2 27:1 33:4 4:1",
    ),
)


@pytest.mark.parametrize(("allowed", "limits", "reached", "moves"), FILTERED)
def test_every_machine_finds_this_plan_under_filters(
    allowed: Allowed, limits: dict[str, Any], reached: float, moves: str
) -> None:
    assert found((5, 40, 2, 12), limits, allowed) == (reached, moves)


MORE: Final[Sequence[tuple[tuple[int, int, int, int], dict[str, Any], Allowed | None, float, int, int]]] = (
    ((5, 33, 1, 100), {"max_moves": 27}, None, 0.38, 11, 2639548800),
    ((4, 23, 3, 101), {"max_moves": 8, "goal": 1.01}, None, 0.32, 8, 487453647),
    ((3, 19, 3, 102), {"max_moves": 8}, None, 0.505, 7, 3531534027),
    ((2, 7, 1, 103), {"max_moves": 2, "goal": 1.2}, None, 0.28, 2, 3387178259),
    ((2, 28, 4, 104), {"max_moves": 8, "goal": 1.05, "begin": 1.2}, None, 0.8567, 3, 3447925118),
    ((3, 20, 2, 105), {"max_moves": 19, "effort": 9000}, None, 0.365, 7, 2837932924),
    ((6, 33, 4, 106), {"max_moves": 5}, None, 0.565, 5, 2676373511),
    ((3, 27, 2, 107), {"max_moves": 18, "goal": 1.01}, None, 0.4367, 14, 2950728235),
    ((5, 38, 3, 108), {"max_moves": 34}, None, 0.5033, 19, 2732572591),
    ((3, 18, 4, 109), {"max_moves": 4, "goal": 1.14}, None, 0.5, 4, 1925220212),
    ((2, 10, 4, 110), {"max_moves": 4, "goal": 1.05, "begin": 1.2}, None, 0.3667, 3, 794680172),
    ((3, 24, 4, 111), {"max_moves": 21, "effort": 35000}, None, 0.525, 10, 3120444472),
    ((3, 6, 4, 112), {"max_moves": 4}, None, 0.215, 4, 1653030794),
    ((5, 6, 1, 113), {"max_moves": 4, "goal": 1.09}, None, 0.095, 2, 144398892),
    ((6, 12, 3, 114), {"max_moves": 5}, None, 0.145, 5, 2413214450),
    ((3, 33, 1, 115), {"max_moves": 11, "goal": 1.03}, None, 0.5167, 6, 2978092468),
    ((3, 29, 3, 116), {"max_moves": 14, "goal": 1.05, "begin": 1.2}, None, 0.69, 9, 3286552341),
    ((2, 33, 4, 117), {"max_moves": 9, "effort": 5000}, None, 1.08, 8, 3853257271),
    ((3, 10, 4, 118), {"max_moves": 6}, None, 0.26, 4, 3967361970),
    ((4, 15, 3, 119), {"max_moves": 14, "goal": 1.0}, None, 0.255, 8, 3395112964),
    ((3, 16, 4, 120), {"max_moves": 14}, None, 0.335, 5, 3726040538),
    ((2, 34, 4, 121), {"max_moves": 16, "goal": 1.19}, None, 1.55, 4, 1193419297),
    ((3, 29, 2, 122), {"max_moves": 7, "goal": 1.05, "begin": 1.2}, None, 0.525, 6, 639255946),
    ((6, 15, 3, 123), {"max_moves": 10, "effort": 11000}, None, 0.225, 10, 576026074),
    ((5, 38, 1, 124), {"max_moves": 21}, by_number, 0.35, 12, 1787284076),
    ((5, 18, 2, 125), {"max_moves": 26, "goal": 1.13}, one_after_the_other, 0.26, 5, 3272524475),
    ((5, 35, 1, 126), {"max_moves": 6}, by_number, 0.62, 6, 2806084256),
    ((5, 34, 2, 127), {"max_moves": 13, "goal": 1.04}, one_after_the_other, 0.51, 13, 3523812057),
    ((5, 35, 1, 128), {"max_moves": 15, "goal": 1.05, "begin": 1.2}, by_number, 0.3167, 11, 216700386),
    ((5, 16, 3, 129), {"max_moves": 2, "effort": 25000}, one_after_the_other, 0.455, 2, 4235491459),
    ((5, 32, 4, 130), {"max_moves": 18}, by_number, 0.39, 17, 3953162087),
    ((5, 25, 1, 131), {"max_moves": 6, "goal": 1.14}, one_after_the_other, 0.42, 6, 74044394),
    ((5, 27, 2, 132), {"max_moves": 17}, by_number, 0.46, 16, 1104433398),
    ((5, 23, 3, 133), {"max_moves": 21, "goal": 1.06}, one_after_the_other, 0.29, 12, 97554983),
    ((5, 23, 1, 134), {"max_moves": 9, "goal": 1.05, "begin": 1.2}, by_number, 0.22, 7, 841520478),
    ((5, 37, 3, 135), {"max_moves": 25, "effort": 25000}, one_after_the_other, 0.5067, 14, 1269683416),
)


@pytest.mark.slow
def test_every_machine_finds_the_plans_of_many_small_problems() -> None:
    """Each with its highest usage, how many moves it has, and a checksum of them."""
    rows = []
    for shape, limits, allowed, *_ in MORE:
        usage, moves = found(shape, limits, allowed)
        rows.append((shape, limits, allowed, usage, len(moves.split()), crc32(moves.encode())))
    assert [row for row, known in zip(rows, MORE, strict=True) if row != known] == [], "what stands in its place now"


Rule: TypeAlias = Callable[[int], Allowed]


def everywhere(n: int) -> Allowed:
    return lambda _bundle, _moves: np.ones(n, np.bool_)


def two_of_them(n: int) -> Allowed:
    return lambda bundle, _moves: np.isin(np.arange(n), (bundle % n, (bundle + 1) % n))


def in_turn(n: int) -> Allowed:
    """Each third bundle may go everywhere; the last two brokers take turns with the others."""

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        may = np.ones(n, np.bool_)
        may[-1 - len(moves) % 2] = bundle % 3 == 0
        return may

    return allowed


def by_the_moves(n: int) -> Allowed:
    """One half of the brokers is closed to some bundles, and the other one to others, by how many moves there are."""

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        may = np.ones(n, np.bool_)
        may[: n // 2] = (bundle + len(moves)) % 3 != 0
        may[n // 2 :] = (7 * bundle + len(moves)) % 4 != 0
        return may

    return allowed


ASKED: Final[Sequence[tuple[tuple[int, int, int, int], dict[str, Any], Rule, float, int, int]]] = (
    ((4, 3, 2, 1051), {"max_moves": 3, "goal": 1.05, "begin": 1.2}, in_turn, 0.135, 2, 2332174284),
    ((5, 4, 4, 1122), {"max_moves": 5, "effort": 100_000}, in_turn, 0.0925, 3, 1664931331),
    ((5, 6, 1, 1359), {"max_moves": 6, "goal": 1.05, "begin": 1.2, "effort": 100_000}, everywhere, 0.11, 5, 3673475153),
    ((2, 6, 1, 1032), {"max_moves": 6, "goal": 1.2, "begin": 1.3, "effort": 10_000}, everywhere, 0.17, 2, 3032651971),
    ((3, 4, 2, 1027), {"max_moves": 5, "goal": 1.1}, in_turn, 0.1333, 2, 1427834602),
    (
        (4, 18, 2, 1265),
        {"max_moves": 4, "goal": 1.2, "begin": 1.3, "effort": 10_000},
        everywhere,
        0.2675,
        4,
        1595803456,
    ),
    ((5, 3, 3, 1279), {"max_moves": 2, "goal": 1.01, "effort": 20_000}, in_turn, 0.115, 2, 4058021315),
    ((4, 36, 4, 1116), {"max_moves": 2, "goal": 1.05, "begin": 1.2, "effort": 10_000}, two_of_them, 1.53, 2, 216326175),
    # Of plans that were found, filters let only a part follow.
    ((3, 6, 1, 8815), {"max_moves": 6, "goal": 1.1, "effort": 60_000}, in_turn, 0.1567, 3, 4037019292),
    ((4, 14, 2, 10275), {"max_moves": 4, "goal": 1.1, "effort": 20_000}, in_turn, 0.2767, 3, 2763408925),
    ((2, 6, 1, 9362), {"max_moves": 6, "goal": 1.1, "effort": 60_000}, in_turn, 0.16, 2, 1206236846),
    (
        (2, 6, 1, 9045),
        {"max_moves": 4, "goal": 1.05, "begin": 1.15, "effort": 100_000},
        by_the_moves,
        0.16,
        4,
        939343803,
    ),
)


def test_every_machine_asks_filters_the_same_on_the_way_to_these_plans() -> None:
    """Each with its highest usage, how many moves it has, and a checksum of which bundles were asked about and when."""
    rows = []
    for shape, limits, rule, *_ in ASKED:
        rule_of, asked = rule(shape[0]), list[str]()

        def allowed(bundle: int, moves: Sequence[PlannedMove], rule_of: Allowed = rule_of, to: Any = asked) -> Bools:
            to.append(f"{bundle} {len(moves)}")
            return rule_of(bundle, moves)

        usage, moves = found(shape, limits, allowed)
        rows.append((shape, limits, rule, usage, len(moves.split()), crc32("".join(asked).encode())))
    assert [row for row, known in zip(rows, ASKED, strict=True) if row != known] == [], "what stands in its place now"


# ---- reaching a level ----

TWO: Final = problem([[10.0]] * 2, [(0, [3.0]), (0, [2.0]), (1, [1.0])])


def target(level: float, **changes: Any) -> Target:
    return Target(**{"level": level, "max_moves": 3, "ceiling": 1.0, "tenure": 7, "steps": 150, **changes})


def all_may(_bundle: int) -> Bools:
    return np.ones(2, np.bool_)


def test_a_level_is_reached_to_within_a_billionth() -> None:
    for above, is_reached in ((1e-10, True), (1e-8, False)):
        standing = Assignment(problem([[10.0]] * 2, [(0, [5.0]), (1, [5.0])]))
        assert reach(standing, target(0.5 - above), all_may, Effort(100_000)) is is_reached
        assert standing.moves == ()


def test_nothing_leaves_a_broker_that_is_above_the_level_by_rounding_alone() -> None:
    # Of broker 0 nothing can go anywhere; broker 1 is above the level by less than a billionth.
    one = problem([[10.0]] * 3, [(0, [6.0]), (1, [3.0]), (1, [2.0 + 1e-9]), (2, [3.0])])
    asked = list[int]()

    def may(bundle: int) -> Bools:
        asked.append(bundle)
        return np.full(3, bundle != 0)

    standing = Assignment(one)
    assert not reach(standing, target(0.5), may, Effort(100_000))
    assert (set(asked), standing.moves) == ({0}, ())


def test_a_search_costs_2000_pairs_each_step_2000_and_its_pairs_and_each_question_1000() -> None:
    def cost(level: float, resources: int = 1, questions: bool = False, brokers: int = 2) -> int:
        size = [(0, [3.0] * resources), (0, [2.0] * resources), (1, [1.0] * resources)]
        one = problem([[10.0] * resources] * brokers, size)
        effort = Effort(1_000_000)

        def may(_bundle: int) -> Bools:
            if questions:
                effort.ask()
            return np.ones(brokers, np.bool_)

        reach(Assignment(one), target(level), may, effort)
        return 1_000_000 - effort.remaining_pairs

    assert cost(0.5) == 2000, "it is reached without a step"
    # Two bundles and one broker that they may go to.
    assert cost(0.35) == 2000 + 2002
    assert cost(0.35, brokers=3) == 2000 + 2004
    assert cost(0.35, questions=True) == 2000 + 2002 + 1000
    assert cost(0.35, resources=3) == 2000 + 2002
    effort = Effort(100_000)
    effort.spend(100, 4)
    assert effort.remaining_pairs == 100_000 - 2100 * 16 // 9


def test_without_effort_no_step_is_made_and_the_plan_is_as_it_was() -> None:
    standing = Assignment(TWO)
    assert reach(standing, target(0.35), all_may, Effort(4000))
    assert standing.moves == (PlannedMove(1, 0, 1),)
    assert not reach(standing, target(0.2), all_may, Effort(100_000))
    assert standing.moves == (PlannedMove(1, 0, 1),)
    standing = Assignment(TWO)
    assert not reach(standing, target(0.35), all_may, Effort(2000))
    assert not reach(standing, target(0.35, steps=0), all_may, Effort(100_000))
    assert reach(standing, target(0.35, steps=1), all_may, Effort(100_000))


def test_where_more_moves_were_made_than_are_allowed_those_that_help_least_go_back() -> None:
    standing = Assignment(problem([[10.0]] * 3, [(0, [3.0]), (0, [2.0]), (0, [1.0])]))
    for move in (PlannedMove(2, 0, 1), PlannedMove(1, 0, 1), PlannedMove(0, 0, 2)):
        standing.move(*move)
    assert reach(standing, target(0.3, max_moves=2), lambda _: np.ones(3, np.bool_), Effort(100_000))
    assert standing.moves == (PlannedMove(1, 0, 1), PlannedMove(0, 0, 2))


# ---- where bundles stand ----


def test_moves_change_loads_and_how_full_brokers_are_and_going_back_undoes_it() -> None:
    one = problem([[10.0, 20.0]] * 3, [(0, [3.0, 2.0]), (0, [2.0, 8.0]), (1, [1.0, 1.0])])
    standing = Assignment(one)
    before = standing.highest.copy()
    assert before.tolist() == pytest.approx([0.5, 0.1, 0.0])
    assert standing.movable_on(0).tolist() == [0, 1]
    standing.move(1, 0, 2)
    assert (standing.place(1), standing.place(0)) == (2, 0)
    assert (standing.movable_on(0).tolist(), standing.movable_on(2).tolist()) == ([0], [])
    assert standing.load.tolist() == [[3, 2], [1, 1], [2, 8]]
    assert standing.highest.tolist() == pytest.approx([0.3, 0.1, 0.4])
    assert standing.peak == 0.4
    standing.back_to([PlannedMove(0, 0, 1)])
    assert standing.moves == (PlannedMove(0, 0, 1),)
    assert standing.highest.tolist() == pytest.approx([0.4, 0.4, 0.0])
    standing.take_back(0)
    assert standing.highest.tolist() == pytest.approx(before.tolist())


def test_moves_are_put_in_an_order_in_which_no_broker_is_above_the_ceiling() -> None:
    standing = Assignment(problem([[10.0]] * 2, [(0, [6.0]), (1, [5.0]), (1, [4.0])]))
    there, back = PlannedMove(0, 0, 1), PlannedMove(2, 1, 0)
    standing.back_to([there, back])
    assert standing.ordered(np.full(2, 1.1)) == (back, there)
    assert standing.ordered(np.full(2, 1.0)) == (back,)
    assert standing.ordered(np.full(2, 1.5)) == (there, back)
    assert standing.ordered(np.full(2, 0.9)) == ()
