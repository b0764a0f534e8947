"""Dataclasses of the core as records of the wire, and back: fields of the same names, however deep."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ValidationError

from controller.wire.base import Record, wire_error

R = TypeVar("R", bound=Record)
D = TypeVar("D")


def to_record(model: type[R], source: object) -> R:
    """The record *model* of *source*, a dataclass or a mapping of values; fields that the model lacks are left out.

    Raises WireError where a value is not what the model allows.
    """
    try:
        return model.model_validate(source, from_attributes=True, by_name=True, by_alias=False)
    except ValidationError as error:
        raise wire_error(error) from error


def from_record(kind: type[D], record: BaseModel, **more: Any) -> D:
    """The dataclass *kind* of *record*, which is valid; *more*: values of fields that are not the record's."""
    hashable: Any = kind
    values = {
        name: getattr(record, name) if inner is None else _from_value(inner, getattr(record, name))
        for name, inner in _shared_fields(hashable, type(record))
        if name not in more
    }
    return kind(**values, **more)


def _from_value(kind: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _from_value(kind, each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_from_value(kind, each) for each in value)
    return from_record(kind, value) if isinstance(value, BaseModel) else value


@cache
def _shared_fields(kind: Any, record: type[BaseModel]) -> list[tuple[str, Any]]:
    """The fields of *kind* that *record* has, too, each with the dataclass of its value, of its items or of its values,
    or None."""
    hints = get_type_hints(kind)
    return [(each.name, _dataclass_in(hints[each.name])) for each in fields(kind) if each.name in record.model_fields]


def _dataclass_in(hint: Any) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next(filter(None, map(_dataclass_in, get_args(hint))), None)
