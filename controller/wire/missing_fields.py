"""Fields that a large record lacks, found before pydantic looks at it.

pydantic's error about a missing field holds a copy of the object that lacks it, so an object of megabytes that lacks
twenty fields would be copied twenty times, at fifty bytes and more for each of its own.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from controller.model.errors import WireError


class _Known(NamedTuple):
    """What a model says of one field."""

    required: bool
    #: The model of the field's value, of each of its items, or of each of its values; None: no model, or several.
    model: type[BaseModel] | None
    is_mapping: bool


def refuse_missing(model: type[BaseModel], fields: object, path: str = "") -> None:
    """Raise WireError for the first field of *model* that *fields*, at *path*, or an object in it, lacks."""
    if not isinstance(fields, dict):
        return
    for name, known in _fields_of(model).items():
        if name in fields:
            if known.model is not None:
                for step, item in _items(fields[name], known.is_mapping):
                    refuse_missing(known.model, item, f"{path}{name}{step}.")
        elif known.required:
            raise WireError("missing_field", f"{path}{name}: Field required")


def _items(value: object, is_mapping: bool) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        yield from ((f".{i}", item) for i, item in enumerate(value))
    elif is_mapping and isinstance(value, dict):
        yield from ((f".{key}", item) for key, item in value.items())
    else:
        yield "", value


@cache
def _fields_of(model: type[BaseModel]) -> Mapping[str, _Known]:
    """By the name on the wire."""
    return {
        field.alias or name: _Known(field.is_required(), *_model_in(field.annotation))
        for name, field in model.model_fields.items()
    }


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The one model in *annotation*, and whether it is that of a mapping's values."""
    waiting, models, is_mapping = [annotation], set[type[BaseModel]](), False
    while waiting:
        here = waiting.pop()
        if isinstance(here, type) and issubclass(here, BaseModel):
            models.add(here)
        is_mapping = is_mapping or get_origin(here) is dict
        waiting += get_args(here)
    return (models.pop() if len(models) == 1 else None), is_mapping
