"""Laws of placements: which brokers they may choose, and on what the choice may depend."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from controller.cycle.checked import CheckedPlacement
from controller.laws.clusters import Placing, clusters
from controller.laws.descriptions import describe_cluster, name_brokers
from controller.laws.law import Law
from controller.model.load import ClusterView
from controller.strategies.common.capabilities import capability
from controller.strategies.protocols import PlanAwarePlacement


@st.composite
def placings(draw: st.DrawFn) -> Placing:
    """A cluster with a bundle, and some of its brokers, at least one."""
    view = draw(clusters(least_bundles=1))
    rows = draw(st.sets(st.integers(0, len(view.brokers) - 1), min_size=1))
    return Placing(view=view, candidates=np.array(sorted(rows), np.int64))


def _rows(placement: Any, view: ClusterView, candidates: Sequence[int]) -> list[int]:
    checked, memory = CheckedPlacement(placement), placement.initial_memory()
    accepted, moved = checked.acceptable(view, 0, np.array(candidates, np.int64), memory)
    checked.memory_checked(memory, moved)
    rows: list[int] = accepted.tolist()
    return rows


def _no_candidates(placement: Any, example: Placing) -> str | None:
    return None if _rows(placement, example.view, example.candidates.tolist()) else "it accepts no broker"


def _another_answer(placement: Any, example: Placing) -> str | None:
    memory, candidates = placement.initial_memory(), example.candidates.copy()
    first, moved = placement.acceptable(example.view, 0, candidates, memory)
    second, again = placement.acceptable(example.view, 0, candidates, memory)
    if (first.tolist(), moved) != (second.tolist(), again):
        return "asked twice, it gives two answers"
    if memory != placement.initial_memory() or candidates.tolist() != example.candidates.tolist():
        return "it changes the memory or the candidates that it is given"
    return None


def _looks_at_others(placement: Any, example: Placing) -> str | None:
    view, rows = example.view, example.candidates.tolist()
    others = [row for row in range(len(view.brokers)) if row not in rows]
    usage, long_term = view.brokers.usage.copy(), view.brokers.long_term.copy()
    usage[others], long_term[others] = 99.0, 0.0
    changed = replace(view, brokers=replace(view.brokers, usage=usage, long_term=long_term))
    before, after = _rows(placement, view, rows), _rows(placement, changed, rows)
    if before == after:
        return None
    accepted = name_brokers(view, before), name_brokers(view, after)
    return f"it accepts {accepted[0]}; with the other brokers at 99 % and idle it accepts {accepted[1]}"


def _refuses_the_only_one(placement: Any, example: Placing) -> str | None:
    for row in example.candidates.tolist():
        if _rows(placement, example.view, [row]) != [row]:
            return f"it does not accept {example.view.brokers.names[row]}, its only candidate"
    return None


def _finds_one_among_none(placement: Any, example: Placing) -> str | None:
    accepted = _rows(placement, example.view, [])
    return f"it accepts {name_brokers(example.view, accepted)}" if accepted else None


def _strays_from_plan(placement: Any, example: Placing) -> str | None:
    aware: PlanAwarePlacement | None = capability(placement, PlanAwarePlacement)
    if aware is None or not aware.plan_aware:
        return None
    names, own = example.view.brokers.names, int(example.view.bundles.broker[0])
    for row in example.candidates.tolist():
        view = replace(example.view, planned=row)
        if row != own and _rows(placement, view, [row]) != [row]:
            return f"it does not accept {names[row]}, which is planned and its only candidate"
        if row != own and own in _rows(placement, view, example.candidates.tolist()):
            return f"where {names[row]} is planned it accepts {names[own]}, the bundle's own broker"
    return None


def _describe(example: Placing) -> list[str]:
    bundle = f"bundle to place: {example.view.bundles.names[0]}"
    return [
        *describe_cluster(example.view),
        bundle,
        f"candidates: {name_brokers(example.view, example.candidates.tolist())}",
    ]


def _law(sentence: str, flaw: Callable[[Any, Any], str | None]) -> Law:
    return Law(sentence=sentence, examples=placings(), flaw=flaw, describe=_describe)


#: Of every placement with its default options.
PLACEMENT_LAWS: Final = (
    _law("It accepts at least one of the candidates, in ascending order, each once.", _no_candidates),
    _law("The same cluster, candidates and memory give the same answer.", _another_answer),
    _law("Brokers that are no candidates make no difference.", _looks_at_others),
    _law("It accepts the only candidate, however full that is.", _refuses_the_only_one),
    _law("It accepts nothing where there are no candidates.", _finds_one_among_none),
    _law("A bundle with a plan that it looks at leaves, to the planned broker if to no other.", _strays_from_plan),
)
