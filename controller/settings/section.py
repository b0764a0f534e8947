"""What every section of trimtab.toml is made of: strict, frozen, and without unknown keys."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo


def beside(path: str, info: ValidationInfo) -> str:
    """*path* as seen from the file it is written in; URIs stay as they are."""
    return path if "://" in path else str(Path(info.context or ".", path).resolve())


#: Relative paths start at the folder of the settings file.
PathText: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(beside)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """A section: each key is explained by the docstring below it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, use_attribute_docstrings=True
    )
