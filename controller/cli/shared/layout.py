"""How the commands print tables and fields.  No value is cut: what does not fit beside others gets lines of its own.

A table is printed where its names, codes and numbers fit whole; prose is wrapped between words.  Where they do not
fit, each row becomes a record: its head on as few lines as it takes, then a line for each other column.  A value that
is longer than the line is printed whole.
"""

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

#: A column of prose is not narrower than this, unless its text is; one that others follow is not wider than that.
_NARROWEST_PROSE, _WIDEST_PROSE = 20, 100
#: Between columns, and between a name and its value.
_GAP: Final = "  "
#: The space between a number and its unit, a command, and what stands for a space while lines are broken.
_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|s|ms|min|h|days|bytes/s|[kMG]B/s|msg/s)(?:\W|$))")
_COMMAND: Final = re.compile(r"`[^`]*`")
_TIE: Final = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    heading: str
    #: Text that may be wrapped between words; anything else is printed whole.
    prose: bool = False
    number: bool = False
    #: Cell -> Rich's style of it.
    styles: Mapping[str, str] = field(default_factory=dict)
    #: Makes the cell of a row that is not made of texts.
    cell: Callable[[Any], str] = str


def columns(*headings: str, prose: Sequence[str] = (), numbers: Sequence[str] = ()) -> list[Column]:
    """Columns with these *headings*, of which some are *prose* and some are *numbers*."""
    return [Column(heading=each, prose=each in prose, number=each in numbers) for each in headings]


def print_table(
    out: Console,
    header: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    head: int = 1,
    shared: int = 0,
) -> None:
    """Print *rows* under *header*: as a table, or as records whose first *head* cells are one line.

    Rows that follow each other and have the first *shared* cells in common are a group: a table shows these once.
    """
    cells = [list(row) for row in rows]
    widths = _widths(header, cells, out.width)
    if title:
        print_line(out, title, style="italic")
    if widths is None:
        for row in cells:
            _print_record(out, header, row, head)
        return
    _print_row(out, [column.heading for column in header], header, widths, style="bold")
    stroke = "-" if out.options.ascii_only else "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    _print_row(out, [stroke * min(width, _WIDEST_PROSE) for width in widths], header, widths)
    before: list[str] = []
    for number, row in enumerate(cells):
        same = shared > 0 and row[:shared] == before[:shared]
        if shared and number and not same:
            out.print()
        _print_row(out, [""] * shared + row[shared:] if same else row, header, widths)
        before = row


def print_fields(
    out: Console,
    fields: Iterable[tuple[str, str]],
    *,
    label: int = 0,
    indent: int = 0,
    whole: Collection[str] = (),
) -> None:
    """Print each field on a line: its name, padded to *label* characters, and its value, wrapped between words.

    The values of those named *whole* are not wrapped: what is to be copied must stay on one line.
    """
    pairs = list(fields)
    label = max([label, *(cell_len(name) for name, _ in pairs)])
    for name, value in pairs:
        first = f"{' ' * indent}{name}{' ' * (label - cell_len(name))}{_GAP}"
        if name in whole:
            out.print(Text(first + value), soft_wrap=True)
        else:
            print_line(out, value, first=first, rest=" " * cell_len(first))


def print_line(out: Console, text: str, *, first: str = "", rest: str = "", style: str = "") -> None:
    """Print *text* behind *first*, wrapped between words; its other lines stand behind *rest*."""
    for number, line in enumerate(_wrapped(text, out.width - max(cell_len(first), cell_len(rest)))):
        line_text = Text.assemble(first if number == 0 else rest, (line, style))
        line_text.rstrip()
        out.print(line_text, soft_wrap=True)


def _wrapped(text: str, width: int) -> list[str]:
    """*text* in lines of *width* characters, broken between words, but not before a unit and not in a command."""
    tied = _COMMAND.sub(lambda wrapped: wrapped[0].replace(" ", _TIE), _BEFORE_UNIT.sub(_TIE, text))
    lines = textwrap.wrap(tied, max(width, 1), break_long_words=False, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines] or [""]


def _widths(header: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """The width of each column in a table of *width* characters; None where they do not fit."""
    natural, least = [], []
    for column, texts in zip(header, _by_column(header, cells), strict=True):
        full = max(cell_len(text) for text in texts)
        words = max((cell_len(word) for text in texts for word in text.split()), default=0)
        highest = max(words, min(full, _WIDEST_PROSE)) if column.prose and column is not header[-1] else full
        natural.append(highest)
        least.append(max(words, min(full, _NARROWEST_PROSE)) if column.prose else full)
    remaining = width - len(_GAP) * (len(header) - 1) - sum(least)
    if remaining < 0:
        return None
    widths = list(least)
    wanting = sorted(range(len(header)), key=lambda place: natural[place] - least[place])
    for number, place in enumerate(wanting):
        more = min(natural[place] - least[place], remaining // (len(wanting) - number))
        widths[place] += more
        remaining -= more
    return widths


def _by_column(header: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[column.heading, *(row[place] for row in cells)] for place, column in enumerate(header)]


def _print_row(
    out: Console, cells: Sequence[str], header: Sequence[Column], widths: Sequence[int], *, style: str = ""
) -> None:
    """Print a row of a table, on as many lines as its longest prose takes."""
    wrapped = [
        _wrapped(cell, width) if column.prose else [cell]
        for column, cell, width in zip(header, cells, widths, strict=True)
    ]
    for number in range(max(map(len, wrapped))):
        line = Text()
        for column, cell, lines, width in zip(header, cells, wrapped, widths, strict=True):
            text = lines[number] if number < len(lines) else ""
            pad = " " * (width - cell_len(text))
            line.append(_GAP if column is not header[0] else "")
            line.append(pad + text if column.number else text + pad, style or column.styles.get(cell, ""))
        line.rstrip()
        out.print(line, soft_wrap=True)


def _print_head(out: Console, cells: Sequence[Text]) -> None:
    """Print *cells* on one line; those that do not fit stand on lines after it."""
    line = Text()
    for cell in cells:
        if line and line.cell_len + len(_GAP) + cell.cell_len > out.width:
            out.print(line, soft_wrap=True)
            line = Text(_GAP)
        elif line:
            line.append(_GAP)
        line.append_text(cell)
    out.print(line, soft_wrap=True)


def _print_record(out: Console, header: Sequence[Column], row: Sequence[str], head: int) -> None:
    named = list(zip(header, row, strict=True))
    _print_head(out, [Text(cell, style=column.styles.get(cell, "bold")) for column, cell in named[:head] if cell])
    label = max((cell_len(column.heading) for column in header[head:]), default=0)
    rest = [(column.heading, cell) for column, cell in named[head:] if cell]
    print_fields(out, rest, label=label, indent=len(_GAP))
