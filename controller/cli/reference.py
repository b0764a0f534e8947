"""Writes docs/cli.md from the commands themselves: ``python -m controller.cli.reference``."""

from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

from typer import Context
from typer.core import TyperArgument, TyperGroup
from typer.main import get_command

from controller.cli.app import COMMANDS, app, loaded
from controller.cli.shared.common_options import COMMON
from controller.cli.shared.examples import EXAMPLES
from controller.cli.shared.failures import READER_GONE

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "done; or a command that runs until it is told to end was ended by SIGTERM or Ctrl-C",
    1: "it failed, and the last line on standard error says why; or a check found something: `doctor` an error (with"
    " `--strict` also a warning), `strategies check` a broken law, `rebalance --require-balance` an uneven end,"
    " `simulate` an expectation that is not met, `replay` a difference, `journal` and `explain` no such decision,"
    " `plan` that its deadline cannot be met, or that bundles stay on a broker that should be empty",
    2: "the command line or a setting is wrong, a log is another cluster's, the journal is lost or damaged, the"
    " checkpoint is damaged, a strategy fails, or a later release wrote journal or checkpoint: a person must fix it"
    " before the next start",
    3: "`decide`: a bundle would be moved or split",
    70: "the controller stood still although there was something to read: start it again",
    75: "the controller lost its leadership and cannot lead again: start it again",
    77: "a server refuses the credentials, or a right is missing: an administrator must fix it",
    130: "SIGTERM or Ctrl-C ended a command that would have ended by itself",
    READER_GONE: "the reader of the output ended first, such as `head` in `trimtab options | head`; nothing is wrong",
}


PAGE: Final = Path(__file__).parents[2] / "docs" / "cli.md"

_HEAD: Final = """\
# The command line

`python -m controller.cli.reference` writes this page from the commands; a test compares them.

Results go to standard output. Progress, logs and errors go to standard error. So these work:

```sh
trimtab options | less
trimtab status --json > status.json
trimtab commands tail --json --no-follow | head
```

## For all commands

- `trimtab --version` prints the version, the commit and Spark's version. `trimtab COMMAND --help` prints the
  options of a command.
- `trimtab --install-completion` installs completion for the shell that calls it (bash, zsh, fish, PowerShell);
  `trimtab --show-completion` prints the script. Start a new shell afterwards.
- `--quiet`, or `-q`, before or behind the command's name: no progress, and only warnings and errors in the log.
- `--debug`: the trace of an error, too.
- Long work shows a bar on a terminal. In a pipe or a file it prints a line now and then, with an estimate.
- Commands that print an answer take `--json`: `docs/schemas/answer.*.json` describes what they print then, and
  `trimtab.*.json` what `commands tail --json` prints.
- Tables fit the terminal: a value that does not fit gets lines of its own, and no name is cut. In a pipe or a file,
  lines are not wrapped, unless `COLUMNS` gives a width. Times are UTC.
- An input file may be `/dev/stdin`, or `<(command)` of a shell; but a process that runs until it is stopped reads its
  settings twice, so they must be in a regular file. A named pipe is refused, because nothing may ever write to it.
- Files have limits. A file written by hand (settings, a scenario, a group): 8 MiB, 100,000 tables and arrays; its first
  100 errors are reported. A load report: 64 MiB, and 8 MiB without blanks. Recorded load in files (`--load`, `ticks`):
  up to 1,000,000 records that cannot be used are skipped; with more, the load is refused.
- No command overwrites a file: a plan, an incident, a report, a recording and settings go to a new one.
- The environment variable `NO_COLOR` switches colours off.

## Logs

`trimtab run`, `collect` and `execute` log to standard error. The first line says version, role, cluster, mode, settings
and pid; the last line says that the process has ended, and why. After SIGTERM or Ctrl-C it has 1.5 s to finish the
work that it has begun; a second signal ends it at once, unless it is the same one within a second: `timeout`, some
shells and container runtimes send one to the process and another to its group. The end of the terminal (SIGHUP) counts
like SIGTERM, unless `nohup` started the command. Settings are read only at the start, so restart a process after a
change.

Spark's own log, with the traces of errors, goes to
files in the folder `spark.log_path`; by default that is `spark-logs` in the checkpoint's folder. Its errors, and the
warnings that an operator must know, also appear as one line each in trimtab's log. To see more of Spark, name a log4j2
configuration of your own: `SPARK_SUBMIT_OPTS=-Dlog4j2.configurationFile=...`.

## Exit codes

| code | meaning |
| --- | --- |
"""


def reference() -> str:
    """The text of docs/cli.md."""
    parts = [_HEAD + "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())]
    group = ""
    with Context(get_command(app), info_name="trimtab") as top:
        for name, listed in COMMANDS.items():
            if listed.group != group:
                group = listed.group
                parts.append(f"## {group}\n")
            parts += _command(loaded(name), name, top)
    return "\n".join(parts)


def write(page: Path = PAGE) -> None:
    """Write docs/cli.md."""
    page.write_text(reference(), encoding="utf-8")


def _command(command: Any, name: str, above: Any) -> Iterator[str]:
    """The section of *command*; of a group, a section for each of its commands."""
    with Context(command, info_name=name, parent=above) as context:
        words = context.command_path.partition(" ")[2]
        if isinstance(command, TyperGroup):
            for below in command.list_commands(context):
                yield from _command(command.commands[below], below, context)
            return
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        yield f"### {context.command_path}\n\n```text\n{usage}\n```\n\n{_text(command.help)}"
        if words in EXAMPLES:
            yield "".join(["```sh\n", *(f"{line}\n" for line in EXAMPLES[words]), "```\n"])
        own = [one for one in command.params if one not in COMMON]
        yield from _table("argument", (one for one in own if isinstance(one, TyperArgument)), context)
        yield from _table("option", (one for one in own if not isinstance(one, TyperArgument)), context)


def _table(heading: str, params: Iterable[Any], context: Any) -> Iterator[str]:
    rows = [record for one in params if (record := one.get_help_record(context)) is not None]
    lines = [f"| `{_cell(name)}` | {_cell(text)} |\n" for name, text in rows]
    if lines:
        yield "".join([f"| {heading} | meaning |\n| --- | --- |\n", *lines])


def _text(text: str | None) -> str:
    """A docstring: paragraphs, one line each."""
    paragraphs = cleandoc(text or "").split("\n\n")
    return "".join(f"{' '.join(each.split())}\n\n" for each in paragraphs).removesuffix("\n")


def _cell(text: str) -> str:
    """*text* in a cell, without the signs that keep Rich from reading brackets as markup."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    write()
