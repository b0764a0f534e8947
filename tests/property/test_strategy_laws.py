"""Every strategy of the catalogue keeps the laws of its kind, with its default options; so must a new one."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.laws import Law, laws_of
from controller.model.decision import Reason
from controller.strategies.catalogue import ASSIGNMENTS, PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES

#: By these, AvgShedder decides as Pulsar 5.0's.
_BY_BUNDLE: Final = {"plans_by_bundle": True}
_CATALOGUES: Final[dict[str, Mapping[str, Callable[[], Any]]]] = {
    "shedding": {**SHEDDERS, "AvgShedder by bundle": partial(SHEDDERS["AvgShedder"], **_BY_BUNDLE)},
    "placement": {**PLACEMENTS, "AvgShedder by bundle": partial(PLACEMENTS["AvgShedder"], **_BY_BUNDLE)},
    "split policy": SPLIT_POLICIES,
    "split algorithm": SPLIT_ALGORITHMS,
    "assignment": ASSIGNMENTS,
}
#: A law is that of a kind.  Examples take longer to make than to judge, so all strategies of the kind share them.
_CASES = [
    pytest.param(catalogue, law, id=f"{kind}-{law.sentence}")
    for kind, catalogue in _CATALOGUES.items()
    for law in laws_of(next(iter(catalogue.values()))())
]


@pytest.mark.parametrize(("catalogue", "law"), _CASES)
@given(data=st.data())
def test_all_strategies_of_the_catalogue_keep_the_law(
    catalogue: Mapping[str, Callable[[], Any]], law: Law, data: st.DataObject
) -> None:
    example = data.draw(law.examples)
    flaws = {name: law.flaw(cls(), example) for name, cls in catalogue.items()}
    assert [f"{name}: {flaw}" for name, flaw in flaws.items() if flaw is not None] == []


@pytest.mark.parametrize("kind", _CATALOGUES)
def test_strategies_of_a_kind_have_the_same_laws(kind: str) -> None:
    assert len({laws_of(cls()) for cls in _CATALOGUES[kind].values()}) == 1


@pytest.mark.parametrize("name", sorted(SPLIT_ALGORITHMS.keys() - {"specified_positions_divide"}))
def test_the_law_of_cutting_is_not_empty(name: str) -> None:
    places, many = np.arange(8) * 1000, np.full((8, 4), 1e8)
    assert not isinstance(SPLIT_ALGORITHMS[name]().cuts(0, 10_000, places, many), Reason)
