"""Writes manual pages and completions of shells: ``python -m controller.cli.manual FOLDER``.

    FOLDER/man1/trimtab.1, trimtab-run.1 ...                 for /usr/share/man
    FOLDER/bash/trimtab, zsh/_trimtab, fish/trimtab.fish     for the folders in which shells look for completions

Both come from the commands themselves.  The same commands give the same files, whenever and wherever that is.
"""

import re
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

from typer import Context
from typer._completion_shared import get_completion_script
from typer.core import TyperArgument, TyperGroup
from typer.main import get_command

from controller.cli.app import COMMANDS, app, loaded
from controller.cli.reference import EXIT_CODES
from controller.cli.shared.common_options import COMMON, own_version
from controller.cli.shared.examples import EXAMPLES

#: Commands that need a checkout have no page: packages do not hold them.
_IN_CHECKOUTS: Final = frozenset({"bench"})
#: Shell -> the file of its completions.
_COMPLETIONS: Final = {"bash": "bash/trimtab", "zsh": "zsh/_trimtab", "fish": "fish/trimtab.fish"}
_CODE: Final = re.compile(r"`([^`]+)`")
_ALSO: Final = "The documentation of trimtab, docs/index.md in its sources, says how to install and to operate it."


def files() -> dict[str, str]:
    """Path below the folder -> content."""
    contents = {f"man1/{name}.1": page for name, page in _pages()}
    for shell, path in _COMPLETIONS.items():
        script = get_completion_script(prog_name="trimtab", complete_var="_TRIMTAB_COMPLETE", shell=shell)
        contents[path] = f"{script}\n"
    return contents


def write(folder: Path) -> None:
    """Write all files below *folder*."""
    for path, content in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")


def _pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    names = [name for name in COMMANDS if name not in _IN_CHECKOUTS]
    with Context(get_command(app), info_name="trimtab") as top:
        yield "trimtab", _overview(names, top)
        for name in names:
            command = loaded(name)
            parts = [_head(f"trimtab-{name}", COMMANDS[name].help), *_sections(command, name, top)]
            also = ", ".join(["\\fBtrimtab\\fR(1)", *_related(name)])
            yield f"trimtab-{name}", "".join([*parts, ".SH SEE ALSO\n", f"{also}\n"])


def _related(name: str) -> list[str]:
    group = COMMANDS[name].group
    others = [each for each in COMMANDS if COMMANDS[each].group == group and each not in (name, *_IN_CHECKOUTS)]
    return [f"\\fBtrimtab\\-{_roff(each)}\\fR(1)" for each in others]


def _overview(names: Iterable[str], top: Any) -> str:
    parts = [_head("trimtab", "balance Apache Pulsar from outside"), ".SH SYNOPSIS\n"]
    parts.append("\\fBtrimtab\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]\n.SH DESCRIPTION\n")
    parts.append(_paragraphs(app.registered_callback.callback.__doc__))  # type: ignore[union-attr]
    group = ""
    for name in names:
        if COMMANDS[name].group != group:
            group = COMMANDS[name].group
            parts.append(f".SH {_roff(group.upper())}\n")
        parts.append(f".TP\n\\fBtrimtab\\-{_roff(name)}\\fR(1)\n{_line(COMMANDS[name].help)}\n")
    parts += _listed("OPTIONS", top.command.params, top)
    parts.append(".SH EXIT STATUS\n")
    parts += [f".TP\n.B {code}\n{_line(meaning)}\n" for code, meaning in EXIT_CODES.items()]
    parts.append(".SH FILES\n.TP\n.I conf/trimtab.toml\nThe settings, unless \\fB\\-\\-conf\\fR names others.\n")
    return "".join([*parts, f".SH SEE ALSO\n{_line(_ALSO)}\n"])


def _head(name: str, text: str) -> str:
    version = f"trimtab {own_version()}"
    # Without a date: the page is the same whenever it is made.
    title = f'.TH {_roff(name.upper())} 1 "" "{_roff(version)}" "trimtab"\n'
    return f"{title}.SH NAME\n{_roff(name)} \\- {_line(text).rstrip('.')}\n"


def _sections(command: Any, name: str, above: Any) -> Iterator[str]:
    """Synopsis, description, arguments and options of *command*; of a group, those of each of its commands."""
    with Context(command, info_name=name, parent=above) as context:
        if isinstance(command, TyperGroup):
            for below in command.list_commands(context):
                yield from _sections(command.commands[below], below, context)
            return
        usage = " ".join(command.collect_usage_pieces(context))
        yield f".SH SYNOPSIS\n\\fB{_roff(context.command_path)}\\fR {_roff(usage)}\n"
        yield f".SH DESCRIPTION\n{_paragraphs(command.help)}"
        own = [one for one in command.params if one not in COMMON]
        yield from _listed("ARGUMENTS", (one for one in own if isinstance(one, TyperArgument)), context)
        yield from _listed("OPTIONS", (one for one in own if not isinstance(one, TyperArgument)), context)
        examples = EXAMPLES.get(context.command_path.partition(" ")[2], ())
        if examples:
            yield "".join([".SH EXAMPLES\n.nf\n", *(f"{_roff(line)}\n" for line in examples), ".fi\n"])


def _listed(heading: str, params: Iterable[Any], context: Any) -> Iterator[str]:
    rows = [record for one in params if (record := one.get_help_record(context)) is not None]
    if rows:
        yield f".SH {heading}\n"
    for name, text in rows:
        yield f".TP\n\\fB{_roff(' '.join(name.split()))}\\fR\n{_line(text)}\n"


def _paragraphs(text: str | None) -> str:
    return "".join(f".PP\n{_line(each)}\n" for each in cleandoc(text or "").split("\n\n"))


def _line(text: str) -> str:
    """*text* on one line, with what stands between backticks in bold."""
    parts = _CODE.split(" ".join(text.split()))
    return _not_a_request("".join(f"\\fB{_roff(part)}\\fR" if at % 2 else _roff(part) for at, part in enumerate(parts)))


def _not_a_request(line: str) -> str:
    """*line*, which roff does not take for a request of its own."""
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _roff(text: str) -> str:
    """*text*, in which nothing has a meaning for roff."""
    return _not_a_request(text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga"))


def main() -> None:
    """Write them where the command line says."""
    parser = ArgumentParser(prog="python -m controller.cli.manual", description="Write manual pages and completions.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where they are written; it is made if need be")
    folder = parser.parse_args().folder
    try:
        write(folder)
    except OSError as error:
        parser.error(f"{error.filename or folder}: {error.strerror}")


if __name__ == "__main__":
    main()
