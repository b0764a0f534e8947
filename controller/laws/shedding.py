"""Laws of shedders: which bundles they may unload, and which verdicts they must give."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from controller.cycle.checked import unloads_by
from controller.laws.clusters import alike, clusters, hot_and_cold
from controller.laws.descriptions import describe_cluster
from controller.laws.law import Law
from controller.laws.memory import MEMORY_LAW, memory_flaw
from controller.laws.verdicts import on_wrong_side
from controller.model.decision import Reason, UnloadDecision
from controller.model.errors import StrategyError
from controller.model.load import ClusterView

#: Some shedders act only after they have seen the same for some rounds.
ROUNDS: Final = 10
#: A broker may have to be above its limit for some rounds before its verdict changes.
_VERDICT_ROUNDS: Final = 3


def _first(shedder: Any, view: ClusterView) -> UnloadDecision:
    return unloads_by(shedder, view, shedder.initial_memory())[0]


def _wrong_unload(shedder: Any, view: ClusterView) -> str | None:
    _first(shedder, view)  # what it answers is checked as in the cycle
    return None


def _recently_unloaded(shedder: Any, view: ClusterView) -> str | None:
    recent = {view.bundles.names[row] for row in np.flatnonzero(view.recently_unloaded)}
    unloads = _first(shedder, view).unloads
    wrong = sorted(recent & {unload.bundle for unload in unloads if not unload.ignores_grace})
    if wrong:
        return f"it unloads {wrong[0]}, which was unloaded recently"
    guarded = _first(shedder, view.with_guarded(view.recently_unloaded)).unloads
    wrong = sorted(recent & {unload.bundle for unload in guarded})
    return f"it unloads {wrong[0]}, which a guardrail guards" if wrong else None


def _brokers_alike(shedder: Any, view: ClusterView) -> str | None:
    decision = _first(shedder, view)
    if decision.unloads:
        return f"it unloads {decision.unloads[0].bundle} from {decision.unloads[0].source}"
    if decision.reason not in (Reason.BALANCED, Reason.NO_LOAD_DATA):
        return f"its reason is {decision.reason}, not Balanced or NoLoadData"
    return None


def _says_nothing(shedder: Any, view: ClusterView) -> str | None:
    decision = _first(shedder, view)
    subjects = {verdict.subject for verdict in decision.verdicts}
    silent = sorted(set(view.brokers.names) - subjects)
    if not silent or decision.reason is Reason.NO_LOAD_DATA:
        return None
    return f"no verdict is about broker {silent[0]}; its reason is {decision.reason}, not NoLoadData"


def _wrong_numbers(shedder: Any, view: ClusterView) -> str | None:
    memory = shedder.initial_memory()
    for _ in range(_VERDICT_ROUNDS):
        decision, memory = unloads_by(shedder, view, memory)
        wrong = on_wrong_side((*decision.verdicts, *(unload.why for unload in decision.unloads)))
        if wrong is not None:
            return f"it says {wrong}"
    return None


def _another_answer(shedder: Any, view: ClusterView) -> str | None:
    memory = shedder.initial_memory()
    if shedder.decide(view, memory) != shedder.decide(view, memory):
        return "asked twice, it gives two answers"
    if memory != shedder.initial_memory():
        return "it changes the memory that it is given, in place of returning a new one"
    return None


def _with_a_memory(shedder: Any, views: Sequence[ClusterView]) -> str | None:
    memory = shedder.initial_memory()
    for turn, view in enumerate(views, 1):
        try:
            _, memory = unloads_by(shedder, view, memory)
        except StrategyError as error:
            return f"in interval {turn}, {error.flaw}"
    return None


def _wrong_memory(shedder: Any, view: ClusterView) -> str | None:
    return memory_flaw(shedder, view, unloads_by)


def _idle(shedder: Any, view: ClusterView) -> str | None:
    memory = shedder.initial_memory()
    for _ in range(ROUNDS):
        decision, memory = unloads_by(shedder, view, memory)
        if decision.unloads:
            return None
    return f"it unloads nothing in {ROUNDS} intervals; its last reason is {decision.reason}"


def _in_turn(views: Iterable[ClusterView]) -> list[str]:
    return [line for turn, view in enumerate(views, 1) for line in (f"interval {turn}:", *describe_cluster(view))]


def _law(sentence: str, flaw: Callable[[Any, Any], str | None], examples: st.SearchStrategy[Any]) -> Law:
    return Law(sentence=sentence, examples=examples, flaw=flaw, describe=describe_cluster)


#: Of every shedder with its default options.
SHEDDING_LAWS: Final = (
    _law(
        "It unloads bundles from the brokers that own them, each once, to other brokers of the cluster.",
        _wrong_unload,
        clusters(),
    ),
    _law(
        "It never unloads a bundle that was unloaded recently, unless it says that it comes back in an exchange.",
        _recently_unloaded,
        clusters(),
    ),
    _law("It unloads nothing when all brokers are alike.", _brokers_alike, alike()),
    _law("It has a verdict on every broker, unless it knows no load at all.", _says_nothing, clusters()),
    _law("The same cluster and memory give the same answer.", _another_answer, clusters()),
    Law(
        sentence="What it unloads can be carried out in later intervals, too.",
        examples=st.lists(clusters(), min_size=2, max_size=4),
        flaw=_with_a_memory,
        describe=_in_turn,
    ),
    _law(
        f"It unloads something within {ROUNDS} intervals where one broker is nearly full and another nearly empty.",
        _idle,
        st.builds(hot_and_cold),
    ),
    _law(
        "The numbers of a verdict are those that decided: nothing is Balanced above its limit, or Overloaded below it.",
        _wrong_numbers,
        clusters(),
    ),
    _law(MEMORY_LAW, _wrong_memory, clusters()),
)
