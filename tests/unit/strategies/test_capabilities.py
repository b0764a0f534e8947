"""A wrapper of a strategy hides nothing that the strategy can do."""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from controller.cycle import Policy
from controller.cycle.checked import CheckedAlgorithm, CheckedPlacement, observed_by, relieving_of, unloads_by
from controller.model.decision import Reason, UnloadDecision
from controller.model.load import ClusterView, Ints
from controller.model.strategy_memory import NoMemory
from controller.offline.explanations.examined import observed_policy
from controller.strategies import catalogue, protocols
from controller.strategies.common.capabilities import capability
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.shedding.transfer_shedder import TransferShedder
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.hot_topic_isolation import HotTopic, HotTopicIsolation
from controller.strategies.splitting.large_partition import LargePartition, WithPartitionAdvice
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.split_hours import SplitHours, WithinHours
from tests.cluster import broker, view

ROOT = Path(catalogue.__file__).parent.parent
POLICY = Policy(
    cluster="lab",
    period_ms=60_000,
    shedder=OverloadShedder(),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(),
    split_algorithm=RangeEquallyDivide(),
)

CAPABILITIES = [one for one in vars(protocols).values() if getattr(one, "_is_runtime_protocol", False)]

WRAPPERS: Mapping[str, Callable[[Any], Any]] = {
    "CheckedPlacement": CheckedPlacement,
    "CheckedAlgorithm": CheckedAlgorithm,
    "WithinHours": lambda inner: WithinHours(policy=inner, hours=SplitHours()),
    "WithPartitionAdvice": lambda inner: WithPartitionAdvice(policy=inner, large=LargePartition()),
    "HotTopicIsolation": lambda inner: HotTopicIsolation(hot=HotTopic(), otherwise=inner),
    "_ObservedShedder": lambda inner: observed_policy(replace(POLICY, shedder=inner))[0].shedder,
}
#: Strategies that no catalogue lists, and that ask no other strategy.
OWN = {"NotDrained", "RebalanceOnMembershipChange", "Staying"}


def _answers_as_a_strategy(kind: ast.ClassDef) -> bool:
    methods = {
        each.name: [arg.arg for arg in each.args.args] for each in kind.body if isinstance(each, ast.FunctionDef)
    }
    has_memory = "initial_memory" in methods and bool({"decide", "acceptable"} & methods.keys())
    return has_memory or "cuts" in methods or "candidates" in methods.get("keep", ())


def test_every_wrapper_is_tested_here() -> None:
    """Whatever answers as a strategy does is in a catalogue, or is known here as a wrapper or as a strategy."""
    role = re.compile(r"def (?:decide|acceptable|cuts|keep)\(")
    found = {
        node.name
        for file in ROOT.rglob("*.py")
        if role.search(text := file.read_text(encoding="utf-8")) and file.name != "protocols.py"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and _answers_as_a_strategy(node)
    }
    kinds = [
        *catalogue.SHEDDERS.values(), *catalogue.PLACEMENTS.values(), *catalogue.SPLIT_POLICIES.values(),
        *catalogue.SPLIT_ALGORITHMS.values(), *catalogue.FILTERS.values(), *catalogue.EXTENSIBLE_FILTERS.values(),
    ]  # fmt: skip
    listed = {base.__name__ for kind in kinds for base in kind.__mro__}
    assert found - listed - OWN == set(WRAPPERS)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("wanted", CAPABILITIES, ids=lambda wanted: wanted.__name__)
def test_a_wrapper_has_what_the_wrapped_strategy_can_do_and_no_more(wrapper: str, wanted: type[Any]) -> None:
    members = {**dict.fromkeys(getattr(wanted, "__annotations__", ())), **vars(wanted)}
    able = type("Able", (), {name: lambda *_: None for name in members if not name.startswith("_")})()
    assert capability(WRAPPERS[wrapper](able), wanted) is not None
    assert capability(WRAPPERS[wrapper](WRAPPERS[wrapper](able)), wanted) is not None
    assert capability(WRAPPERS[wrapper](object()), wanted) is None


def test_nobody_asks_for_a_capability_by_isinstance() -> None:
    names = "|".join(wanted.__name__ for wanted in CAPABILITIES)
    asks = re.compile(rf"is(?:instance|subclass)\([^)]*\b(?:{names})\b")
    assert [file.name for file in ROOT.rglob("*.py") if asks.search(file.read_text(encoding="utf-8"))] == []


@dataclass(frozen=True)
class Keeping:
    """Accepts the first candidate."""

    keeps_its_choice: ClassVar[bool] = True

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def acceptable(self, _view: ClusterView, _bundle: int, candidates: Ints, memory: NoMemory) -> tuple[Ints, NoMemory]:
        return candidates[:1], memory


class NotKeeping(Keeping):
    keeps_its_choice: ClassVar[bool] = False


class OnlyLast:
    """A filter that is ignored where all brokers that it leaves are overloaded."""

    reason: ClassVar[Reason] = Reason.MAX_TOPICS
    binding: ClassVar[bool] = False

    def keep(self, _view: ClusterView, _bundle: int, candidates: Ints) -> Ints:
        return candidates[-1:]


@pytest.mark.parametrize(("placement", "goes_to"), [(Keeping(), 2), (NotKeeping(), 0)])
def test_a_checked_placement_keeps_its_choice_among_overloaded_brokers_if_it_says_so(
    placement: Keeping, goes_to: int
) -> None:
    full = view(broker("a", usage=0.95, x=1), broker("b", usage=0.95), broker("c", usage=0.95))
    selection = ModularSelectBroker()
    found = selection.candidates(full, 0, [OnlyLast()])
    rows, _ = selection.acceptable(full, 0, found, CheckedPlacement(placement), NoMemory())
    assert rows.tolist() == [goes_to]


@dataclass(frozen=True)
class Hurried:
    """Unloads nothing."""

    reason: Reason = Reason.BALANCED

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def decide(self, _view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        return UnloadDecision(reason=self.reason), memory

    def hurries(self, _view: ClusterView) -> bool:
        return True

    def relieving(self) -> "Hurried":
        return Hurried(Reason.OVERLOADED)


def test_a_shedder_that_is_listened_to_relieves_brokers_that_cannot_wait_and_is_listened_to_then() -> None:
    policy, heard = observed_policy(replace(POLICY, shedder=Hurried()))
    cluster = view(broker("a", usage=0.9))
    relieving = relieving_of(policy.shedder, cluster)
    assert relieving is not None
    assert unloads_by(relieving, cluster, NoMemory())[0].reason is Reason.OVERLOADED
    assert heard.unloads == {"Hurried": ()}
    plain, _ = observed_policy(POLICY)
    assert relieving_of(plain.shedder, cluster) is None


def test_a_shedder_that_is_listened_to_observes_every_interval() -> None:
    cluster, shedder = view(broker("a", usage=0.9, x=1)), TransferShedder()
    policy, _ = observed_policy(replace(POLICY, shedder=shedder))
    seen = observed_by(policy.shedder, cluster, TransferHistory())
    assert seen == shedder.observed(cluster, TransferHistory()) != TransferHistory()
