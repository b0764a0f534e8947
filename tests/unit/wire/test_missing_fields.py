"""A field that a large record lacks is named with its place, as deep as it lies."""

import pytest
from pydantic import BaseModel, Field

from controller.model.errors import WireError
from controller.wire.missing_fields import refuse_missing


class Inner(BaseModel):
    size: int
    least: int = 0


class Other(BaseModel):
    other: int


class Outer(BaseModel):
    one: Inner | None = None
    many: tuple[Inner, ...] | None = Field(default=None, alias="manyOfThem")
    named: dict[str, Inner] = {}
    either: Inner | Other | None = None
    plain: list[int] = []


def test_what_an_object_lacks_is_named_with_its_place() -> None:
    whole = {"size": 1}
    for fields, place in (
        ({"one": {}}, "one.size"),
        ({"manyOfThem": [whole, {"least": 1}]}, "manyOfThem.1.size"),
        ({"named": {"a": whole, "b": {}}}, "named.b.size"),
    ):
        with pytest.raises(WireError, match=f"missing_field: {place}: Field required"):
            refuse_missing(Outer, fields)


def test_what_is_there_or_need_not_be_there_or_may_be_several_things_is_left_to_others() -> None:
    whole = {"size": 1}
    refuse_missing(Outer, {"one": whole, "manyOfThem": [whole], "named": {"a": whole}, "either": {}, "plain": [1]})
    strange: tuple[object, ...] = ({}, {"one": None, "manyOfThem": 5, "named": [1]}, [], 5)
    for odd in strange:
        refuse_missing(Outer, odd)
