"""Each law can be broken, and what breaks it is told in words with an example."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from controller.laws import BrokenLaw, broken_laws, laws_of
from controller.laws.assignment import ASSIGNMENT_LAWS, Splitting
from controller.laws.check import flaw_in
from controller.laws.clusters import Placing
from controller.laws.placement import PLACEMENT_LAWS
from controller.laws.shedding import SHEDDING_LAWS
from controller.laws.splitting import SPLIT_ALGORITHM_LAWS, SPLIT_POLICY_LAWS
from controller.model.decision import Reason, Split, SplitDecision, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView, Floats, Ints
from controller.model.strategy_memory import NoMemory, StrategyMemory
from controller.strategies.catalogue import SHEDDERS
from controller.strategies.splitting.default_namespace_bundle_split_strategy import SplitHitCounts
from controller.strategies.view_builder import Broker, Bundle, cluster_view

A, B = "acme/test/0x00000000_0x00000002", "acme/test/0x00010000_0x00010002"
VIEW = cluster_view(
    Broker("b0", cpu=0.9, bundles={A: Bundle(mbytes_in=60)}),
    Broker("b1", cpu=0.1, bundles={B: Bundle(mbytes_in=5)}),
    recently_unloaded=[B],
)
HOT = Verdict(subject="b0", reason=Reason.OVERLOADED)
SAID = (HOT, Verdict(subject="b1", reason=Reason.BALANCED))

Answer = Callable[[ClusterView, Any], tuple[UnloadDecision, Any]]


def move(bundle: str = A, source: str = "b0", destination: str = "", *, final: bool = False) -> Unload:
    return Unload(bundle=bundle, source=source, destination=destination, final=final, why=HOT)


def shed(*unloads: Unload, reason: Reason = Reason.OVERLOADED, verdicts: tuple[Verdict, ...] = SAID) -> "Shedder":
    return Shedder(lambda _, memory: (UnloadDecision(unloads=unloads, verdicts=verdicts, reason=reason), memory))


def compared(reason: Reason, observed: float) -> Verdict:
    return Verdict(subject="b0", reason=reason, observed=observed, limit=0.75, unit="usage")


@dataclass(frozen=True)
class Shedder:
    answer: Answer
    log: list[int] = field(default_factory=list)

    def initial_memory(self) -> StrategyMemory:
        return NoMemory()

    def decide(self, view: ClusterView, memory: Any) -> tuple[UnloadDecision, Any]:
        return self.answer(view, memory)


def forgetful() -> Shedder:
    """It counts for itself how often it was asked."""
    log: list[int] = []

    def answer(view: ClusterView, memory: Any) -> tuple[UnloadDecision, Any]:
        log.append(1)
        return UnloadDecision(verdicts=SAID, reason=Reason.BALANCED if len(log) % 2 else Reason.OVERLOADED), memory

    return Shedder(answer)


def other_memory(view: ClusterView, memory: Any) -> tuple[UnloadDecision, Any]:
    return UnloadDecision(verdicts=SAID, reason=Reason.BALANCED), SplitHitCounts()


def raising(view: ClusterView, memory: Any) -> tuple[UnloadDecision, Any]:
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("law", "shedder", "flaw"),
    [
        (0, shed(move("acme/x/y")), "it unloads acme/x/y, which is no bundle of the cluster"),
        (0, shed(move(B)), f"it unloads {B} from b0, and b1 owns it"),
        (0, shed(move(), move()), f"it unloads {A} twice"),
        (0, shed(move(destination="b0")), f"it sends {A} from b0 to 'b0', which is no other broker"),
        (0, shed(move(destination="b9")), f"it sends {A} from b0 to 'b9', which is no other broker"),
        (0, shed(move(final=True)), f"its unload of {A} is final, but names no destination"),
        (1, shed(move(B, "b1")), f"it unloads {B}, which was unloaded recently"),
        (2, shed(move()), f"it unloads {A} from b0"),
        (2, shed(), "its reason is Overloaded, not Balanced or NoLoadData"),
        (3, shed(verdicts=(HOT,)), "no verdict is about broker b1; its reason is Overloaded, not NoLoadData"),
        (4, forgetful(), "asked twice, it gives two answers"),
        (6, shed(reason=Reason.BALANCED), "it unloads nothing in 10 intervals; its last reason is Balanced"),
        (7, shed(verdicts=(compared(Reason.BALANCED, 0.99),)), "it says b0: Balanced (0.99 vs 0.75 usage)"),
        (7, shed(verdicts=(compared(Reason.OVERLOADED, 0.5),)), "it says b0: Overloaded (0.5 vs 0.75 usage)"),
    ],
)
def test_a_shedder_breaks_a_law(law: int, shedder: Shedder, flaw: str) -> None:
    assert flaw_in(shedder, SHEDDING_LAWS[law], VIEW) == flaw


def test_an_error_breaks_a_law_and_is_told_with_its_line() -> None:
    flaw = flaw_in(Shedder(raising), SHEDDING_LAWS[0], VIEW)
    assert flaw is not None
    assert flaw.startswith(f"its decide raises ZeroDivisionError: division by zero ({__name__}, line ")


def test_a_shedder_breaks_a_law_in_a_later_interval() -> None:
    law = SHEDDING_LAWS[5]
    assert flaw_in(shed(move(B)), law, [VIEW]) == f"in interval 1, it unloads {B} from b0, and b1 owns it"
    said = "in interval 1, it returns a SplitHitCounts; the memory that it was given is a NoMemory"
    assert flaw_in(Shedder(other_memory), law, [VIEW]) == said


def test_a_shedder_that_keeps_the_laws_has_no_flaw_there() -> None:
    shedder = SHEDDERS["ThresholdShedder"]()
    assert [flaw_in(shedder, SHEDDING_LAWS[law], VIEW) for law in (0, 1, 3, 4, 7)] == [None] * 5


@dataclass(frozen=True)
class Placement:
    answer: Callable[[ClusterView, Ints], list[int]]

    def initial_memory(self) -> StrategyMemory:
        return NoMemory()

    def acceptable(self, view: ClusterView, bundle: int, candidates: Ints, memory: Any) -> tuple[Ints, Any]:
        return np.array(self.answer(view, candidates), np.int64), memory


def least_used_of_all(view: ClusterView, candidates: Ints) -> list[int]:
    fullest = int(view.brokers.usage[:, 0].argmax())
    return [row for row in candidates.tolist() if row != fullest]


def in_turns() -> Placement:
    log: list[int] = []

    def answer(view: ClusterView, candidates: Ints) -> list[int]:
        log.append(1)
        rows: list[int] = candidates.tolist()
        return rows[: len(log)]

    return Placement(answer)


@pytest.mark.parametrize(
    ("law", "placement", "candidates", "flaw"),
    [
        (0, Placement(lambda *_: []), [0], "it accepts no broker"),
        (0, Placement(lambda *_: [1]), [0], "it accepts 1, which is no row of a candidate"),
        (0, Placement(lambda *_: [1, 0]), [0, 1], "its rows [1, 0] do not ascend, or one is in them twice"),
        (1, in_turns(), [0, 1], "asked twice, it gives two answers"),
        (
            2,
            Placement(least_used_of_all),
            [0],
            "it accepts no broker; with the other brokers at 99 % and idle it accepts b0",
        ),
        (3, Placement(least_used_of_all), [0, 1], "it does not accept b0, its only candidate"),
        (4, Placement(lambda *_: [0]), [0], "it accepts 0, which is no row of a candidate"),
    ],
)
def test_a_placement_breaks_a_law(law: int, placement: Placement, candidates: list[int], flaw: str) -> None:
    given = Placing(view=VIEW, candidates=np.array(candidates, np.int64))
    assert flaw_in(placement, PLACEMENT_LAWS[law], given) == flaw


class PlanAware(Placement):
    plan_aware: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        (lambda *_: [], "it does not accept b1, which is planned and its only candidate"),
        (lambda _, candidates: candidates.tolist(), "where b1 is planned it accepts b0, the bundle's own broker"),
        (lambda view, _: [view.planned], None),
    ],
)
def test_a_placement_that_looks_at_plans_breaks_their_law(answer: Any, flaw: str | None) -> None:
    given = Placing(view=VIEW, candidates=np.array([0, 1], np.int64))
    assert flaw_in(PlanAware(answer), PLACEMENT_LAWS[-1], given) == flaw
    assert flaw_in(Placement(answer), PLACEMENT_LAWS[-1], given) is None


@dataclass(frozen=True)
class Cutting:
    found: tuple[int, ...] | Reason
    name: str = "cutting"
    needs_topic_detail: bool = False

    def cuts(self, lower: int, upper: int, positions: Ints, load: Floats) -> tuple[int, ...] | Reason:
        return self.found


def test_a_split_algorithm_breaks_its_law() -> None:
    (law,) = SPLIT_ALGORITHM_LAWS
    assert flaw_in(Cutting((1,)), law, VIEW) is None
    said = "it needs no topic detail, and cuts nothing: "
    assert flaw_in(Cutting(Reason.NO_POSITIONS), law, VIEW) == f"{said}{A}: NoPositions"
    assert str(flaw_in(Cutting((7,)), law, VIEW)).startswith(f"{said}{A}: ImpossibleCut")


@dataclass(frozen=True)
class Splitter:
    splits: tuple[tuple[str, str], ...]
    told: bool = True

    def initial_memory(self) -> StrategyMemory:
        return NoMemory()

    @property
    def thresholds(self) -> None:
        return None

    def decide(self, view: ClusterView, memory: Any) -> tuple[SplitDecision, Any]:
        splits = tuple(Split(bundle=bundle, broker=broker, why=HOT) for bundle, broker in self.splits)
        return SplitDecision(splits=splits, verdicts=SAID if self.told else ()), memory


def test_a_split_policy_breaks_a_law() -> None:
    right, room, numbers, some, _ = SPLIT_POLICY_LAWS
    assert flaw_in(Splitter(((A, "b1"),)), right, VIEW) == f"it splits {A} on b1, and b0 owns it"
    untold = f"the verdict that {A} is split for is not among its verdicts"
    assert flaw_in(Splitter(((A, "b0"),), told=False), right, VIEW) == untold
    assert flaw_in(Splitter(((A, "b0"), (A, "b0"))), right, VIEW) == f"it splits {A} twice"
    full = cluster_view(Broker("b0", bundles={A: Bundle()}), bundle_count={"acme/test": 128})
    said = "it splits 1 bundles of a namespace that has 128; 128 are allowed"
    assert flaw_in(Splitter(((A, "b0"),)), room, full) == said
    assert flaw_in(Splitter(()), numbers, VIEW) is None
    unknown = cluster_view(Broker("b0", bundles={A: Bundle()}), bundle_count={"acme/test": -1})
    said = "it splits bundles of a namespace without knowing how many bundles that has"
    assert flaw_in(Splitter(((A, "b0"),)), room, unknown) == said
    assert flaw_in(Splitter(()), some, VIEW) == "it splits nothing in 10 intervals"


@dataclass(frozen=True)
class Assigner:
    rows: Callable[[list[str]], list[int]]
    moved: tuple[int, ...] = ()

    def assign(self, topics: list[str], boundaries: tuple[int, ...]) -> Ints:
        return np.array(self.rows(topics), np.int64)

    def on_bundle_split(self, topics: list[str], assigned: Ints, old: Any, new: Any) -> tuple[Ints, Ints]:
        return assigned, np.array(self.moved, np.int64)


def test_an_assignment_breaks_a_law() -> None:
    one, split = ASSIGNMENT_LAWS
    given = Splitting(topics=["t", "u"], old=(0, 10, 20), new=(0, 5, 10, 20))
    assert flaw_in(Assigner(lambda _: [0]), one, given) == "of 2 topics it assigns an array of the shape (1,)"
    assert flaw_in(Assigner(lambda _: [0, 2]), one, given) == "it assigns 'u' to bundle 2, and there are bundles 0 to 1"
    alone = "it assigns 'u' to bundle 1, and to another one when that is asked for alone"
    assert flaw_in(Assigner(lambda topics: list(range(len(topics)))), one, given) == alone
    said = "topics [] move, it says, but those whose bundle has another range are [0, 1]"
    assert flaw_in(Assigner(lambda topics: [0] * len(topics)), split, given) == said


@pytest.mark.slow
def test_what_breaks_a_law_is_told_with_the_simplest_example() -> None:
    @dataclass(frozen=True)
    class Silent(Shedder):
        answer: Answer = lambda _, memory: (UnloadDecision(reason=Reason.BALANCED), memory)

    broken = [one for one in broken_laws(Silent(), examples=5) if "verdict" in one.sentence]
    assert [str(one) for one in broken] == [
        "It has a verdict on every broker, unless it knows no load at all.\n"
        "  But no verdict is about broker b0; its reason is Balanced, not NoLoadData.\n"
        "  The simplest example found:\n"
        "    broker b0: CPU 0.0%"
    ]


def test_an_example_tells_each_broker_with_its_bundles() -> None:
    assert SHEDDING_LAWS[0].describe(VIEW) == [
        "broker b0: CPU 90.0%",
        f"  bundle {A}: 60 MB/s, 0 msg/s, 10 topics, 0 producers, 0 consumers",
        "broker b1: CPU 10.0%",
        f"  bundle {B}: 5 MB/s, 0 msg/s, 10 topics, 0 producers, 0 consumers, unloaded recently",
    ]
    assert SHEDDING_LAWS[5].describe([VIEW])[:2] == ["interval 1:", "broker b0: CPU 90.0%"]
    given = Placing(view=VIEW, candidates=np.array([1]))
    assert PLACEMENT_LAWS[0].describe(given)[-2:] == [f"bundle to place: {A}", "candidates: b1"]


def test_a_broken_law_without_an_example_says_only_what_is_wrong() -> None:
    assert str(BrokenLaw(sentence="It holds.", flaw="it does not", example=())) == "It holds.\n  But it does not."


def test_what_is_no_strategy_has_no_laws() -> None:
    with pytest.raises(TypeError, match="is no strategy: it has none of acceptable, cuts, assign, thresholds, decide"):
        laws_of(object())
