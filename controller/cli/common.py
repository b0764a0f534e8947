"""What the commands share: the option --conf, the console and the log lines."""

import logging
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

#: Columns of the output where it goes to a file or a pipe: wide enough that no table is cut.
WIDTH_OF_NO_TERMINAL: Final = 240
DEFAULT_CONF: Final = Path("conf/trimtab.toml")
_LOG_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"

#: The option --conf, as ``conf: Conf = DEFAULT_CONF``.
Conf: TypeAlias = Annotated[Path, typer.Option(help="The settings.")]


def console(*, stderr: bool = False) -> Console:
    """A console on the terminal, or of a fixed width where the output goes elsewhere.

    Numbers and names are not coloured: what has a colour means something.
    """
    found = Console(stderr=stderr, highlight=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH_OF_NO_TERMINAL)


def start_logging(*quiet: str) -> None:
    """Log to stderr from INFO on; the loggers named in *quiet* from WARNING on."""
    logging.basicConfig(level=logging.INFO, format=_LOG_LINE)
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)
