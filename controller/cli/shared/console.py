"""What the commands share: the option --conf, the console and the log format."""

import errno
import logging
import os
import shlex
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from controller.adapters import long_work
from controller.cli.shared.failures import harmless, traces_are_shown
from controller.cli.shared.log_format import LogFormat, formatter

#: Width of the output to a file or a pipe, in characters, unless COLUMNS says another: lines are as long as they are.
_UNLIMITED: Final = 1_000_000
#: Seconds: a day; the longest interval of a recording.
LONGEST_PERIOD: Final = 86_400
DEFAULT_CONF: Final = Path("conf/trimtab.toml")

#: The option --conf, as ``conf: Conf = DEFAULT_CONF``.
Conf: TypeAlias = Annotated[Path, typer.Option(help="The settings file.")]


def command_line(*words: str | Path, conf: Path = DEFAULT_CONF) -> str:
    """``trimtab`` with *words* and the settings *conf*, as a shell takes it: for what is to be run next."""
    of_conf = () if conf == DEFAULT_CONF else ("--conf", conf)
    return shlex.join(map(str, ("trimtab", *words, *of_conf)))


class _Console(Console):
    """Rich's console, which leaves a reader that has ended to controller.cli.shared.failures; shows texts, no more."""

    def on_broken_pipe(self) -> None:
        """See Console."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """See Console: nothing that is shown steers the terminal, but for Rich's own colours and cursor."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))


def json_option(schema: str, each: str = "") -> Any:
    """The option --json of a command that prints what *schema* describes: once, or a line for *each* of several."""
    what = f"a line of JSON for each {each}" if each else "one JSON object"
    return typer.Option("--json", help=f"Print {what}: docs/schemas/{schema}.json.")


def console() -> Console:
    """A console as wide as the terminal, or as COLUMNS says; for a file or a pipe without COLUMNS, of unlimited width.

    Numbers and names are not coloured, so that colours keep their meaning.
    """
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) > 0 else None
    created = _Console(highlight=False, width=width)
    if width is None and not created.is_terminal:
        return _Console(highlight=False, width=_UNLIMITED)
    return created


def captured(width: int, write: Callable[[Console], object]) -> str:
    """What *write* prints to a console of *width* characters, without colours."""
    text = StringIO()
    write(_Console(highlight=False, width=width, file=text))
    return text.getvalue()


def start_logging(*chatty: str, quiet: bool = False, form: LogFormat = LogFormat.TEXT) -> None:
    """Log to stderr at level INFO, or WARNING after --quiet; the loggers named in *chatty* at level WARNING.

    Times are UTC, as in all that trimtab prints.  What a process has set first holds: *form*, too.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(form))
    level = logging.WARNING if quiet or long_work.is_quiet() else logging.INFO
    logging.basicConfig(level=level, handlers=[handler])
    for name in chatty:
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of each connection that is closed since enough of them are kept open; callers tell what fails.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    # py4j logs what a callback raised; the sink that raised it, or the end of the query, says what happened.
    logging.getLogger("py4j").setLevel(logging.WARNING if traces_are_shown() else logging.CRITICAL)
