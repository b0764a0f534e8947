"""Strategies written by a user and named in broker.conf by their full Python names."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.cycle import Policy
from controller.model.errors import SettingsError
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.strategy_kinds import (
    ASSIGNMENT_KIND,
    PLACEMENT_KIND,
    SHEDDER_KIND,
    SPLIT_ALGORITHM_KIND,
    STRATEGY_KINDS,
    flaw_of,
    kind_of,
)
from controller.settings.trimtab_toml import DecisionSettings
from controller.strategies.catalogue import ASSIGNMENTS, PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS

EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
MODULE = '''
import dataclasses
import numpy as np
from dataclasses import dataclass
from controller.model.decision import Reason, UnloadDecision
from controller.model.strategy_memory import NoMemory
from controller.model.option import option

@dataclass(frozen=True, kw_only=True)
class Lazy:
    percent: int = option("acmePercentage", default=5, unit="%", meaning="how lazy it is")

    def initial_memory(self):
        return NoMemory()

    def decide(self, view, memory):
        return UnloadDecision(reason=Reason.BALANCED), memory

class ThresholdShedder(Lazy):
    """Of the same name as one of trimtab's."""

@dataclass(frozen=True)
class First:
    def initial_memory(self):
        return NoMemory()

    def acceptable(self, view, bundle, candidates, memory):
        return candidates[:1], memory

