"""Whole rounds of PeakShedder, to the word: verdicts, unloads, advice, and what is left for later rounds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from controller.model.decision import Reason, UnloadDecision, Verdict
from controller.model.load import ClusterView, Ints, TopicDetail
from controller.model.topic_kinds import PERSISTENT, SEGMENTS
from controller.planning.from_view import MappedProblem, map_problem
from controller.planning.objective import highest, load_after, loads
from controller.planning.problem import PlannedMove
from controller.planning.solving.rounds import PartLimits
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.destinations import Destinations
from controller.strategies.shedding.peak_shedder.memory import PeakHistory, Rest
from controller.strategies.shedding.peak_shedder.told import RoundTold
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.balance_problems import problem

MINUTE: Final = 60_000
MB: Final = 1024 * 1024
SHEDDER: Final = PeakShedder(hold=1)


def cluster(at: int, /, **brokers: dict[str, float]) -> ClusterView:
    """Brokers of bundles of so many MB/s, each of which takes 1 % of the CPU, in the minute *at*."""
    made = [
        Broker(
            f"{name}:8080",
            cpu=sum(of.values()) / 100,
            bundles={bundle: Bundle(mbytes_in=each, producers=3) for bundle, each in of.items()},
        )
        for name, of in brokers.items()
    ]
    return cluster_view(*made, as_of_ms=at * MINUTE)


HOT: Final = {"a": {"a0": 30.0, "a1": 25.0, "a2": 15.0}, "b": {"b0": 20.0}, "c": {"c0": 15.0}}


def told(decision: UnloadDecision) -> list[tuple[str, str, float | None, float | None, str, str]]:
    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 4)

    return [
        (each.subject, str(each.reason), rounded(each.observed), rounded(each.limit), each.unit, each.detail)
        for each in decision.verdicts
    ]


def moves(decision: UnloadDecision) -> list[tuple[str, str, str]]:
    return [(each.bundle, each.source, each.destination) for each in decision.unloads]


EXPLAINED: Final = "; brokers' usage is explained by load with an error of: cpu 0.0%"


def forecast(reason: str) -> tuple[str, str, float | None, float | None, str, str]:
    said = (
        "forecast: the next minute's load differs by this share; looked ahead: nothing changes; moves verified: 0, 0"
        " broke their promise; their typical error: 0"
    )
    return ("cluster", reason, 0.09, None, "of the load", said)


def test_a_round_says_what_it_found_what_it_does_and_how_full_brokers_end() -> None:
    _, memory = SHEDDER.decide(cluster(0, a={}, b={}, c={}), PeakHistory())
    decision, memory = SHEDDER.decide(cluster(7, **HOT), memory)
    assert told(decision) == [
        (
            "cluster", "Overloaded", 0.4, None, "usage",
            "0.7 before, 0.4 after; no plan of at most 50 moves ends below 0.35 (mean: that is the mean usage, by cpu);"
            f" gap 14.3%{EXPLAINED}",
        ),
        forecast("Overloaded"),
        ("a:8080", "Overloaded", 0.7, 0.4175, "usage", "by cpu; the plan brings it to 40 %"),
        ("b:8080", "Balanced", 0.2, 0.3675, "usage", "by cpu; the plan brings it to 35 %"),
        ("c:8080", "Balanced", 0.15, 0.3675, "usage", "by cpu; the plan brings it to 30 %"),
    ]  # fmt: skip
    assert {each.by for each in decision.verdicts} == {"PeakShedder"}
    assert moves(decision) == [
        ("a0", "a:8080", "c:8080"), ("a2", "a:8080", "b:8080"), ("c0", "c:8080", "a:8080"),
    ]  # fmt: skip
    assert {(each.final, each.in_order) for each in decision.unloads} == {(True, True)}
    overloaded = "a:8080: Overloaded (0.7 vs 0.3675 usage): "
    way = "by cpu; the plan brings it to 40 %"
    assert [str(each.why) for each in decision.unloads] == [
        f"{overloaded}{way}",
        f"{overloaded}{way}",
        f"{overloaded}gives bundles, and gets this one in exchange; {way}; c:8080 goes from 15 to 30 %",
    ]
    made = memory.promises.items()
    assert [(name, round(each.promised, 6), each.mean) for name, each in made] == [
        ("a0", 0.3, 0.35), ("a2", 0.35, 0.35),
        ("c0", 0.4, 0.35),
    ]  # fmt: skip
    assert memory.proven.gap == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"max_moves": 1},
            "0.4 (removal: more bundles than that have to leave brokers above it, by cpu); gap 12.5%",
        ),
        (
            {"max_moves_per_broker": 1},
            "0.35 (mean: that is the mean usage, by cpu); gap 28.6%; 2 more moves later bring it to 0.4",
        ),
    ],
)
def test_a_round_that_may_make_one_move_makes_the_first(limits: dict[str, Any], said: str) -> None:
    decision, _ = replace(SHEDDER, **limits).decide(cluster(0, **HOT), PeakHistory())
    moves_most = limits.get("max_moves", 50)
    assert told(decision)[0][5] == (
        f"0.7 before, 0.45 after; no plan of at most {moves_most} moves ends below {said}{EXPLAINED}"
    )
    assert told(decision)[1] == forecast("Overloaded")
    assert moves(decision) == [("a0", "a:8080", "c:8080")]


def test_a_plan_that_gains_too_little_is_refused_with_what_is_to_be_split() -> None:
    decision, memory = SHEDDER.decide(cluster(0, a={"a0": 90.0, "a1": 1.0}, b={"b0": 10.0}, c={}), PeakHistory())
    assert decision.unloads == ()
    assert told(decision) == [
        (
            "cluster", "BelowMinimum", 0.91, None, "usage",
            "0.91 before, 0.91 after; no plan of at most 50 moves ends below 0.9 (pigeonhole: so many large bundles fit"
            f" nowhere below it, by cpu); gap 1.1%{EXPLAINED}",
        ),
        forecast("BelowMinimum"),
        ("a:8080", "Overloaded", 0.91, 0.4035, "usage", "by cpu; the plan brings it to 91 %"),
        ("b:8080", "Balanced", 0.1, 0.3535, "usage", ""),
        ("c:8080", "Balanced", 0.0, 0.3535, "usage", ""),
        ("cluster", "BelowMinimum", 0.01, 0.05, "usage", "no move that is allowed lowers a broker by enough"),
        (
            "a0", "TooLarge", 0.9, 0.3535, "usage",
            "alone above the fair share of a broker, by cpu: split it; its topics are not known, so not where",
        ),
    ]  # fmt: skip
    assert memory.rest.excess == pytest.approx(0.91 - 1.01 / 3)
    assert replace(memory.rest, excess=0.0) == Rest(left=1, rounds=1, over=1, movable=3)


@pytest.mark.slow
def test_a_plan_is_refused_that_disturbs_more_than_it_gains() -> None:
    # 30 points for 60 minutes, and six tenths of all that may be disturbed.
    for cost, asked in ((50.0, 3000), (500.0, 30_000)):
        decision, memory = replace(SHEDDER, move_cost=cost).decide(cluster(0, **HOT), PeakHistory())
        said = "the moves disturb more than they gain, now and later"
        assert told(decision)[-1] == ("cluster", "BelowMinimum", 1800, asked, "point-minutes", said)
        assert (decision.unloads, memory.rest.left) == ((), 1)
    assert replace(SHEDDER, move_cost=29.9).decide(cluster(0, **HOT), PeakHistory())[0].unloads


def test_while_it_rests_it_says_for_how_long() -> None:
    memory = PeakHistory(
        brokers=("a:8080", "b:8080", "c:8080"), rest=Rest(left=3, rounds=7, excess=0.35, over=1, movable=5)
    )
    decision, memory = SHEDDER.decide(cluster(0, **HOT), memory)
    said = "the last plans were not worth it; the next one is made in 3 rounds"
    assert told(decision)[-1] == ("cluster", "BelowMinimum", None, None, "", said)
    assert (decision.unloads, memory.rest.left) == ((), 2)


def test_bundles_with_more_connections_than_a_round_may_have_stay() -> None:
    of = {"a": {"a0": 30.0, "a1": 25.0}, "b": {"b0": 5.0}, "c": {"c0": 5.0}}
    for most, number in ((3, 1), (2, 0), (0, 1)):
        decision, _ = replace(SHEDDER, max_connections=most, max_moves=1).decide(cluster(0, **of), PeakHistory())
        assert len(decision.unloads) == number


def test_what_the_options_say_of_a_round() -> None:
    given = PeakShedder(max_moves=7, max_connections=30, max_moves_per_broker=2, min_gain_percent=2.0)
    assert given.round == PartLimits(max_moves=7, max_connections=30.0, max_per_broker=2)
    assert PeakShedder().round == PartLimits(max_moves=50, max_connections=None, max_per_broker=10)
    assert given.min_gain == 0.02
    counted = PeakShedder(broker_msg_rate=3.0, broker_topics=4, broker_sessions=5, cpu_weight=0.5).counted
    assert (counted.msg_rate, counted.topics, counted.sessions, counted.weights["cpu"]) == (3, 4, 5, 0.5)


# ---- what no move can mend ----


def advised(
    sizes: Sequence[float],
    fair: float = 0.4,
    positions: Sequence[int] = (),
    loads: Sequence[float] = (),
    of: int = 0,
    kinds: int = PERSISTENT,
) -> list[Verdict]:
    """On bundles of so much load on brokers of 10 and 20; the one *of* a row has topics, with so many msg/s."""
    names = [f"x{number:02}" for number in range(len(sizes))]
    view = cluster_view(Broker("a", bundles=dict.fromkeys(names, Bundle())), Broker("b"))
    load = np.zeros((len(loads), 4))
    load[:, 0] = loads
    starts = np.full(len(sizes) + 1, len(loads))
    starts[: of + 1] = 0
    detail = TopicDetail(starts=starts, position=np.array(positions, np.int64), load=load)
    stated = MappedProblem(
        problem=problem([[10.0, 30.0], [20.0, 10.0]], [(0, [size, 1.0]) for size in sizes]),
        rows=np.arange(len(sizes)),
        fits={},
    )
    bundles = replace(view.bundles, detail=detail, kinds=np.full(len(sizes), kinds, np.uint8))
    return list(too_large(replace(view, bundles=bundles), stated, fair, "me"))


def test_bundles_above_the_fair_share_of_the_widest_broker_are_named_the_ten_largest() -> None:
    found = advised([12.0, 8.0, 9.0])
    assert [(each.subject, each.observed, each.limit, each.unit, each.by) for each in found] == [
        ("x00", 0.6, 0.4, "usage", "me"),
        ("x02", 0.45, 0.4, "usage", "me"),
    ]
    assert found[0].detail == (
        "alone above the fair share of a broker, by cpu: split it; its topics are not known, so not where"
    )
    assert [each.subject for each in advised([9.0 + number for number in range(12)])] == [
        f"x{number:02}" for number in range(11, 1, -1)
    ]


@pytest.mark.parametrize(
    ("positions", "loads", "reason", "said"),
    [
        ([16, 32, 48], [5.0, 2.0, 3.0], Reason.TOO_LARGE, "split it at 0x00000020, which halves its load"),
        ([48, 16, 32], [3.0, 5.0, 2.0], Reason.TOO_LARGE, "split it at 0x00000020, which halves its load"),
        ([16, 16, 16], [5.0, 2.0, 3.0], Reason.TOO_LARGE, "split it"),
        ([16, 32, 32], [2.0, 3.0, 5.0], Reason.TOO_LARGE, "split it at 0x00000020, which halves its load"),
        ([16, 32], [0.0, 0.0], Reason.TOO_LARGE, "split it; its topics are not known, so not where"),
        ([16, 32], [1.0, 9.0], Reason.LARGE_PARTITION, "its topic at 0x00000020 alone is at 0.54: give it partitions"),
        ([16, 32], [2.0, 4.0], Reason.TOO_LARGE, "split it at 0x00000020, which halves its load"),
        ([16, 32, 48, 64], [4.0, 1.0, 1.0, 4.0], Reason.TOO_LARGE, "split it at 0x00000030, which halves its load"),
        ([16, 32, 32, 64], [4.0, 1.0, 1.0, 4.0], Reason.TOO_LARGE, "split it at 0x00000020, which halves its load"),
        ([16, 32, 32, 64], [1.0, 4.0, 1.5, 3.5], Reason.TOO_LARGE, "split it at 0x00000040, which halves its load"),
        ([16, 32], [0.25, 0.25], Reason.TOO_LARGE, "split it at 0x00000020, which halves its load"),
    ],
)
def test_it_is_told_where_to_split_or_which_topic_is_too_large(
    positions: list[int], loads: list[float], reason: Reason, said: str
) -> None:
    [found] = advised([12.0], positions=positions, loads=loads)
    assert (found.reason, found.detail) == (reason, f"alone above the fair share of a broker, by cpu: {said}")
    [second] = advised([1.0, 12.0], positions=positions, loads=loads, of=1)
    assert (second.reason, second.detail) == (found.reason, found.detail)


@pytest.mark.parametrize("loads", [[0.1], [0.1, 0.1], [1.0, 9.0]])
def test_a_bundle_of_which_its_segments_alone_may_be_known_is_split_in_the_middle(loads: list[float]) -> None:
    """Far from a split, only the segments of a bundle are known; and brokers cut it nowhere else."""
    [found] = advised([12.0], positions=[16, 32][: len(loads)], loads=loads, kinds=PERSISTENT | SEGMENTS)
    assert found.reason is Reason.TOO_LARGE
    assert found.detail.endswith("split it: brokers cut a bundle with segments of scalable topics in the middle")


def test_a_topic_that_is_as_large_as_the_fair_share_fits() -> None:
    [found] = advised([16.0], positions=[16, 32], loads=[1.0, 1.0])
    assert (found.observed, found.limit) == (0.8, 0.4)
    assert found.detail.endswith("split it at 0x00000020, which halves its load")


# ---- where bundles may go ----


class Kept:
    """A filter that keeps the brokers given, and notes what it was asked."""

    reason = Reason.ISOLATION_POLICY

    def __init__(self, *brokers: int, binding: bool = False) -> None:
        self.brokers, self.binding = brokers, binding
        self.asked: list[tuple[int, list[int], list[int], list[int]]] = []

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        sent = view.preallocated
        self.asked.append((bundle, candidates.tolist(), sent.bundle.tolist(), sent.broker.tolist()))
        return candidates[np.isin(candidates, self.brokers)]


class Anchored(Kept):
    def may_leave(self, view: ClusterView, bundle: int, candidates: Ints) -> bool:
        self.asked.append((bundle, candidates.tolist(), [], []))
        return 0 not in self.brokers


VIEW: Final = cluster_view(
    Broker("a", bundles={"x0": Bundle(), "x1": Bundle(), "x2": Bundle(), "x3": Bundle()}),
    *map(Broker, "bcd"),
    on_their_way={"x0": "d"},
)


def asked(bundle: int, given: Sequence[PlannedMove], *filters: Any) -> list[int]:
    """Where the bundle may go, a row of the problem; those of the problem are x1, x2 and x3."""
    found = Destinations(view=VIEW, rows=np.array([1, 2, 3]), filters=filters).allowed(bundle, given)
    return np.flatnonzero(found).tolist()


def test_whatever_moves_were_asked_about_before_filters_see_those_that_are_asked_about_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, third, other = (PlannedMove(*each) for each in ((0, 0, 3), (2, 0, 1), (1, 0, 2), (2, 0, 3)))
    columns, fromiter = list[int](), np.fromiter

    def count(moves: Any, dtype: Any, number: int) -> Any:
        columns.append(number // 3)
        return fromiter(moves, dtype, number)

    monkeypatch.setattr(np, "fromiter", count)
    step = Kept(1, 2)
    filters: tuple[Any, ...] = (step,)
    allowed = Destinations(view=VIEW, rows=np.array([1, 2, 3]), filters=filters).allowed
    moves = [first]
    asked_about: list[Sequence[PlannedMove]] = [
        [first], [first, second], [first, second, third], [first], [first, other], (first, other), (), [first, other],
    ]  # fmt: skip
    for given in asked_about:
        moves[:] = given  # whoever asks may change the list
        allowed(1, moves if isinstance(given, list) else given)
    seen, step.asked[:] = list(step.asked), []
    for given in asked_about:
        asked(1, given, step)
    assert seen == step.asked
    assert columns[:5] == [1, 1, 1, 0, 1], "only what is new"


def test_filters_are_asked_one_after_the_other_with_what_is_on_its_way_and_what_the_plan_sends() -> None:
    first, second = Kept(1, 2), Kept(2, 3)
    assert asked(1, [PlannedMove(0, 0, 3), PlannedMove(2, 0, 1)], first, second) == [2]
    assert first.asked == [(2, [0, 1, 2, 3], [0, 1, 3], [3, 3, 1])]
    assert second.asked == [(2, [1, 2], [0, 1, 3], [3, 3, 1])]
    assert asked(1, [], Kept(1, 2)) == [1, 2]
    assert asked(1, []) == [0, 1, 2, 3]


def test_a_filter_that_leaves_no_broker_is_ignored_unless_it_binds() -> None:
    assert asked(0, [], Kept(1, 2), Kept()) == [1, 2]
    assert asked(0, [], Kept(1, 2), Kept(binding=True)) == []


def test_a_bundle_goes_nowhere_where_a_filter_keeps_it_which_is_asked_with_what_binding_ones_left() -> None:
    holds, lets_go = Anchored(0, 1), Anchored(1, 2)
    assert asked(0, [], Kept(0, 1, 2, binding=True), Kept(1), holds) == []
    assert holds.asked[-1] == (1, [0, 1, 2], [], [])
    assert asked(0, [], Kept(0, 1, 2, binding=True), Kept(1, 3), lets_go) == [1]
    assert asked(0, [], lets_go, holds) == []


# ---- why a bundle of a broker that is not full moves ----


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ([PlannedMove(0, 0, 1), PlannedMove(3, 1, 2)],
         "a:8080: Overloaded (0.7 vs 0.4 usage): gives bundles to b:8080, which this one leaves to make room; by cpu;"
         " the plan brings it to 40 %; b:8080 goes from 20 to 30 %"),
        ([PlannedMove(3, 1, 2), PlannedMove(0, 0, 2)],
         "a:8080: Overloaded (0.7 vs 0.4 usage): gives bundles, and this one moves by the same plan; by cpu; the plan"
         " brings it to 40 %; b:8080 goes from 20 to 0 %"),
    ],
)  # fmt: skip
def test_a_broker_below_the_goal_is_not_called_overloaded(plan: list[PlannedMove], said: str) -> None:
    [why] = whys(HOT, plan, of=1)
    assert why == said


def whys(brokers: dict[str, dict[str, float]], plan: list[PlannedMove], *, of: int) -> list[str]:
    """Why the moves of *plan* off the broker *of* are made, with a goal of 0.4."""
    view = cluster(0, **brokers)
    found = map_problem(view, np.zeros(len(view.bundles), np.bool_), SHEDDER.counted)
    load = loads(found.problem, found.problem.owner)
    before, after = (highest(each, found.problem.capacity) for each in (load, load_after(found.problem, plan)))
    of_round = RoundTold(
        view=view, found=found, goal=np.full(len(load), 0.4), begin=np.full(load.shape, 0.4), min_gain=0.05, load=load,
        before=before, after=after,
        memory=PeakHistory(), error=0.0,
        plan=plan, urgent=False,
    )  # fmt: skip
    return [str(of_round.unload(move).why) for move in plan if move.source == of]


def test_of_several_full_brokers_the_fullest_is_named_that_gives_to_the_one_that_makes_room() -> None:
    brokers = {"a": {"a0": 50.0}, "b": {"b0": 30.0, "b1": 30.0}, "c": {"c0": 70.0}, "d": {"d0": 20.0}, "e": {"e0": 1.0}}
    a_to_d, b_to_d, c_to_e = PlannedMove(0, 0, 3), PlannedMove(1, 1, 3), PlannedMove(3, 2, 4)
    leaves = PlannedMove(4, 3, 4)
    for plan, said in (
        ([a_to_d, b_to_d, c_to_e, leaves], "b:8080: Overloaded (0.6 vs 0.4 usage): gives bundles to d:8080, which"),
        ([c_to_e, leaves, PlannedMove(1, 1, 0)], "c:8080: Overloaded (0.7 vs 0.4 usage): gives bundles, and this one"),
    ):
        [why] = whys(brokers, plan, of=3)
        assert why.startswith(said)
