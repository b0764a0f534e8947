"""Answers as tables: what the models say of their fields is how they are printed."""

from typing import Annotated

import pytest

from controller.cli.shared.answers import fields_of, print_answers, show
from controller.cli.shared.console import captured
from controller.cli.shared.layout import Column
from controller.wire.answers.base import JsonAnswer, Moment, Shown


class MoveAnswer(JsonAnswer):
    interval: Moment
    bundle: str
    source: Annotated[str, Shown(heading="from")]
    msg_rate: Annotated[float | None, Shown(heading="msg/s", form=",.1f")]
    clients: int


MOVES = [
    MoveAnswer(interval=60_000, bundle="acme/a/0x0", source="broker-1", msg_rate=1234.56, clients=1200),
    MoveAnswer(interval=120_000, bundle="acme/b/0x0", source="broker-2", msg_rate=None, clients=3),
]


def table(*parts: str | Column, **options: object) -> list[list[str]]:
    header = fields_of(MoveAnswer, *parts)
    text = captured(200, lambda out: print_answers(out, header, MOVES, **options))  # type: ignore[arg-type]
    return [line.split() for line in text.splitlines() if line and "─" not in line]


def test_headings_and_forms_are_those_of_the_fields() -> None:
    assert table("interval", "bundle", "source", "msg_rate", "clients") == [
        ["interval", "bundle", "from", "msg/s", "clients"],
        ["1970-01-01T00:01:00Z", "acme/a/0x0", "broker-1", "1,234.6", "1,200"],
        ["1970-01-01T00:02:00Z", "acme/b/0x0", "broker-2", "3"],
    ]


def test_numbers_stand_at_the_right_of_their_column_and_times_at_the_left() -> None:
    columns = fields_of(MoveAnswer, "interval", "msg_rate", "clients", "bundle")
    assert [column.number for column in columns] == [False, True, True, False]


def test_a_column_may_be_made_by_hand() -> None:
    where = Column(heading="where", cell=lambda move: f"{move.source}!")
    assert table("bundle", where)[1] == ["acme/a/0x0", "broker-1!"]


@pytest.mark.parametrize(
    ("options", "last"),
    [
        ({"limit": 1}, "and 1 more: --most 2, or --json, lists all"),
        ({"limit": 1, "rest": "--all"}, "and 1 more: --all"),
        ({"limit": 1, "total": 12_001}, "and 12,000 more: --most 12001, or --json, lists all"),
    ],
)
def test_of_many_rows_it_is_said_how_many_are_left_out_and_how_to_see_them(
    options: dict[str, object], last: str
) -> None:
    rows = table("bundle", **options)
    assert len(rows) == 3
    assert " ".join(rows[-1]) == last


def test_without_rows_nothing_is_printed() -> None:
    assert table("bundle", limit=0) == []


def test_a_mapping_has_the_names_of_its_rows() -> None:
    rows = dict(zip(("first", "second"), MOVES, strict=True))
    text = captured(200, lambda out: print_answers(out, fields_of(MoveAnswer, "clients"), rows))
    assert [line.split() for line in text.splitlines()[2:4]] == [["first", "1,200"], ["second", "3"]]


def test_for_a_program_each_answer_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(MOVES, lambda _: pytest.fail("nothing is printed for a person"), as_json=True)
    first, second = capsys.readouterr().out.splitlines()
    assert '"msgRate":1234.56' in first
    assert '"bundle":"acme/b/0x0"' in second


def test_an_answer_is_made_of_the_attributes_of_an_object_and_of_what_is_given() -> None:
    moved = MoveAnswer.from_object(MOVES[0], bundle="acme/c/0x0")
    assert moved == MOVES[0].model_copy(update={"bundle": "acme/c/0x0"})
    with pytest.raises(ValueError, match="clients"):
        MoveAnswer.from_object(object(), interval=0, bundle="", source="", msg_rate=None)
