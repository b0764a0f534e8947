"""Dataclasses become records and come back."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from controller.model.errors import WireError
from controller.wire.base import Count, Record, encode
from controller.wire.conversion import from_record, to_record


@dataclass(frozen=True, kw_only=True)
class Leaf:
    at_ms: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Tree:
    first: Leaf | None = None
    listed: tuple[Leaf, ...] = ()
    named: Mapping[str, Leaf]
    only_here: int = 0


class LeafRecord(Record):
    at_ms: Count
    note: str = ""


class TreeRecord(Record):
    first: LeafRecord | None
    listed: tuple[LeafRecord, ...]
    named: dict[str, LeafRecord]
    only_there: int = 3


TREE = Tree(first=Leaf(at_ms=1), listed=(Leaf(at_ms=2, note="x"), Leaf(at_ms=3)), named={"b": Leaf(at_ms=4)})


def test_what_is_nested_in_options_lists_and_mappings_is_converted_both_ways() -> None:
    record = to_record(TreeRecord, TREE)
    assert record.named["b"] == LeafRecord(at_ms=4)
    assert encode(record).startswith(b'{"first":{"atMs":1,"note":""},"listed":[{"atMs":2,"note":"x"}')
    assert from_record(Tree, record) == TREE


def test_fields_that_the_other_side_lacks_take_their_defaults_or_are_given() -> None:
    record = to_record(TreeRecord, TREE)
    assert record.only_there == 3
    assert from_record(Tree, record, only_here=5).only_here == 5


def test_a_mapping_of_values_serves_as_well_as_a_dataclass() -> None:
    assert to_record(TreeRecord, {"first": None, "listed": (), "named": TREE.named}).named["b"].at_ms == 4


def test_a_value_that_the_record_does_not_allow_is_named_by_its_place() -> None:
    with pytest.raises(WireError, match=r"listed\.0\.at_ms: .*greater than or equal to 0, found -1"):
        to_record(TreeRecord, Tree(listed=(Leaf(at_ms=-1),), named={}))
