"""Messages about errors in a settings file: key, value and what is allowed, without secrets."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from controller.settings.redaction import printable_value
from controller.settings.section import sections_in

#: Error types of a missing section or table.  The value there is not shown, since it may hold secrets.
_NO_TABLE: Final = {"model_type", "model_attributes_type", "dict_type"}


#: Maximum number of errors of a file that are reported.
_MOST_PROBLEMS: Final = 100


def lines_of(path: Path, problems: Sequence[str]) -> str:
    """*problems* of the file *path*, a line each; of many, how many more there are."""
    more = [f"{len(problems) - _MOST_PROBLEMS:,} more"] if len(problems) > _MOST_PROBLEMS else []
    return "\n".join(f"{path}: {problem}" for problem in (*problems[:_MOST_PROBLEMS], *more))


class _Place(NamedTuple):
    """The place of an error in the file."""

    #: The keys from the top of the file down.
    keys: tuple[str, ...]
    #: The section that the last key belongs to.
    section: type[BaseModel]
    #: The key and value that chose this variant of the section, as "kind is 'kafka'"; "" without variants.
    choice: str


def problems(error: ValidationError, settings: type[BaseModel]) -> Iterator[str]:
    """One line for each error in *error* about *settings*."""
    errors = error.errors(include_url=False)
    wrong_inside = {details["loc"][:length] for details in errors for length in range(len(details["loc"]))}
    for details in errors:
        # pydantic counts only items without an error: an array of wrong items is "too short" as well.
        if details["type"] != "too_short" or details["loc"] not in wrong_inside:
            yield _problem(details, settings)


def _problem(error: ErrorDetails, settings: type[BaseModel]) -> str:
    place, value = _place(error["loc"], settings), error["input"]
    key = ".".join(place.keys)
    match error["type"]:
        case "missing" if place.choice and sections_in(place.section.model_fields[place.keys[-1]].annotation):
            return f"[{'.'.join(place.keys[:-1])}] {place.choice}, so a section [{key}] is needed"
        case "missing":
            return f"{key} is missing"
        case "union_tag_not_found":
            return f"{key}.{_discriminator(error)} is missing"
        case "union_tag_invalid":
            name = _discriminator(error)
            allowed = error["ctx"]["expected_tags"].replace(", ", " or ")
            return f"{key}.{name} = {printable_value((*place.keys, name), value[name])}: Input should be {allowed}"
        case "extra_forbidden":
            # The value of a misspelt key may be a password: only numbers and booleans are shown.
            text = f"{key} = {printable_value(place.keys, value)}" if isinstance(value, int | float) else key
            return f"{text}: unknown key; allowed: {', '.join(place.section.model_fields)}"
    message = _in_words_of_toml(error["msg"].removeprefix("Value error, "))
    if error["type"] in _NO_TABLE:
        return f"{key}: expected a section or a table, [{key}]"
    if isinstance(value, dict):
        return f"[{key}] {message}" if key else message
    return f"{key} = {printable_value(place.keys, value)}: {message}"


def _in_words_of_toml(message: str) -> str:
    return message.replace(" after validation", "").replace("valid tuple", "valid array").replace("Tuple ", "Array ")


def _discriminator(error: ErrorDetails) -> str:
    """The key that chooses between the variants of a section."""
    return str(error["ctx"]["discriminator"]).strip("'")


def _place(location: tuple[int | str, ...], settings: type[BaseModel]) -> _Place:
    """Pydantic's *location* without the names of variants, which pydantic adds after a key with variants."""
    names = iter(location)
    keys: list[str] = []
    section, choice = settings, ""
    #: The section that the next key belongs to.
    inner: tuple[type[BaseModel], ...] = (settings,)
    chosen = ""
    for name in names:
        keys.append(str(name))
        if not inner or isinstance(name, int):
            continue  # inside a value, or the number of a section in an array of sections
        section, choice = inner[0], chosen
        field = section.model_fields.get(str(name))
        inner, chosen = (() if field is None else sections_in(field.annotation)), ""
        if field is not None and isinstance(field.discriminator, str):
            tag = next(names, None)
            inner = tuple(kind for kind in inner if _is_variant(kind, field.discriminator, tag))
            chosen = f"{field.discriminator} is {tag!r}"
    return _Place(tuple(keys), section, choice)


def _is_variant(section: type[BaseModel], discriminator: str, tag: object) -> bool:
    allowed: Any = getattr(section.model_fields[discriminator].annotation, "__args__", ())
    return tag in allowed
