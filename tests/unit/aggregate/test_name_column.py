"""A column of names is what a list of its names would be."""

import numpy as np

from controller.aggregate.columns.name_column import NameColumn

COLUMN = NameColumn(names=["b", "a", "b", "unused"], codes=np.array([2, 0, 1, 0]))


def test_rows_are_read_by_number_or_all_at_once() -> None:
    assert len(COLUMN) == 4
    assert COLUMN[2] == "a"
    assert COLUMN.tolist() == ["b", "b", "a", "b"]
    assert NameColumn.of(["x", "y", "x"]).tolist() == ["x", "y", "x"]


def test_chosen_rows_come_in_the_order_asked_for() -> None:
    assert COLUMN.take(np.array([2, 2, 0])).tolist() == ["a", "a", "b"]
    assert COLUMN.take(np.array([2, 1])).used() == ["b", "a"]


def test_numbers_are_asked_for_used_names_alone_and_in_their_order() -> None:
    asked: list[str] = []

    def number_of(name: str) -> int:
        asked.append(name)
        return {"a": 7, "b": 9}[name]

    assert COLUMN.numbered(number_of).tolist() == [9, 9, 7, 9]
    assert asked == COLUMN.used() == ["b", "a", "b"]


def test_no_rows_use_no_names() -> None:
    none = NameColumn(names=[""], codes=np.zeros(0, np.int64))
    assert (len(none), none.tolist(), none.used(), none.numbered(len).tolist()) == (0, [], [], [])
