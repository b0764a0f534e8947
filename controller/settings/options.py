"""All options, as rows for `trimtab options` and the documentation."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from controller.settings.section import sections_in
from controller.settings.trimtab_toml import Settings
from controller.wire.attribute_docstrings import attribute_docstrings


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One option."""

    file: str
    key: str
    default: str
    unit: str
    meaning: str
    #: Who reads it: a strategy's class, or a section.
    of: str


def broker_conf_rows(classes: Iterable[type[Any]]) -> list[OptionRow]:
    """The options that *classes* read from broker.conf, by key; a shared option is one row with all its readers."""
    rows: dict[str, OptionRow] = {}
    for cls in classes:
        for field in fields(cls):
            if "broker_conf" not in field.metadata:
                continue
            key = field.metadata["broker_conf"]
            of = f"{rows[key].of}, {cls.__name__}" if key in rows else cls.__name__
            also = field.metadata["aliases"]
            rows[key] = OptionRow(
                file="broker.conf",
                key=key,
                default=_text(field.default),
                unit=field.metadata["unit"],
                meaning=field.metadata["meaning"] + (f" (also as {', '.join(also)})" if also else ""),
                of=of,
            )
    return [rows[key] for key in sorted(rows)]


def trimtab_toml_rows() -> list[OptionRow]:
    """The keys of trimtab.toml, in the order of its sections."""
    return list(_section_rows(Settings, ()))


def _section_rows(section: type[BaseModel], path: tuple[str, ...]) -> Iterator[OptionRow]:
    meanings = attribute_docstrings(section)
    for name, field in section.model_fields.items():
        nested = sections_in(field.annotation)
        if nested:
            rows: dict[str, OptionRow] = {}
            for kind in nested:  # variants share keys: the first one that has a key explains it
                for row in _section_rows(kind, (*path, name)):
                    rows.setdefault(row.key, row)
            yield from rows.values()
            continue
        yield OptionRow(
            file="trimtab.toml",
            key=".".join((*path, name)),
            default="" if field.default is PydanticUndefined else _text(field.default),
            unit="s" if name.endswith("_seconds") else "",
            meaning=" ".join((meanings.get(name) or field.description or "").split()),
            of=f"[{'.'.join(path)}]",
        )


def _text(value: object) -> str:
    """*value* as its file has it; "" for none."""
    if value is None:
        return ""
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, tuple) else str(value)
