"""Tables, fields and lines: nothing is cut, at any width."""

import io

import pytest
from rich.console import Console

from controller.cli.shared.console import console
from controller.cli.shared.layout import columns, print_fields, print_line, print_table

BUNDLE = "tenant/a-rather-long-namespace/0x00000000_0x40000000"
BROKER = "pulsar-broker-0.pulsar-broker.pulsar.svc.cluster.local:8080"
HEADER = columns("do", "bundle", "from", "share", "because", prose=("because",), numbers=("share",))
ROWS = [("unload", BUNDLE, BROKER, "74 %", "the broker is overloaded"), ("split", "t/n/0x00", "b:1", "5 %", "")]


def at(width: int) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=width, highlight=False), file


def table(width: int, **options: int) -> list[str]:
    out, file = at(width)
    print_table(out, HEADER, ROWS, **options)  # type: ignore[arg-type]
    return file.getvalue().splitlines()


def test_a_table_has_its_columns_below_their_headings() -> None:
    first, rule, one, two = table(200)
    assert first.split() == ["do", "bundle", "from", "share", "because"]
    assert set(rule) <= {"─", " "}
    assert first.index("bundle") == one.index(BUNDLE) == two.index("t/n/0x00")
    assert one.index("74 %") + len("74 %") == two.index("5 %") + len("5 %") == first.index("share") + len("share")


def test_only_prose_is_wrapped_and_only_between_words() -> None:
    lines = table(len(f"unload  {BUNDLE}  {BROKER}  share  ") + 20)
    assert [line for line in lines if BUNDLE in line and BROKER in line and "74 %" in line]
    assert "overloaded" in lines[3].split()
    assert max(map(len, lines)) <= len(f"unload  {BUNDLE}  {BROKER}  share  ") + 20


@pytest.mark.parametrize("width", [20, 40, 80, 140])
def test_what_does_not_fit_becomes_records_in_which_every_name_is_whole(width: int) -> None:
    lines = table(width)
    assert lines[0] == "unload"
    assert f"  bundle   {BUNDLE}" in lines
    assert f"  from     {BROKER}" in lines
    assert "  because  the broker is overloaded" in lines or width < 40
    assert not [line for line in lines if "…" in line]


def test_a_record_leaves_out_what_is_empty_and_begins_with_its_head() -> None:
    lines = table(60, head=2)
    assert lines[0] == f"unload  {BUNDLE}"
    assert lines[-3:] == ["split  t/n/0x00", "  from     b:1", "  share    5 %"]


def test_rows_of_a_group_show_what_they_share_once() -> None:
    out, file = at(80)
    rows = [("1", "0 s", "a"), ("1", "0 s", "b"), ("2", "0 s", "a")]
    print_table(out, columns("no", "at", "member"), rows, shared=2)
    assert [line.split() for line in file.getvalue().splitlines()[2:]] == [
        ["1", "0", "s", "a"],
        ["b"],
        [],
        ["2", "0", "s", "a"],
    ]


def test_signs_that_rich_reads_as_markup_are_printed() -> None:
    out, file = at(80)
    print_table(out, columns("[bold]", "what"), [("[/chroot]", "[pulsar]")], title="[x]")
    print_fields(out, [("[a]", "[b]")])
    print_line(out, "[red]", first="[y] ")
    for text in ("[bold]", "[/chroot]", "[pulsar]", "[x]", "[a]", "[b]", "[red]", "[y]"):
        assert text in file.getvalue()


def test_values_stand_below_each_other_and_go_on_below_their_beginning() -> None:
    out, file = at(30)
    print_fields(out, [("owner", "nobody until a client looks up"), ("in", BROKER)], label=6)
    assert file.getvalue().splitlines() == [
        "owner   nobody until a client",
        "        looks up",
        f"in      {BROKER}",
    ]


def test_a_number_is_not_parted_from_its_unit() -> None:
    out, file = at(20)
    print_line(out, "18 unloads in 3600 s, usage 74 % against 52 % now")
    assert file.getvalue().splitlines() == ["18 unloads in", "3600 s, usage 74 %", "against 52 % now"]


def test_a_pipe_has_lines_as_long_as_they_are_and_columns_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width > 100_000
    monkeypatch.setenv("COLUMNS", "80")
    assert console().width == 80
    for nonsense in ("0", "wide", ""):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert console().width > 100_000


def test_a_command_stays_on_one_line() -> None:
    out, file = at(30)
    print_line(out, "it is paused: run `trimtab resume --conf 'my own.toml'` then")
    assert file.getvalue().splitlines() == ["it is paused: run", "`trimtab resume --conf 'my own.toml'`", "then"]


def test_of_the_head_of_a_record_what_does_not_fit_stands_on_the_next_line() -> None:
    lines = table(70, head=3)
    assert lines[:3] == [f"unload  {BUNDLE}", f"  {BROKER}", "  share    74 %"]
    assert table(20, head=3)[:3] == ["unload", f"  {BUNDLE}", f"  {BROKER}"]
