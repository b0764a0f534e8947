"""The base of every section of trimtab.toml: strict, frozen, and without unknown keys."""

import re
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Self, TypeAlias, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from controller.settings.redaction import has_userinfo

#: Of any number in the settings; 300 years in seconds.  Times in ms, bytes, and intervals as times stay below 2^63.
MOST_OF_ANYTHING: Final = 10_000_000_000
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_uri(path: str) -> bool:
    """Whether *path* is a URI of another file system: s3a://bucket/path, hdfs:/path ..."""
    return _URI.match(path) is not None


def beside(path: str, info: ValidationInfo) -> str:
    """*path* relative to the folder of the settings file; URIs stay as they are."""
    return path if is_uri(path) else str(Path(info.context or ".", path).resolve())


#: A path; relative ones start at the folder of the settings file.
PathText: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(beside)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]


def _names_nobody(url: str) -> str:
    if has_userinfo(url):
        raise ValueError("it holds a user or a password, which errors and logs would show: put them into a file")
    return url


#: The URL or address of a server, without user and password.
Url: TypeAlias = Annotated[str, AfterValidator(_names_nobody)]


class Section(BaseModel):
    """A section: each key is explained by the docstring below it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_default=True,
        # Otherwise a section's error would show all of its values, secrets too.
        hide_input_in_errors=True,
    )

    @model_validator(mode="after")
    def _has_numbers_to_reckon_with(self) -> Self:
        for key in type(self).model_fields:
            value = getattr(self, key)
            if isinstance(value, int | float) and not -MOST_OF_ANYTHING <= value <= MOST_OF_ANYTHING:
                raise ValueError(f"{key} is too large: allowed is {MOST_OF_ANYTHING} at most")
        return self


def sections_in(annotation: Any) -> tuple[type[BaseModel], ...]:
    """The sections that a key with this *annotation* may hold, also in an array; none where it holds a value."""
    parts = isinstance(annotation, UnionType) or get_origin(annotation) is tuple
    kinds = get_args(annotation) if parts else (annotation,)
    return tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
