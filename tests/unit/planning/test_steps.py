"""Single steps of the search: what is compared, and how often filters are asked before a step gives up."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from controller.model.load import Bools
from controller.planning.problem import PlannedMove
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.excess import Excess
from controller.planning.solving.limits import Effort, SearchLimits
from controller.planning.solving.partial_plan import PartialPlan
from controller.planning.solving.reach import Target, reach
from controller.planning.solving.steps import best_exchange, best_move, compared, emptiest, largest
from controller.planning.solving.tidying import disturb_less
from tests.balance_problems import problem, whole_numbers


def nowhere(n: int) -> tuple[list[int], Callable[[int], Bools]]:
    """Filters that let no bundle go anywhere, and the bundles that they were asked about."""
    asked: list[int] = []

    def fits(bundle: int) -> Bools:
        asked.append(bundle)
        return np.zeros(n, np.bool_)

    return asked, fits


def test_the_emptiest_other_brokers_are_compared_fewer_with_many_resources() -> None:
    standing = Assignment(problem([[10.0]] * 4, [(0, [1.0]), (1, [3.0]), (2, [2.0]), (3, [2.0])]))
    assert emptiest(standing, 1, 2).tolist() == [0, 2]
    assert emptiest(standing, 0, 3).tolist() == [2, 3, 1]
    assert emptiest(standing, 0, 9).tolist() == [2, 3, 1]
    assert [compared(Assignment(whole_numbers(2, 1, resources, 1))) for resources in (1, 3, 4)] == [128, 128, 96]
    wide = np.ones((2, 30))
    many = replace(problem([[1.0]] * 2, []), capacity=wide, fixed=wide, size=wide[:0])
    assert compared(Assignment(many)) == 16


def test_a_broker_may_be_filled_to_its_ceiling_and_no_further() -> None:
    standing = Assignment(problem([[8.0]] * 2, [(0, [2.0]), (1, [4.0])]))
    fuller = Assignment(problem([[8.0]] * 2, [(0, [3.0]), (0, [4.0]), (1, [2.0]), (1, [1.0])]))
    exchanged = Assignment(problem([[8.0]] * 2, [(0, [4.0]), (1, [2.0])], fixed=[[2.0], [0.0]]))

    def ways(ceiling: float) -> list[bool]:
        """Whether each part of the search fills a broker to three quarters, an exchange for a while."""
        excess, other = Excess(standing, 0.5, ceiling), np.array([False, True])
        return [
            bool(np.isfinite(excess.best_place(0, other)[1])),
            bool(np.isfinite(excess.added(np.array([0]), np.array([1]))[0, 0])),
            best_move(fuller, 0, lambda _bundle: other.copy(), ceiling) is not None,
            best_exchange(exchanged, 0, lambda _bundle: np.ones(2, np.bool_), ceiling) is not None,
        ]

    assert ways(0.75) == [True] * 4
    assert ways(0.74) == [False] * 4


def test_what_a_bundle_adds_is_the_same_whether_it_is_asked_for_one_broker_or_for_several() -> None:
    standing = Assignment(problem([[8.0], [8.0], [4.0]], [(0, [2.0]), (1, [5.0]), (2, [3.0])]))
    excess = Excess(standing, 0.5, 9.0)
    one_by_one = [excess.best_place(0, np.arange(3) == place)[1] for place in (1, 2)]
    assert one_by_one == [0.375**2 - 0.125**2, 0.75**2 - 0.25**2]
    assert excess.added(np.array([0]), np.array([1, 2])).tolist() == [one_by_one]
    assert excess.added(np.array([0])).tolist()[0][1:] == one_by_one


def test_of_many_bundles_the_128_largest_are_exchanged() -> None:
    one = problem([[1000.0]] * 2, [(0, [float(1 + row % 65)]) for row in range(130)])
    assert largest(Assignment(one), 0).tolist() == [row for row in range(130) if row % 65]


def test_a_step_asks_filters_about_64_bundles_and_a_step_to_a_level_about_32() -> None:
    standing = Assignment(problem([[100.0]] * 2, [(0, [1.0])] * 70))
    asked, fits = nowhere(2)
    assert best_move(standing, 0, fits, 1.0) is None
    assert sorted(asked) == list(range(64))
    asked, fits = nowhere(2)
    target = Target(level=0.4, max_moves=50, ceiling=1.0, tenure=7, steps=150)
    assert not reach(standing, target, fits, Effort(1_000_000))
    assert sorted(asked) == list(range(32))


def test_an_exchange_is_looked_for_with_the_16_emptiest_brokers() -> None:
    theirs = [(broker, [1.0]) for broker in range(1, 20)]
    standing = Assignment(problem([[10.0]] * 20, [(0, [5.0]), (0, [4.0]), *theirs]))
    asked, fits = nowhere(20)
    assert best_exchange(standing, 0, fits, 1.0) is None
    # The larger bundle of the full broker, and one of each of the others.
    assert (asked.count(0), sorted(set(asked))) == (16, [0, *range(2, 18)])


def test_for_a_bundle_that_disturbs_less_8_are_asked_about_the_least_first() -> None:
    disturbances = [50.0, *(20.0 - row for row in range(12))]
    one = problem([[100.0]] * 2, [(0, [5.0])] * 13, disturbance=disturbances)
    asked: list[int] = []

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        assert not moves
        asked.append(bundle)
        return np.array([True, bundle == 5])

    draft = PartialPlan(one, SearchLimits(max_moves=1), allowed)
    draft.assignment.move(0, 0, 1)
    disturb_less(draft)
    assert asked == [12, 11, 10, 9, 8, 7, 6, 5]
    assert draft.assignment.moves == (PlannedMove(5, 0, 1),)
    asked.clear()
    draft.assignment.back_to([PlannedMove(0, 0, 1)])
    draft.problem.disturbance[5] = 19.5
    disturb_less(draft)
    assert (len(asked), draft.assignment.moves) == (8, (PlannedMove(0, 0, 1),))


def test_a_bundle_takes_the_place_of_one_that_disturbs_more_where_neither_broker_gets_fuller() -> None:
    def moved(size: float) -> int:
        """Which bundle moves where, beside the one that is planned, there is one of *size* that disturbs less."""
        one = problem([[20.0]] * 2, [(0, [5.0]), (0, [size]), (0, [11.0 - size])], fixed=[[0.0], [9.0]],
                      disturbance=[50.0, 10.0, 99.0])  # fmt: skip
        draft = PartialPlan(one, SearchLimits(max_moves=1, begin=0.6), None)
        draft.assignment.move(0, 0, 1)
        disturb_less(draft)
        return draft.assignment.moves[0].bundle

    assert [moved(size) for size in (2.0, 5.0, 9.0)] == [0, 1, 0]


def test_a_step_has_to_lower_the_usage_by_a_billionth_or_by_one_of_what_is_above_the_capacity() -> None:
    def helps(now: float, by: float) -> tuple[bool, bool]:
        """A move that lowers the usage *now* by so much, and an exchange that does."""
        move = problem([[1.0]] * 2, [(0, [0.25])], fixed=[[now - 0.25], [now - by - 0.25]])
        both = problem([[1.0]] * 2, [(0, [0.5]), (1, [0.25])], fixed=[[now - 0.5], [now - by - 0.5]])
        everywhere = np.ones(2, np.bool_)
        return (
            best_move(Assignment(move), 0, lambda _bundle: everywhere.copy(), 1e3) is not None,
            best_exchange(Assignment(both), 0, lambda _bundle: everywhere.copy(), 1e3) is not None,
        )

    assert [helps(0.6, by) for by in (7e-10, 2e-9)] == [(False, False), (True, True)]
    assert [helps(100.0, by) for by in (5e-8, 2e-7)] == [(False, False), (True, True)]