@dataclass(frozen=True)
class Thirds:
    name = "thirds"
    needs_topic_detail = False

    def cuts(self, lower, upper, positions, load):
        return (lower + (upper - lower) // 3, lower + 2 * (upper - lower) // 3)

@dataclass(frozen=True)
class FirstBundle:
    def assign(self, topics, boundaries):
        return np.zeros(len(topics), np.int64)

    def on_bundle_split(self, topics, assigned, old, new):
        return assigned, np.zeros(0, np.int64)

class NoDataclass:
    pass

@dataclass
class NotFrozen:
    pass

@dataclass(frozen=True)
class NoDecide:
    def initial_memory(self):
        return NoMemory()

@dataclass(frozen=True)
class TakesLess(NoDecide):
    def decide(self, view):
        pass

@dataclass(frozen=True)
class TakesMore(NoDecide):
    def decide(self, view, memory, clock):
        pass

@dataclass(frozen=True)
class OddMemory:
    def initial_memory(self):
        return {"hits": 1}
    decide = Lazy.decide

@dataclass(frozen=True)
class OddOption(Lazy):
    names: list = option("acmeNames", default=(), meaning="a kind that broker.conf cannot hold")

@dataclass(frozen=True)
class NoDefault(Lazy):
    size: int = dataclasses.field(kw_only=True)

@dataclass(frozen=True)
class RefusesItself(Lazy):
    def __post_init__(self):
        raise ValueError("percent must not be 5")

class Leaves(Lazy):
    def initial_memory(self):
        raise SystemExit("no more")

def a_function():
    pass
'''


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user's package, on the path as if it were installed."""
    package = tmp_path / "acme_balance"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lazy.py").write_text(MODULE)
    (package / "broken.py").write_text("def (:\n")
    (package / "needs.py").write_text("import not_installed_anywhere\n")
    (package / "leaves.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_balance"]:
        del sys.modules[name]


def policy(**conf: str) -> Policy:
    return policy_of(conf, DecisionSettings(), GuardrailSettings(), 2, "lab", 60_000)


def refusal(name: str, **conf: str) -> str:
    with pytest.raises(SettingsError) as caught:
        SHEDDER_KIND.choose(name, conf)
    key, _, said = str(caught.value).partition(f"={name}: ")
    assert key == "loadBalancerLoadSheddingStrategy"
    return said


def test_a_shedder_is_loaded_by_its_python_name_with_options_from_broker_conf() -> None:
    shedder = policy(loadBalancerLoadSheddingStrategy="acme_balance.lazy.Lazy", acmePercentage="7").shedder
    assert (type(shedder).__name__, shedder.percent) == ("Lazy", 7)  # type: ignore[attr-defined]
    with pytest.raises(SettingsError, match="acmePercentage=much: allowed: a whole number from 0 up"):
        policy(loadBalancerLoadSheddingStrategy="acme_balance.lazy.Lazy", acmePercentage="much")


def test_a_users_shedder_may_have_the_name_of_a_built_in_one() -> None:
    shedder = policy(loadBalancerLoadSheddingStrategy="acme_balance.lazy.ThresholdShedder").shedder
    assert type(shedder).__module__ == "acme_balance.lazy"


def test_a_users_shedder_works_with_either_load_manager() -> None:
    for manager in ("ModularLoadManagerImpl", EXTENSIBLE):
        found = policy(loadManagerClassName=manager, loadBalancerLoadSheddingStrategy="acme_balance.lazy.Lazy")
        assert type(found.shedder).__name__ == "Lazy"


def test_placement_splitting_and_assignment_are_loaded_alike() -> None:
    found = policy(
        loadBalancerLoadPlacementStrategy="acme_balance.lazy.First",
        defaultNamespaceBundleSplitAlgorithm="acme_balance.lazy.Thirds",
        topicBundleAssignmentStrategy="acme_balance.lazy.FirstBundle",
    )
    assert type(found.placement).__name__ == "First"
    assert found.split_algorithm.cuts(0, 9, *[None] * 2) == (3, 6)  # type: ignore[arg-type]
    assert ASSIGNMENT_KIND.choose("acme_balance.lazy.FirstBundle", {}).assign(["a", "b"], [0, 9]).tolist() == [0, 0]


def test_cuts_of_a_users_algorithm_are_sent_as_positions_and_brokers_must_support_that() -> None:
    with pytest.raises(SettingsError, match="brokers refuse unless specified_positions_divide is in that list"):
        policy(
            defaultNamespaceBundleSplitAlgorithm="acme_balance.lazy.Thirds",
            supportedNamespaceBundleSplitAlgorithms="range_equally_divide",
        )


def test_a_missing_module_is_named_with_the_allowed_names() -> None:
    said = refusal("acme_balance.laxy.Lazy")
    assert said.startswith("there is no Python module acme_balance.laxy (No module named 'acme_balance.laxy')")
    assert f"; allowed: {', '.join(sorted(SHEDDERS))}, or the full Python name of a class of your own" in said


def test_an_unknown_java_class_is_refused() -> None:
    said = refusal("com.acme.balance.LazyShedder")
    assert said.startswith("there is no Python module com.acme.balance (No module named 'com')")
    assert "a Java class cannot be used" in said
    name = "org.apache.pulsar.broker.loadbalance.impl.LazyShedder"
    assert refusal(name) == f"a Java class that trimtab does not have; allowed: {', '.join(sorted(SHEDDERS))}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acme_balance.lazy.Lasy", "the module acme_balance.lazy has no Lasy ("),
        ("acme_balance.broken.Lazy", "cannot import acme_balance.broken: SyntaxError: "),
        ("acme_balance.needs.Lazy", "cannot import acme_balance.needs: No module named 'not_installed_anywhere'"),
        ("acme_balance.leaves.Lazy", "cannot import acme_balance.leaves: SystemExit: 3"),
        ("acme_balance.lazy.a_function", "is a function, not a class"),
        (
            "acme_balance.lazy.NoDataclass",
            "is not a frozen dataclass: write @dataclass(frozen=True, kw_only=True) above the class",
        ),
        (
            "acme_balance.lazy.NotFrozen",
            "is not a frozen dataclass: write @dataclass(frozen=True, kw_only=True) above the class",
        ),
        ("acme_balance.lazy.NoDecide", "has no decide, which controller.strategies.protocols.Shedder asks for"),
        ("acme_balance.lazy.First", "has no decide, which controller.strategies.protocols.Shedder asks for"),
        (
            "acme_balance.lazy.TakesLess",
            "decide takes other arguments than Shedder requires: decide(self, view, memory)",
        ),
        (
            "acme_balance.lazy.TakesMore",
            "decide takes other arguments than Shedder requires: decide(self, view, memory)",
        ),
        (
            "acme_balance.lazy.OddMemory",
            "initial_memory() returns dict, which the journal cannot hold: dict is no StrategyMemory",
        ),
        ("acme_balance.lazy.OddOption", "cannot be built: TypeError: option acmeNames is a <class 'list'>: expected"),
        ("acme_balance.lazy.NoDefault", "cannot be built: TypeError: "),
        ("acme_balance.lazy.RefusesItself", "cannot be built: ValueError: percent must not be 5"),
        ("acme_balance.lazy.Leaves", "cannot be built: SystemExit: no more"),
    ],
)
def test_a_class_that_is_not_a_strategy_is_refused_with_the_reason(name: str, said: str) -> None:
    assert refusal(name, acmeNames="a").startswith(said)


def test_every_strategy_of_trimtab_has_what_is_asked_of_a_users() -> None:
    assert [kind.catalogue for kind in STRATEGY_KINDS] == [SHEDDERS, PLACEMENTS, SPLIT_ALGORITHMS, ASSIGNMENTS]
    for kind in STRATEGY_KINDS:
        assert {flaw_of(cls, kind.protocol) for cls in kind.catalogue.values()} == {None}


def test_each_kind_is_loaded_by_the_name_of_a_class_of_trimtabs_too() -> None:
    for kind in (SHEDDER_KIND, PLACEMENT_KIND, SPLIT_ALGORITHM_KIND):
        for cls in kind.catalogue.values():
            assert type(kind.choose(f"{cls.__module__}.{cls.__name__}", {})) is cls


def test_the_kind_of_a_strategy_follows_from_its_methods() -> None:
    named = ["ThresholdShedder", "RoundRobinBrokerSelector", "range_equally_divide", "RoundRobinTopicBundleAssigner"]
    own = [f"acme_balance.lazy.{name}" for name in ("Lazy", "First", "Thirds", "FirstBundle")]
    assert [kind_of(name) for name in named] == [kind_of(name) for name in own] == list(STRATEGY_KINDS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Lazy", "Lazy: is not a strategy of trimtab (AvgShedder, ConsistentHashing"),
        (
            "acme_balance.lazy.NotFrozen",
            "acme_balance.lazy.NotFrozen: is not a strategy: it has none of the methods decide",
        ),
        ("acme_balance.lazy.Lasy", "acme_balance.lazy.Lasy: the module acme_balance.lazy has no Lasy ("),
    ],
)
def test_what_is_no_strategy_of_any_kind_is_told_so(name: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        kind_of(name)
    assert str(caught.value).startswith(said)
