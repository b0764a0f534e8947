"""Prints answers: as JSON, or as tables whose columns are described by the answers' models (Shown)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

import typer
from rich.console import Console

from controller.cli.shared.console import console
from controller.cli.shared.layout import Column, print_line, print_table
from controller.wire.answers.base import JsonAnswer, Shown


def show(answers: JsonAnswer | Iterable[JsonAnswer], print_them: Callable[[Console], object], *, as_json: bool) -> None:
    """Print *answers* for a program, a line each, or have *print_them* print them for a person."""
    if not as_json:
        print_them(console())
        return
    for one in [answers] if isinstance(answers, JsonAnswer) else answers:
        typer.echo(one.as_line())


def fields_of(model: type[JsonAnswer], *parts: str | Column) -> list[Column]:
    """Columns for answers of *model*: its fields by name, and columns that are made by hand."""
    return [part if isinstance(part, Column) else _of_field(model, part) for part in parts]


def _of_field(model: type[JsonAnswer], name: str) -> Column:
    field = model.model_fields[name]
    columns = [each for each in field.metadata if isinstance(each, Shown)]
    form = next((each.form for each in columns if each.form), "," if _is_number(field.annotation) else "")

    def cell(answer: Any) -> str:
        value = getattr(answer, name)
        if value is None:
            return ""
        return form(value) if callable(form) else format(value, form)

    return Column(
        heading=next((each.heading for each in columns if each.heading), name.replace("_", " ")),
        prose=any(each.prose for each in columns),
        number=_is_number(field.annotation) and not any(each.is_text for each in columns),
        cell=cell,
    )


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_is_number, get_args(annotation)))


def print_answers(
    out: Console,
    header: Sequence[Column],
    answers: Sequence[Any] | Mapping[str, Any],
    *,
    title: str = "",
    head: int = 1,
    limit: int | None = None,
    total: int = 0,
    rest: str = "",
) -> None:
    """Print *limit* of *answers* as the rows of a table, and an empty line; nothing where there are none.

    A mapping has the name of each row.  *total*: how many there are in all.  *rest*: the option that prints those that
    are left out.
    """
    rows = [[column.cell(each) for column in header] for each in _values(answers)[:limit]]
    if not rows:
        return
    if isinstance(answers, Mapping):
        header = [Column(heading=""), *header]
        rows = [[name, *row] for name, row in zip(answers, rows, strict=False)]
    print_table(out, header, rows, title=title, head=head)
    hidden = max(total, len(answers)) - len(rows)
    if hidden > 0:
        print_line(out, f"and {hidden:,} more: {rest or f'--most {hidden + len(rows)}, or --json, lists all'}")
    out.print()


def _values(answers: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any]:
    return list(answers.values()) if isinstance(answers, Mapping) else answers
