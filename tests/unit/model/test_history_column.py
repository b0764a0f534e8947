"""HistoryColumn: a mapping that stores its numbers as an array."""

import copy
import math

import numpy as np
import pytest

from controller.model.history_column import HistoryColumn
from controller.strategies.common.usage_history import UsageHistory

NAMES = ("a", "b", "c")


def test_a_column_equals_the_mapping_it_was_made_of() -> None:
    column = HistoryColumn.of({"c": 3.0, "a": 1.0, "gone": 9.0}, NAMES)
    assert column == {"a": 1.0, "c": 3.0, "gone": 9.0}
    assert len(column) == 3
    assert "b" not in column
    assert column.known.tolist() == [True, False, True]
    assert repr(column) == "{'gone': 9.0, 'a': 1.0, 'c': 3.0}"


def test_nan_is_kept_as_a_number() -> None:
    column = HistoryColumn.of({"a": math.nan}, NAMES)
    assert column.known.tolist() == [True, False, False]
    assert math.isnan(column["a"])


def test_an_update_of_some_rows_returns_a_copy_and_leaves_the_original() -> None:
    before = HistoryColumn.of({"a": 1.0, "gone": 9.0}, NAMES)
    after = before.with_numbers(np.array([0, 2]), np.array([5.0, 6.0]))
    assert after == {"a": 5.0, "c": 6.0, "gone": 9.0}
    assert before == {"a": 1.0, "gone": 9.0}


def test_a_column_of_the_same_names_is_reused_and_of_other_names_is_rebuilt() -> None:
    column = HistoryColumn.of({"a": 1.0, "b": 2.0}, NAMES)
    assert HistoryColumn.of(column, NAMES) is column
    assert HistoryColumn.of(column, tuple("abc")) is column
    anew = HistoryColumn.of(column, ("b", "d"))
    assert anew == column
    assert anew.known.tolist() == [True, False]


def test_a_deep_copy_is_equal() -> None:
    column = HistoryColumn.of({"a": 1.0}, NAMES)
    assert copy.deepcopy(column) == column


def test_smoothing_updates_the_given_names_only() -> None:
    history = UsageHistory(usage={"a": 0.5, "b": 0.5, "gone": 0.1})
    usage, moved = history.smoothed(NAMES, np.array([1.0, 0.25]), 0.5, rows=np.array([1, 2]))
    assert usage.tolist() == [0.75, 0.25]
    assert moved == UsageHistory(usage={"a": 0.5, "b": 0.75, "c": 0.25, "gone": 0.1})
    assert history == UsageHistory(usage={"a": 0.5, "b": 0.5, "gone": 0.1})


def test_a_restarted_brokers_average_starts_with_its_usage() -> None:
    usage, _ = UsageHistory(usage={"a": 0.5, "b": 0.5}).smoothed(
        ("a", "b"), np.array([1.0, 1.0]), 0.5, restarted=np.array([True, False])
    )
    assert usage.tolist() == [1.0, 0.75]


@pytest.mark.parametrize("names", [("a", "c"), ("c", "a")])
def test_history_of_names_tells_which_of_them_have_an_average(names: tuple[str, ...]) -> None:
    numbers, known = UsageHistory(usage={"a": 0.5}).of(names)
    assert dict(zip(names, known.tolist(), strict=True)) == {"a": True, "c": False}
    assert numbers[names.index("a")] == 0.5
