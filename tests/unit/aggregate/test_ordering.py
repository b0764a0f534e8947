"""Sorting by several columns gives NumPy's own order, whatever ties there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.aggregate.waiting.settling import lexsorted, mixed

_NUMBERS = st.sampled_from([-(2**63), -1, 0, 1, 2, 2**32, 2**63 - 1])


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS, st.booleans()), max_size=12))
def test_rows_come_in_the_order_of_lexsort(table: list[tuple[int, int, int, bool]]) -> None:
    keys = [np.array([row[i] for row in table], np.int64) for i in range(3)]
    rows = np.flatnonzero(np.array([row[3] for row in table], np.bool_))
    assert lexsorted(rows, keys).tolist() == rows[np.lexsort([key[rows] for key in keys])].tolist()


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=12))
def test_rows_with_the_same_keys_have_the_same_number(table: list[tuple[int, int]]) -> None:
    numbers = mixed([np.array([row[i] for row in table], np.int64) for i in range(2)]).tolist()
    by_keys = dict(zip(table, numbers, strict=True))
    assert numbers == [by_keys[row] for row in table]


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_rows_with_other_keys_mostly_have_other_numbers(columns: int) -> None:
    """Small numbers in each column, as those of brokers and bundles are."""
    small = np.arange(round(10_000 ** (1 / columns)), dtype=np.int64)
    table = np.array(np.meshgrid(*[small] * columns)).reshape(columns, -1)
    assert len(set(mixed(list(table)).tolist())) == table.shape[1]
