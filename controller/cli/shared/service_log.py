"""The first and the last line in the log of a command that runs until it is told to end.

The first line comes before the command's own modules are loaded, which takes a second or more.
"""

import logging
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from controller.cli.shared.common_options import own_version
from controller.cli.shared.console import DEFAULT_CONF, start_logging
from controller.cli.shared.log_format import format_in, option_in
from controller.settings.small_file import read_tables

log = logging.getLogger("trimtab")

#: Command -> its part in a cluster.
ROLES: Final[Mapping[str, str]] = {"run": "controller", "collect": "collector", "execute": "executor", "serve": "page"}
#: Words after which a command does not start.
_ASKS: Final = {"--help", "--version", "--install-completion", "--show-completion"}
_QUIET: Final = {"--quiet", "-q"}


def first_line(words: Sequence[str]) -> bool:
    """Log what starts, where *words* are those of such a command; says whether they are.

    Nothing is checked here: where the settings cannot be read, the command itself says why.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if command not in ROLES or _ASKS & set(words):
        return False
    start_logging(quiet=bool(_QUIET & set(words)), form=format_in(words))
    conf = Path(option_in(words, "--conf") or DEFAULT_CONF)
    values = _values(conf)
    log.info(
        "trimtab %s starts as %s of cluster %s, mode %s, settings %s, pid %d",
        own_version(),
        ROLES[command],
        _of(values, "cluster", "name", "unknown"),
        _mode(command, words, values),
        conf,
        os.getpid(),
    )
    return True


def last_line(exit_code: int) -> None:
    """Log the end of a command that no signal and no error has ended."""
    log.info("ended: %s, exit code %d", "done" if not exit_code else "see above", exit_code)


def _values(conf: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(read_tables(conf).decode())
    except (OSError, ValueError, RecursionError):
        return {}


def _of(values: Mapping[str, Any], section: str, key: str, default: Any) -> Any:
    value = values.get(section)
    return value.get(key, default) if isinstance(value, Mapping) else default


def _mode(command: str, words: Sequence[str], values: Mapping[str, Any]) -> str:
    if command == "run":
        return f"{_of(values, 'decisions', 'mode', 'dry_run')} unless `trimtab mode` has set another"
    if command == "serve":
        return "with changes by people" if _of(values, "web", "writes", False) else "read-only"
    if command == "execute":
        return "dry_run" if _of(values, "executor", "dry_run", False) else "that of each command"
    return "dry_run" if "--dry-run" in words else "once" if "--once" in words else "continuous"
