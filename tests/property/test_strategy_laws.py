"""Every strategy of the catalogue keeps the laws of its kind, with its default options; so must a new one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.laws import Law, laws_of
from controller.model.decision import Reason
from controller.strategies.catalogue import ASSIGNMENTS, PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES

_CASES = [
    pytest.param(cls, law, id=f"{name}-{law.sentence}")
    for catalogue in (SHEDDERS, PLACEMENTS, SPLIT_POLICIES, SPLIT_ALGORITHMS, ASSIGNMENTS)
    for name, cls in catalogue.items()
    for law in laws_of(cls())
]


@pytest.mark.parametrize(("cls", "law"), _CASES)
@given(data=st.data())
def test_a_strategy_of_the_catalogue_keeps_the_law(cls: type[Any], law: Law, data: st.DataObject) -> None:
    assert law.flaw(cls(), data.draw(law.examples)) is None


@pytest.mark.parametrize("name", sorted(SPLIT_ALGORITHMS.keys() - {"specified_positions_divide"}))
def test_the_law_of_cutting_is_not_empty(name: str) -> None:
    places, many = np.arange(8) * 1000, np.full((8, 4), 1e8)
    assert not isinstance(SPLIT_ALGORITHMS[name]().cuts(0, 10_000, places, many), Reason)
