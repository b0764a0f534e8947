"""What strategies answer is checked before the cycle acts on it, and they cannot change what others see.

An error that a strategy raises is told like a faulty answer.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pytest

from controller.aggregate.shard.shard_state import DetailLimits
from controller.cycle import Policy, decide
from controller.cycle.checked import CheckedPlacement, first_memory
from controller.cycle.typed import misfit
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Reason, Split, SplitDecision, Unload, UnloadDecision, Verdict
from controller.model.errors import StrategyError, TrimtabError
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.blamed import raised_by
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.placement.round_robin_broker_selector import RoundRobinTurn
from controller.strategies.protocols import SplitThresholds
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.default_namespace_bundle_split_strategy import SplitHitCounts
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, Broker, broker, bundle, view

LEFT, RIGHT = "acme/test/0x00000000_0x80000000", "acme/test/0x80000000_0xffffffff"
OTHER = "acme/more/0x00000000_0xffffffff"
VIEW = view(
    Broker("hot", cpu=0.9, bundles={LEFT: bundle(60, topics=500), RIGHT: bundle(40)}),
    Broker("cold", cpu=0.1, bundles={OTHER: bundle(5)}),
    broker("idle", usage=0.0),
)
WHY = Verdict(subject="hot", reason=Reason.OVERLOADED)
GOOD = Unload(bundle=LEFT, source="hot", why=WHY)
ACTIVE = Controls(mode="active")
ANY: Any = None
FLAG: Any = np.bool_(False)
SMALL: Any = np.float32(1)
WHOLE: Any = np.int64(1)
NONE = NoMemory()
THRESHOLDS = SplitThresholds(topics=100, sessions=1e9, msg_rate=1e9, throughput=1e9)


@dataclass(frozen=True, kw_only=True)
class Strange:
    """A strategy of any kind that answers what it is told to."""

    answer: Any = None
    first: Any = NONE
    thresholds: Any = THRESHOLDS
    name: Any = "strange"
    needs_topic_detail: Any = False

    def initial_memory(self) -> Any:
        return self.first

    def _say(self, *given: Any) -> Any:
        return self.answer(*given) if callable(self.answer) else self.answer

    def decide(self, view: ClusterView, memory: Any) -> Any:
        return self._say(view, memory)

    def acceptable(self, view: ClusterView, bundle: int, candidates: Any, memory: Any) -> Any:
        return self._say(view, bundle, candidates, memory)

    def cuts(self, lower: int, upper: int, positions: Any, load: Any) -> Any:
        return self._say(lower, upper, positions, load)


@dataclass(frozen=True, kw_only=True)
class Hurried(Strange):
    """A shedder that says whether it hurries."""

    hurry: Any = True
    relief: Any = None

    def hurries(self, view: ClusterView) -> Any:
        return self.hurry

    def relieving(self) -> Any:
        return self.relief


GIVEN = "; the memory that it was given is a NoMemory"
POLICY = Policy(
    cluster="lab",
    period_ms=60_000,
    shedder=ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(max_topics=1000),
    split_algorithm=RangeEquallyDivide(),
)


def cycle(controls: Controls = ACTIVE, **strategies: Any) -> tuple[Any, Memory]:
    policy = replace(POLICY, **strategies)
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - 60_000, samples=10)
    return decide(VIEW, (), memory, controls, policy)


def refused(**strategies: Any) -> str:
    with pytest.raises(StrategyError) as raised:
        cycle(**strategies)
    assert isinstance(raised.value, TrimtabError)
    told = f"interval 2023-11-14T22:14:00Z: strategy {raised.value.strategy}: {raised.value.flaw}.  Nothing is issued"
    assert str(raised.value).startswith(told)
    assert raised.value.exit_code == 2  # the same interval would fail again
    return raised.value.flaw


def shed(*unloads: Any, verdicts: Any = (), reason: Any = Reason.OVERLOADED, memory: Any = NONE) -> Any:
    return UnloadDecision(unloads=unloads, verdicts=verdicts, reason=reason), memory


class Nasty:
    def __repr__(self) -> str:
        raise ValueError("no text for you")


SHEDS = [
    (None, "two values are expected"),
    ((UnloadDecision(reason=Reason.BALANCED),), "two values are expected"),
    (("nothing", NoMemory()), "an UnloadDecision is expected"),
    ((Nasty(), NoMemory()), "(Nasty), and an UnloadDecision is expected"),
    (shed(reason="Balanced"), "its reason is 'Balanced' (str)"),
    ((UnloadDecision(unloads=ANY, reason=Reason.BALANCED), NoMemory()), "its unloads are None"),
    (shed(LEFT), "one of its unloads is"),
    (shed(replace(GOOD, bundle=ANY)), "the bundle of one of its unloads is None"),
    (shed(replace(GOOD, bundle="acme/x/0x00000000_0x80000000")), "which is no bundle of the cluster"),
    (
        shed(*(replace(GOOD, bundle=name) for name in (OTHER, LEFT, RIGHT, "acme/x/0x00000000_0x80000000"))),
        "it unloads acme/x/0x00000000_0x80000000, which is no bundle of the cluster",
    ),
    (shed(replace(GOOD, source="cold")), f"it unloads {LEFT} from cold, and hot owns it"),
    (shed(replace(GOOD, source="nobody")), f"it unloads {LEFT} from nobody, and hot owns it"),
    (shed(replace(GOOD, bundle=OTHER)), f"it unloads {OTHER} from hot, and cold owns it"),
    (shed(GOOD, GOOD), f"it unloads {LEFT} twice"),
    (shed(replace(GOOD, destination="nobody")), "to 'nobody', which is no other broker"),
    (shed(replace(GOOD, destination="hot")), "to 'hot', which is no other broker"),
    (shed(replace(GOOD, destination=ANY)), "to None, which is no other broker"),
    (shed(replace(GOOD, final=True)), "final, but names no destination"),
    (shed(replace(GOOD, final=FLAG)), "neither True nor False"),
    (shed(replace(GOOD, why=ANY)), "one of its verdicts is None"),
    (
        shed(replace(GOOD, why=replace(WHY, detail="x" * 4097))),
        "has 4097 characters, and 4096 are allowed in a command",
    ),
    (shed(replace(GOOD, why=replace(WHY, by="x" * 9999))), "by of one of its verdicts has 9999 characters"),
    (shed(verdicts=None), "its verdicts are None"),
    (shed(verdicts="hot is hot"), "its verdicts are 'hot is hot'"),
    (shed(verdicts=(replace(WHY, reason=ANY),)), "reason of one of its verdicts is None"),
    (shed(verdicts=(replace(WHY, unit=Reason.BALANCED),)), "unit of one of its verdicts is <Reason.BALANCED"),
    (shed(verdicts=(replace(WHY, observed=SMALL),)), "observed of one of its verdicts"),
    (shed(verdicts=(replace(WHY, limit=True),)), "limit of one of its verdicts is True (bool)"),
    (shed(verdicts=(replace(WHY, detail="\ud800"),)), "text that UTF-8 can hold"),
    (shed(memory=None), "its memory is None"),
    (shed(memory={"a": 1}), "and a StrategyMemory is expected"),
    (shed(memory=SplitHitCounts()), f"it returns a SplitHitCounts{GIVEN}"),
]


def test_a_faulty_answer_of_a_shedder_is_refused_in_words() -> None:
    wrong = [
        (answer, told, found)
        for answer, told in SHEDS
        if told not in (found := refused(shedder=Strange(answer=answer)))
    ]
    assert wrong == []


def test_so_is_one_of_the_membership_rebalancer() -> None:
    found = refused(membership=Strange(answer=shed(replace(GOOD, source="cold"))))
    assert found == f"it unloads {LEFT} from cold, and hot owns it"


MEMORIES: list[tuple[Any, Any, str]] = [
    (UsageHistory(), UsageHistory(usage=ANY), "memory.usage is None"),
    (UsageHistory(), UsageHistory(usage=MappingProxyType({"a": 0.5})), "and a dict is expected"),
    (UsageHistory(), UsageHistory(usage={1: 0.5}), "a key of memory.usage is 1 (int), and str is expected"),  # type: ignore[dict-item]
    (UsageHistory(), UsageHistory(usage={"a": SMALL}), "memory.usage is"),
    (UsageHistory(), UsageHistory(usage={"\udc00": 0.5}), "text that UTF-8 can hold"),
    (SplitHitCounts(), SplitHitCounts(hits={"a": 1.5}), "memory.hits is 1.5 (float), and int is expected"),  # type: ignore[dict-item]
    (SplitHitCounts(), SplitHitCounts(hits={"a": True}), "memory.hits is True (bool)"),
    (SplitHitCounts(), SplitHitCounts(hits={"a": 1 << 63}), "a number of 64 bits is expected"),
    (SplitHitCounts(), SplitHitCounts(hits={"a": -(1 << 63) - 1}), "a number of 64 bits is expected"),
    (SplitHitCounts(), SplitHitCounts(hits={"a": WHOLE}), "int is expected"),
    (RoundRobinTurn(), RoundRobinTurn(order=["a"]), "memory.order is ['a'] (list), and a tuple is expected"),  # type: ignore[arg-type]
    (PeakHistory(), PeakHistory(proven=ANY), "memory.proven is None"),
    (PeakHistory(), PeakHistory(promises={"a": ANY}), "memory.promises is None"),
]


def test_a_memory_that_cannot_be_journalled_is_refused() -> None:
    wrong = []
    for first, after, told in MEMORIES:
        found = refused(shedder=Strange(first=first, answer=shed(memory=after)))
        wrong += [] if told in found else [(after, told, found)]
    assert wrong == []


def test_a_memory_of_odd_numbers_that_can_be_journalled_is_kept() -> None:
    odd = UsageHistory(usage={"a": float("nan"), "b": float("inf"), "c": 1, "d": np.float64(0.5)})
    _, memory = cycle(shedder=Strange(first=UsageHistory(), answer=shed(memory=odd)))
    assert memory.shedder == odd.keep_brokers(("hot", "cold", "idle", "a", "b", "c", "d"))


PLACES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda _: None, "two values are expected"),
    (lambda _: ([0], NoMemory()), "it accepts [0] (list), and an array of rows"),
    (lambda rows: (rows.astype(float), NoMemory()), "an array of rows of candidates is expected"),
    (lambda rows: (rows > 1, NoMemory()), "an array of rows of candidates is expected"),
    (lambda rows: (rows.reshape(1, -1), NoMemory()), "an array of rows of candidates is expected"),
    (lambda _: (np.array([99]), NoMemory()), "it accepts 99, which is no row of a candidate"),
    (lambda _: (np.array([0, 99]), NoMemory()), "it accepts 99, which is no row of a candidate"),
    (lambda _: (np.array([-1]), NoMemory()), "it accepts -1, which is no row of a candidate"),
    (lambda rows: (rows[::-1], NoMemory()), "its rows [2, 1, 0] do not ascend"),
    (lambda rows: (rows[[0, 0]], NoMemory()), "its rows [0, 0] do not ascend, or one is in them twice"),
    (lambda rows: (rows[[0, 2, 1]], NoMemory()), "its rows [0, 2, 1] do not ascend"),
    (lambda _: (np.array([0, 99]), NoMemory()), "it accepts 99, which is no row of a candidate"),
    (lambda rows: (rows, None), "its memory is None"),
    (lambda rows: (rows, UsageHistory()), f"it returns a UsageHistory{GIVEN}"),
]


def test_a_placement_is_not_asked_again_with_a_memory_that_is_none_of_its_own() -> None:
    def say(_view: Any, _bundle: int, rows: Any, memory: Any) -> Any:
        assert isinstance(memory, NoMemory)
        return rows, UsageHistory()

    placement = CheckedPlacement(Strange(answer=say))
    with pytest.raises(StrategyError, match="memory"):
        placement.acceptable(VIEW, 0, np.arange(2), NONE)


def test_a_placement_accepts_no_broker_between_its_candidates() -> None:
    placement = CheckedPlacement(Strange(answer=lambda *_: (np.array([0, 1]), NONE)))
    with pytest.raises(StrategyError, match="it accepts 1, which is no row of a candidate"):
        placement.acceptable(VIEW, 0, np.array([0, 2]), NONE)


def test_a_faulty_answer_of_a_placement_is_refused_in_words() -> None:
    wrong = []
    for answer, told in PLACES:

        def say(view: Any, bundle: int, rows: Any, memory: Any, answer: Callable[[Any], Any] = answer) -> Any:
            return answer(rows)

        found = refused(placement=Strange(answer=say))
        wrong += [] if told in found else [(told, found)]
    assert wrong == []


def split(*boundaries: Any, name: Any = LEFT, on: Any = "hot") -> Any:
    return SplitDecision(splits=(Split(bundle=name, broker=on, why=WHY, boundaries=boundaries),)), NoMemory()


SPLITS = [
    (("nothing", NoMemory()), "a SplitDecision is expected"),
    ((SplitDecision(), UsageHistory()), f"it returns a UsageHistory{GIVEN}"),
    (split(on="cold"), f"it splits {LEFT} on cold, and hot owns it"),
    (split(name="acme/test/0x00000000_0x00000001"), "which is no bundle of the cluster"),
    ((replace(split()[0], splits=split()[0].splits * 2), NoMemory()), f"it splits {LEFT} twice"),
    (split(0, 1.5, 0x80000000), "is 1.5 (float), and int is expected"),
    (split(0, 0x80000000), "both ends of its range and ascending positions between are expected"),
    (split(0, 9, 9, 0x80000000), "both ends of its range"),
    (split(1, 9, 0x80000000), "both ends of its range"),
    (split(0, 1 << 90, 0x80000000), "a number of 64 bits is expected"),
    (split(*range(10_001)), "at 10001 positions, and 10000 are allowed"),
    ((replace(split()[0], splits=(1,)), NoMemory()), "one of its splits is 1 (int)"),
    ((replace(split()[0], verdicts=(1,)), NoMemory()), "one of its verdicts is 1 (int)"),
]


def test_a_faulty_answer_of_a_split_policy_is_refused_in_words() -> None:
    wrong = []
    for answer, told in SPLITS:
        found = refused(split_policy=Strange(answer=answer))
        wrong += [] if told in found else [(told, found)]
    assert wrong == []


def test_a_bundle_is_split_where_the_policy_says_so() -> None:
    for cuts in ((9,), (9, 11)):
        commands = cycle(split_policy=Strange(answer=split(0, *cuts, 0x80000000)))[0].commands
        [command] = [each for each in commands if each.action == "split"]
        assert (command.action, command.boundaries) == ("split", cuts)


def test_thresholds_that_are_no_numbers_are_refused() -> None:
    wrong = []
    for given, told in [
        (None, "not SplitThresholds"),
        ((1.0, 1.0, 1.0, 1.0), "not SplitThresholds"),
        (SplitThresholds(topics=float("nan"), sessions=1, msg_rate=1, throughput=1), "numbers from 0 up are expected"),
        (SplitThresholds(topics=-1, sessions=1, msg_rate=1, throughput=1), "numbers from 0 up are expected"),
        (SplitThresholds(topics=ANY, sessions=1, msg_rate=1, throughput=1), "one of its thresholds is None"),
    ]:
        with pytest.raises(StrategyError) as raised:
            replace(POLICY, split_policy=Strange(thresholds=given)).detail_limits(0.5)
        wrong += [] if told in raised.value.flaw else [(told, raised.value.flaw)]
    assert wrong == []


def test_thresholds_that_cannot_be_had_are_told_with_the_strategy_and_what_was_asked() -> None:
    class Broken(Strange):
        def __getattribute__(self, name: str) -> Any:
            if name == "thresholds":
                raise ValueError("no file")
            return super().__getattribute__(name)

    with pytest.raises(StrategyError, match=r"Broken.*thresholds.*no file"):
        replace(POLICY, split_policy=Broken()).detail_limits(0.5)


def test_topics_are_kept_from_a_share_of_the_thresholds_on() -> None:
    thresholds = SplitThresholds(topics=100, sessions=0, msg_rate=300, throughput=400)
    limits = replace(POLICY, split_policy=Strange(thresholds=thresholds)).detail_limits(0.5)
    assert limits == DetailLimits(topics=50, sessions=0, msg_rate=150, throughput=200)


CUTS = [
    (None, "what it answers is None"),
    ((), "it returns no cuts, and no reason for that"),
    ((1.5,), "what it answers is 1.5 (float)"),
    ((True,), "what it answers is True (bool)"),
    (([5],), "what it answers is [5] (list)"),
    ((-1,), "positions from 0 to 4294967295 are expected"),
    ((1 << 32,), "positions from 0 to 4294967295 are expected"),
    ((5, 1 << 32), "positions from 0 to 4294967295 are expected"),
]


def test_a_faulty_answer_of_a_split_algorithm_is_refused_in_words() -> None:
    wrong, policy = [], BundleSplitterTask(max_topics=100)
    for answer, told in CUTS:
        found = refused(split_policy=policy, split_algorithm=Strange(answer=answer))
        wrong += [] if told in found else [(told, found)]
    assert wrong == []
    assert "its name is None" in refused(split_policy=policy, split_algorithm=Strange(answer=(5,), name=None))
    detail = Strange(answer=(5,), needs_topic_detail="no")
    assert "needs_topic_detail is 'no'" in refused(split_policy=policy, split_algorithm=detail)


def test_a_cut_at_the_end_of_all_ranges_is_impossible_and_no_fault() -> None:
    policy, at_the_end = BundleSplitterTask(max_topics=100), Strange(answer=(0xFFFFFFFF,))
    decision, _ = cycle(split_policy=policy, split_algorithm=at_the_end)
    assert Reason.IMPOSSIBLE_CUT in {verdict.reason for verdict in decision.verdicts}


def test_a_first_memory_that_cannot_be_journalled_is_refused() -> None:
    with pytest.raises(StrategyError, match="memory"):
        first_memory(Strange(first=UsageHistory(usage=ANY)))


def test_an_error_of_the_first_memory_names_the_strategy() -> None:
    class Forgetful(Strange):
        def initial_memory(self) -> Any:
            raise KeyError("first")

    with pytest.raises(StrategyError) as raised:
        first_memory(Forgetful())
    assert raised.value.strategy == "Forgetful"


def test_a_verdict_that_is_no_commands_may_say_more() -> None:
    decision, _ = cycle(shedder=Strange(answer=shed(verdicts=(replace(WHY, detail="x" * 4097),))))
    assert max(len(verdict.detail) for verdict in decision.verdicts) == 4097


def test_the_answers_of_a_shedder_in_a_hurry_are_checked() -> None:
    move = OrderedMove(bundle="acme/gone/0x00000000_0xffffffff", source="hot", destination="cold")
    orders = Orders(
        plan="ab" * 32, step=1, wave=1, waves=1, moves=(move,), by="me", holder="me", checked_at=INTERVAL,
        expires_at_ms=INTERVAL + 60_000, held_back=True,
    )  # fmt: skip
    controls = replace(ACTIVE, orders=orders)
    for shedder, told in [
        (Hurried(hurry="yes"), "hurries() answers 'yes' (str), and True or False is expected"),
        (Hurried(relief=None), "relieving() answers None"),
        (Hurried(relief=Strange(first=SplitHitCounts())), f"it returns a SplitHitCounts{GIVEN}"),
        (Hurried(relief=Strange(answer=shed(GOOD, GOOD))), f"it unloads {LEFT} twice"),
    ]:
        assert told in refused(controls=controls, shedder=shedder)


def failing(error: Exception | SystemExit) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


@dataclass(frozen=True, kw_only=True)
class Watching(Strange):
    """A placement that observes as it is told to."""

    observes: Callable[..., Any]

    def observed(self, view: ClusterView, memory: Any) -> Any:
        return self.observes(memory)


def test_a_memory_after_an_interval_that_was_only_observed_is_checked_as_well() -> None:
    for memory, told in [(None, "its memory is None"), (SplitHitCounts(), f"it returns a SplitHitCounts{GIVEN}")]:
        assert told in refused(placement=Watching(observes=lambda _, memory=memory: memory))


class Closed:
    """A filter that fails."""

    reason, binding = Reason.ISOLATION_POLICY, True

    def keep(self, *_: Any) -> Any:
        raise KeyError("region")


class Nameless(RangeEquallyDivide):
    """An algorithm that cannot tell its name."""

    @property
    def name(self) -> Any:  # type: ignore[override]
        raise KeyError("name")


class Blind(RangeEquallyDivide):
    """One that cannot tell what it looks at."""

    @property
    def needs_topic_detail(self) -> Any:  # type: ignore[override]
        raise KeyError("see")


def test_an_error_of_a_strategy_names_it_its_method_and_the_line() -> None:
    fail = Strange(answer=failing(ValueError("no\nload")))
    splits = BundleSplitterTask(max_topics=100)
    mine = r" \(tests\.unit\.cycle\.test_checked_strategies, line \d+\)"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"shedder": fail}, f"its decide raises ValueError: no load{mine}"),
        ({"membership": fail}, f"its decide raises ValueError: no load{mine}"),
        ({"placement": fail}, f"its acceptable raises ValueError: no load{mine}"),
        ({"placement": Watching(observes=failing(IndexError()))}, f"its observed raises IndexError{mine}"),
        ({"shedder": Strange(answer=failing(SystemExit(0)))}, f"its decide raises SystemExit: 0{mine}"),
        ({"split_policy": fail}, f"its decide raises ValueError: no load{mine}"),
        ({"split_policy": splits, "split_algorithm": fail}, f"its cuts raises ValueError: no load{mine}"),
        ({"filters": (Closed(),)}, f"its keep raises KeyError: 'region'{mine}"),
        ({"split_policy": splits, "split_algorithm": Nameless()}, f"its name raises KeyError: 'name'{mine}"),
        ({"split_policy": splits, "split_algorithm": Blind()}, f"its needs_topic_detail raises KeyError: 'see'{mine}"),
        ({"shedder": Hidden()}, f"its decide raises ZeroDivisionError: division by zero{mine}"),
    ]
    wrong = []
    for strategies, told in cases:
        found = refused(**strategies)
        wrong += [] if re.fullmatch(told, found) else [(told, found)]
    assert wrong == []


def test_an_error_that_came_through_no_line_of_the_strategy_is_told_without_one() -> None:
    assert raised_by(object(), "decide", ValueError("odd")).flaw == "its decide raises ValueError: odd"


class Late:
    """Verdicts that are computed only when they are looked at, and cannot be."""

    def __iter__(self) -> Any:
        raise ZeroDivisionError("division by zero")

    __len__ = __getitem__ = __iter__


Sequence.register(Late)


class Hidden(Strange):
    """Its error is met where its answer is looked at."""

    def decide(self, view: ClusterView, memory: Any) -> Any:
        return UnloadDecision(reason=Reason.BALANCED, verdicts=Late()), memory  # type: ignore[arg-type]


def test_too_little_memory_is_no_fault_of_a_strategy() -> None:
    with pytest.raises(MemoryError):
        cycle(shedder=Strange(answer=failing(MemoryError())))


def test_a_strategy_cannot_write_into_the_view() -> None:
    columns = [
        ("brokers", "usage"), ("brokers", "preallocated_rate"), ("brokers", "throughput"), ("bundles", "load"),
        ("bundles", "broker"), ("bundles", "short_term_throughput"), ("bundles", "owned"),
    ]  # fmt: skip
    written = []

    def vandal(view: ClusterView, memory: Any) -> Any:
        arrays = [getattr(getattr(view, table), column) for table, column in columns]
        arrays += [view.recently_unloaded, view.namespace_bundle_count, view.bundles.of_broker(0)]
        for array in arrays:
            assert array.size
            try:
                array[...] = 0
            except ValueError:
                continue
            written.append(array)
        return UnloadDecision(reason=Reason.BALANCED), memory

    cycle(shedder=Strange(answer=vandal))
    assert written == []


def test_a_placement_cannot_write_into_its_candidates_or_the_view_after_earlier_moves() -> None:
    def vandal(view: ClusterView, bundle: int, candidates: Any, memory: Any) -> Any:
        for array in (candidates, view.brokers.preallocated_rate, view.preallocated.bundle):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        return candidates, memory

    both = shed(GOOD, replace(GOOD, bundle=RIGHT))
    decision, _ = cycle(shedder=Strange(answer=both), placement=Strange(answer=vandal))
    assert [command.bundle for command in decision.commands] == [LEFT, RIGHT]


def test_a_list_of_unloads_will_do() -> None:
    found = UnloadDecision(unloads=[GOOD], reason=Reason.OVERLOADED)  # type: ignore[arg-type]
    decision, _ = cycle(shedder=Strange(answer=(found, NoMemory())))
    assert [command.bundle for command in decision.commands] == [LEFT]


def test_a_value_may_be_any_of_several_that_are_named() -> None:
    fits = [misfit(value, Literal["a", "b"], "it") is None for value in ("a", "b", "c", 1)]
    assert fits == [True, True, False, False]


def test_a_text_of_4096_characters_is_not_too_long_for_a_command() -> None:
    decision, _ = cycle(shedder=Strange(answer=shed(replace(GOOD, why=replace(WHY, detail="x" * 4096)))))
    assert [len(command.why.detail) for command in decision.commands] == [4096]


def test_the_longest_of_several_texts_counts() -> None:
    long = replace(GOOD, bundle=RIGHT, why=replace(WHY, detail="x" * 4097))
    found = refused(shedder=Strange(answer=shed(GOOD, long)))
    assert "has 4097 characters, and 4096 are allowed in a command" in found


def test_of_a_long_error_of_a_strategy_300_characters_are_told() -> None:
    told = refused(shedder=Strange(answer=failing(ValueError("x" * 400))))
    assert told.startswith(f"its decide raises ValueError: {'x' * 300} (")
