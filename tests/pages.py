"""What the pages for users hold: blocks of text, command lines, and files."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
PAGES: Final = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
#: What begins a command line in a sentence, between backticks.
_TOOLS: Final = r"(?:\.venv/bin/)?trimtab|scripts/[a-z]+|pytest|python -m|pip|uv|pre-commit"
_BETWEEN: Final = {"&&", "||", "|", ";", "&"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: Path
    #: Of its first line.
    line: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """One command that a page shows."""

    #: File and line.
    where: str
    words: tuple[str, ...]
    #: In a block of its own, to be copied; else in a sentence, which may only name the command.
    to_copy: bool

    def __str__(self) -> str:
        return f"{self.where}: {shlex.join(self.words)}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of *page*."""
    language, began, held = "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            held.append(line)
        elif began:
            yield Block(page=page, line=began, language=language, lines=tuple(held))
            began = 0
        else:
            language, began, held = line.removeprefix("```").strip(), number + 1, []


def indented(page: Path) -> list[str]:
    """Lines that Markdown takes for a block although no fence says of which language they are."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"(?<=\n\n) {4,}(?![-*\d]).+", text)


def command_lines(page: Path) -> list[CommandLine]:
    """All commands that *page* shows."""
    return [*_in_blocks(page), *_in_sentences(page)]


def _in_blocks(page: Path) -> Iterator[CommandLine]:
    for block in blocks(page):
        if block.language in ("sh", "bash", "console"):
            for number, line in enumerate(block.lines, block.line):
                for words in _split(line):
                    yield CommandLine(where=f"{page.relative_to(ROOT)}:{number}", words=words, to_copy=True)


def _in_sentences(page: Path) -> Iterator[CommandLine]:
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(rf"`((?:{_TOOLS})(?: [^`]*)?)`", text):
        where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
        for words in _split(found[1]):
            yield CommandLine(where=where, words=words, to_copy=False)


def _split(line: str) -> list[tuple[str, ...]]:
    """The commands of a line of shell, without comments and redirections."""
    commands: list[list[str]] = [[]]
    words = iter(shlex.split(line, comments=True))
    for word in words:
        if word in _BETWEEN:
            commands.append([])
        elif word in (">", ">>", "2>"):
            next(words)
        elif word != "2>&1":
            commands[-1].append(word)
    return [tuple(command) for command in commands if command]


def write_files_of_page(page: Path, folder: Path) -> None:
    """Write the Python files of *page*, which their first lines name, and its broker.conf."""
    for block in blocks(page):
        if block.language == "python":
            file = folder / block.lines[0].removeprefix("# ")
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(block.lines[1:]) + "\n")
            if file.parent.name != "tests":
                (file.parent / "__init__.py").touch()
        elif block.language == "properties":
            (folder / "broker.conf").write_text("\n".join(block.lines) + "\n")
