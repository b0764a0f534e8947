"""A shedder that somebody wrote remembers what it likes; the journal keeps it, and the cycle tells it what happened."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from controller.adapters.metrics.controller import ControllerMetrics
from controller.cycle import decide, with_read_memories
from controller.cycle.limits import Budget, Limits
from controller.laws import broken_laws
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Reason
from controller.model.errors import SettingsError, StrategyError, WireError
from controller.model.journal import JournalEntry
from controller.model.memory import Issued, Memory
from controller.offline.pseudonyms.anonymise import Anonymiser
from controller.offline.pseudonyms.names import Pseudonyms
from controller.settings.strategy_kinds import SHEDDER_KIND
from controller.strategies.api import ClusterView, NoMemory, StrategyMemory, UnloadDecision
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.wire.journal import encode_entry
from tests.cluster import INTERVAL, broker, view
from tests.effort import tries
from tests.journal_entries import entry, parse_entry
from tests.logs import Shape, located, log
from tests.own_shedder import Gift, Patience, PatientShedder
from tests.pure_controller import POLICY as ENGINES_POLICY
from tests.pure_controller import Controller, cut
from tests.recordings import SETTINGS, MemoryRecordLog
from tests.records import as_bytes
from tests.unit.cycle.test_cycle import POLICY, WARM

NAME = "tests.own_shedder.PatientShedder"
BUNDLE, OTHER = "acme/own/0x00000000_0x80000000", "acme/own/0x80000000_0xffffffff"
HOT = view(broker("a:80", usage=0.9, **{BUNDLE: 50.0, OTHER: 20.0}), broker("b:80", usage=0.1), broker("c:80"))
OWN = replace(POLICY, shedder=PatientShedder(patience=1))
ACTIVE = Controls(mode="active")
GIFT = Gift(bundle=BUNDLE, source="a:80", at_ms=INTERVAL)
FULL = Patience(mood="busy", rounds={"a:80": 3}, gifts=(GIFT,), peak=0.75)


def stored_in(memory: Memory) -> Memory:
    """*memory* as another process reads it from the journal."""
    read = parse_entry(encode_entry(replace(entry(), memory=memory)))
    assert isinstance(read, JournalEntry)
    return read.memory


def own(memory: Memory) -> Patience:
    assert isinstance(memory.shedder, Patience)
    return memory.shedder


def after(memory: Memory, controls: Controls = ACTIVE, **policy: Any) -> Patience:
    return own(decide(HOT, [], memory, controls, replace(OWN, **policy))[1])


WITH_MEMORY = replace(WARM, shedder=Patience())


def test_a_memory_is_read_from_the_journal_as_its_strategy_left_it() -> None:
    read = stored_in(replace(WARM, shedder=FULL))
    assert own(with_read_memories(read, OWN)) == FULL
    assert encode_entry(entry(shedder=FULL)) == encode_entry(entry(shedder=read.shedder)), "also unread"


def test_decisions_after_a_takeover_are_those_of_the_controller_before() -> None:
    memory = decide(HOT, [], WITH_MEMORY, ACTIVE, replace(OWN, shedder=PatientShedder(patience=9)))[1]
    assert own(memory).rounds == {"a:80": 1}
    later = replace(HOT, as_of_ms=INTERVAL + 60_000)
    same, other = (decide(later, [], each, ACTIVE, OWN) for each in (memory, stored_in(memory)))
    assert same == other
    assert [each.bundle for each in same[0].commands] == [BUNDLE]


def test_what_was_issued_is_remembered_and_what_a_guardrail_holds_back_is_not() -> None:
    assert after(WITH_MEMORY).gifts == (GIFT,)
    assert after(WITH_MEMORY, Controls(mode="active", paused=True)).gifts == ()
    spent = Issued(
        action="unload",
        namespace="acme/x",
        source="c:80",
        destination="b:80",
        connections=1,
        interval=INTERVAL - 60_000,
    )
    held = after(replace(WITH_MEMORY, issued={"x": spent}), limits=Limits(window=Budget(unloads=1)))
    assert (held.gifts, held.rounds) == ((), {"a:80": 0})


def test_brokers_that_left_are_forgotten() -> None:
    assert set(after(replace(WARM, shedder=Patience(rounds={"a:80": 1, "gone:80": 4}))).rounds) <= {"a:80"}


def test_a_plan_that_moves_bundles_of_a_broker_invalidates_what_was_expected_of_it() -> None:
    move = OrderedMove(bundle=OTHER, source="a:80", destination="b:80")
    orders = Orders(
        plan="0f" * 32, step=1, wave=1, waves=1, moves=(move,), checked_at=INTERVAL - 60_000,
        expires_at_ms=INTERVAL + 60_000, holder="one", by="ada",
    )  # fmt: skip
    assert after(replace(WARM, shedder=FULL), Controls(mode="active", orders=orders)).gifts == ()


def test_a_dry_run_is_forgotten_once_the_mode_is_active() -> None:
    _, dry = decide(HOT, [], WITH_MEMORY, Controls(mode="dry_run"), OWN)
    assert own(dry).gifts == (GIFT,)
    balanced = view(broker("a:80", usage=0.5, **{BUNDLE: 50.0}), broker("b:80", usage=0.5))
    held = replace(OWN, shed=False)
    found = own(decide(replace(balanced, as_of_ms=INTERVAL + 60_000), [], dry, ACTIVE, held)[1])
    assert found.gifts == ()


def test_it_is_shown_as_metrics() -> None:
    metrics = ControllerMetrics()
    metrics._tell_strategies(Memory(shedder=FULL))
    shown = {
        (sample.labels["role"], sample.labels["name"]): sample.value
        for family in metrics.registry.collect()
        if family.name == "trimtab_strategy_metric"
        for sample in family.samples
    }
    assert shown == {("shedder", "longest_wait"): 3.0, ("shedder", "gifts"): 1.0}
    metrics._tell_strategies(Memory())
    assert b"longest_wait" not in metrics.page()


def test_an_anonymised_journal_has_neither_its_names_nor_that_of_its_class() -> None:
    other = Anonymiser(MemoryRecordLog({}), {}, {}, settings=SETTINGS, cluster="c", key=b"sixteen bytes or more")
    for memory in (FULL, stored_in(Memory(shedder=FULL)).shedder):  # where its class is there, and where it is not
        renamed = encode_entry(other.journal.entry(entry(shedder=memory)))
        assert not [word for word in ("acme", '"a:80"', "own_shedder", "Patience") if word in renamed.decode()]
        found = json.loads(renamed)["memory"]["shedder"]
        assert (found["kind"], list(found["rounds"].values()), found["peak"]) == ("own.Memory", [3], 0.75)
        assert next(iter(found["rounds"])) in found["gifts"][0].values()
    renamed_memory = FULL.with_names(Pseudonyms(b"sixteen bytes or more"))
    assert own(with_read_memories(stored_in(Memory(shedder=renamed_memory)), OWN)) == renamed_memory


@pytest.mark.slow
def test_it_keeps_the_laws_of_all_strategies() -> None:
    assert broken_laws(PatientShedder(), examples=tries(plain=2, thorough=20)) == []


def test_it_is_loaded_by_its_name() -> None:
    assert SHEDDER_KIND.choose(NAME, {"acmePatience": "5"}) == PatientShedder(patience=5)


def test_another_strategy_starts_empty_and_says_so() -> None:
    for memory in (replace(WARM, shedder=FULL), stored_in(replace(WARM, shedder=FULL))):
        decision, found = decide(HOT, [], memory, ACTIVE, replace(POLICY, shedder=OverloadShedder()))
        assert found.shedder == NoMemory()
        assert [each.detail for each in decision.verdicts if each.reason is Reason.STARTED_ANEW] == [
            "shedder: strategy changed to OverloadShedder, its memory starts empty"
        ]
    found = decide(HOT, [], stored_in(WARM), ACTIVE, OWN)[1]
    assert isinstance(found.shedder, Patience)


#: What lies in a journal, and what is said of it.
DAMAGED = [
    ({"rounds": {"a:80": "3"}}, "memory.rounds is '3' (str), and int is expected"),
    ({"rounds": {"a:80": True}}, "memory.rounds is True (bool), and int is expected"),
    ({"rounds": {"a:80": -1}}, "Patience refuses it: ValueError: rounds are counted from 0"),
    ({"rounds": [1]}, "memory.rounds is [1] (list)"),
    ({"mood": "sad"}, "memory.mood is 'sad' (str)"),
    ({"gifts": [{"bundle": "x"}]}, "Gift refuses it: TypeError"),
    ({"gifts": [{"bundle": "x", "source": "y", "at_ms": 1 << 70}]}, "a number of 64 bits is expected"),
    ({"gifts": {"a": 1}}, "memory.gifts is {'a': 1} (dict), and a tuple is expected"),
    ({"gifts": ["x"]}, "is 'x' (str), and an object is expected"),
    ({"peak": "high"}, "memory.peak is 'high' (str)"),
    ({"hurry": 1}, "Patience has no field 'hurry'"),
]


@pytest.mark.parametrize(("fields", "told"), DAMAGED)
def test_what_is_no_memory_of_the_class_is_refused_and_the_strategy_and_the_kind_are_named(
    fields: dict[str, Any], told: str
) -> None:
    written = json.loads(encode_entry(entry(shedder=Patience())))
    written["memory"]["shedder"] |= fields
    read = parse_entry(as_bytes(written))
    assert isinstance(read, JournalEntry)
    with pytest.raises(StrategyError) as caught:
        decide(HOT, [], read.memory, ACTIVE, OWN)
    assert caught.value.strategy == "PatientShedder"
    assert told in caught.value.flaw
    assert "tests.own_shedder.Patience" in caught.value.flaw


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"kind": "thoughts"}, "no kind of memory"),
        ({}, "an object with a kind"),
        ([], "an object with a kind"),
        ({"kind": "usage_history", "usage": {"a": "much"}}, "memory.usage is 'much'"),
        ({"kind": "usage_history", "usage": {"a": None}}, "memory.usage is None"),
        ({"kind": "usage_history", "average": {}}, "UsageHistory has no field 'average'"),
        ({"kind": "none", "x": 1}, "NoMemory has no field 'x'"),
    ],
)
def test_a_memory_of_a_strategy_of_trimtab_is_checked_where_it_is_read(told: Any, said: str) -> None:
    written = json.loads(encode_entry(entry()))
    written["memory"]["placement"] = told
    with pytest.raises(WireError, match=said):
        parse_entry(as_bytes(written))


def test_a_name_in_the_journal_imports_nothing() -> None:
    written = json.loads(encode_entry(entry()))
    written["memory"]["shedder"] = {"kind": "antigravity.Memory", "x": 1}
    read = parse_entry(as_bytes(written))
    assert isinstance(read, JournalEntry)
    assert decide(HOT, [], replace(WARM, shedder=read.memory.shedder), ACTIVE, POLICY)[1].shedder is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAnyThing(StrategyMemory):
    thing: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSets(StrategyMemory):
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAField(StrategyMemory):
    kind: str = "x.y"  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutADot(StrategyMemory):
    kind: ClassVar[str] = "thoughts"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAnother(StrategyMemory):
    kind: ClassVar[str] = "usage_history"


@dataclass
class Loose:
    n: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLoose(StrategyMemory):
    inner: Mapping[str, Loose] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembers:
    memory: ClassVar[Any] = None

    def initial_memory(self) -> Any:
        return self.memory()

    def decide(self, view: ClusterView, memory: Any) -> tuple[UnloadDecision, Any]:
        return UnloadDecision(reason=Reason.BALANCED), memory


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (OfAnyThing, "OfAnyThing.thing has the type object"),
        (OfSets, "OfSets.names has the type frozenset"),
        (OfAField, "OfAField.kind is a field"),
        (WithoutADot, "kind is 'thoughts': a name with a dot"),
        (OfAnother, "kind is 'usage_history': a name with a dot"),
        (OfLoose, "OfLoose.inner has the type Loose"),
        (dict, "dict is no StrategyMemory"),
    ],
)
def test_a_memory_that_the_journal_cannot_hold_is_refused_when_the_settings_are_read(
    kind: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembers, "memory", kind)
    with pytest.raises(SettingsError, match=said):
        SHEDDER_KIND.choose(f"{__name__}.Remembers", {})


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ({"a b": 1.0}, "letters, digits and underscores"),
        ({"a": "much"}, "metrics() is 'much'"),
        ({f"n{i}": 1.0 for i in range(21)}, "21 names, and 20 are allowed"),
        (None, "metrics() is None"),
    ],
)
def test_numbers_to_show_are_checked_before_anything_is_issued(
    shown: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patience, "metrics", lambda _: shown)
    with pytest.raises(StrategyError) as caught:
        decide(HOT, [], WITH_MEMORY, ACTIVE, OWN)
    assert said in caught.value.flaw


def test_an_error_of_a_method_of_the_memory_names_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any, *__: Any) -> Any:
        raise KeyError("gone")

    monkeypatch.setattr(Patience, "keep_brokers", fails)
    with pytest.raises(StrategyError, match="its keep_brokers raises KeyError"):
        decide(HOT, [], WITH_MEMORY, ACTIVE, OWN)
    monkeypatch.setattr(Patience, "keep_brokers", lambda *_: NoMemory())
    with pytest.raises(StrategyError, match="it returns a NoMemory"):
        decide(HOT, [], WITH_MEMORY, ACTIVE, OWN)


@pytest.mark.slow
@pytest.mark.parametrize("batches", [(), (37,), (100, 3, 250)])
def test_the_engine_writes_the_same_journal_however_often_it_is_killed(batches: tuple[int, ...]) -> None:
    records = [*located(log(Shape(seed=1, intervals=7)))]
    policy = replace(ENGINES_POLICY, shedder=PatientShedder(patience=1), limits=Limits(freeze_share=1.0))
    once, killed = Controller(policy=policy), Controller(policy=policy)
    once.feed(records)
    for batch in cut(records, batches):
        killed.feed(batch)
        killed.restart(killed.checkpoint())
    assert killed.journal == once.journal
    kinds = {json.loads(each)["memory"]["shedder"]["kind"] for each in once.journal}
    assert kinds == {"tests.own_shedder.Patience"}
    assert any(json.loads(each)["memory"]["shedder"]["peak"] for each in once.journal)
