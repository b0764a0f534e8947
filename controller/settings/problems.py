"""What is wrong with a file of settings, in words that name key, value and what is allowed, but no secret."""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from controller.settings.shown import shown

#: Errors about what stands where a section or a table belongs: it could be anything, so it is not shown.
_NO_TABLE: Final = {"model_type", "model_attributes_type", "dict_type"}


def problems(error: ValidationError, settings: type[BaseModel]) -> Iterator[str]:
    """A line for each thing that *error* says about *settings*."""
    for details in error.errors(include_url=False):
        yield _problem(details, settings)


def _problem(error: ErrorDetails, settings: type[BaseModel]) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{key} is missing"
    if error["type"] == "extra_forbidden":
        # Misspelt, it may be anything, a password too: only a number or a switch is shown.
        value = error["input"]
        told = f"{key} = {shown(error['loc'], value)}" if isinstance(value, int | float) else key
        return f"{told}: unknown key; allowed: {', '.join(_known(error['loc'][:-1], settings))}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in _NO_TABLE:
        return f"{key}: a section or a table belongs here, [{key}]"
    if isinstance(error["input"], dict):
        return f"[{key}] {message}"
    return f"{key} = {shown(error['loc'], error['input'])}: {message}"


def _known(path: tuple[int | str, ...], settings: type[BaseModel]) -> list[str]:
    """The keys allowed in the section at *path*."""
    section: Any = settings
    for name in path:
        annotation = section.model_fields[str(name)].annotation
        section = next(kind for kind in (annotation, *getattr(annotation, "__args__", ())) if _is_section(kind))
    return list(section.model_fields)


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
