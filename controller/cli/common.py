"""What the commands share: the option --conf, the console and the log format."""

import logging
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

#: Width of the output to a file or a pipe, in characters: wide enough for every table.
WIDTH_OF_NO_TERMINAL: Final = 240
DEFAULT_CONF: Final = Path("conf/trimtab.toml")
_LOG_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"

#: The option --conf, as ``conf: Conf = DEFAULT_CONF``.
Conf: TypeAlias = Annotated[Path, typer.Option(help="The settings file.")]


def console(*, stderr: bool = False) -> Console:
    """A console on the terminal; for a file or a pipe, one of fixed width.

    Numbers and names are not coloured, so that colours keep their meaning.
    """
    found = Console(stderr=stderr, highlight=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH_OF_NO_TERMINAL)


def start_logging(*quiet: str) -> None:
    """Log to stderr at level INFO; the loggers named in *quiet* at level WARNING."""
    logging.basicConfig(level=logging.INFO, format=_LOG_LINE)
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)
