"""The options that every command has: ``--quiet`` and ``--debug``; and that ``trimtab`` alone has: ``--version``.

And what holds for the options of every command: a path is not empty.
"""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_args

import typer
from typer.core import TyperGroup

from controller.adapters import long_work
from controller.adapters.disk.commit import commit
from controller.cli.shared import failures
from controller.cli.shared.examples import EXAMPLES


def own_version() -> str:
    """The version of trimtab that is installed."""
    return version("trimtab")


def made_of() -> str:
    """The version, the commit and Spark's version, as ``--version`` prints them."""
    try:
        spark = f"Spark {version('pyspark')}"
    except PackageNotFoundError:
        spark = "no Spark"
    return f"trimtab {own_version()} (commit {commit() or 'unknown'}, {spark})"


def _set_quiet(quiet: bool) -> None:
    long_work.set_quiet(quiet)


def _add_quiet(quiet: bool) -> None:
    if quiet:  # else what was said before the command's name holds
        long_work.set_quiet(True)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(made_of())
        raise typer.Exit


_QUIET_HELP = "Show no progress, and log only warnings and errors."

#: Of ``trimtab`` itself; takes back what an earlier call in the same process has set.
QuietBefore: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help=_QUIET_HELP, expose_value=False, callback=_set_quiet)
]
QuietBehind: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help=_QUIET_HELP, expose_value=False, callback=_add_quiet)
]
#: For the trace of an error; it may stand before the command's name and behind it.
Debug: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--debug", help="Print the trace of an error, too.", callback=failures.show_traces, expose_value=False
    ),
]
Version: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--version",
        help="Print the version, the commit and Spark's version, and exit.",
        expose_value=False,
        is_eager=True,
        callback=_print_version,
    ),
]


def with_common_options(command: Any, path: str) -> Any:
    """*command*, as Typer runs it, where it, or each command below it, also takes the common options.

    *path* are the words that call it; its help ends with its examples.

    Its help is plain text: Rich's tables would cut long names, and read [pulsar] as markup.
    """
    command.rich_markup_mode = None
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            with_common_options(below, f"{path} {name}")
    else:
        for each in command.params:
            if Path in (each.type_descriptor.annotation, *get_args(each.type_descriptor.annotation)):
                _refuse_empty(each)
        command.params.extend(COMMON)
        # The first character keeps the lines from being wrapped as one paragraph.
        lines = "\n".join(f"  {line}" for line in EXAMPLES.get(path, ()))
        command.epilog = f"\b\nExamples:\n{lines}" if lines else None
    return command


def _refuse_empty(path: Any) -> None:
    """Have the parameter *path* refuse an empty text, which Python takes for the current folder."""
    process = path.process_value

    def checked(ctx: Any, value: Any) -> Any:
        if "" in (value if isinstance(value, list | tuple) else (value,)):
            raise typer.BadParameter("an empty path; the current folder is .", ctx=ctx, param=path)
        return process(ctx, value)

    path.process_value = checked


def _only_options(quiet: QuietBehind = False, debug: Debug = False) -> None:
    """Holds the options for ``COMMON``."""


def _made() -> tuple[Any, ...]:
    holder = typer.Typer(add_completion=False)
    holder.command()(_only_options)
    return tuple(typer.main.get_command(holder).params)


#: The options that each command has beside its own, as Typer's parameters.
COMMON: Final = _made()
