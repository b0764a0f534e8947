"""Commands that answer a person say within seconds what they cannot reach."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.adapters.long_work import long_work
from controller.adapters.outages import OutageWatch, Part, outages, servers
from controller.cli.shared import failures
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.log import LogInFolder
from controller.settings.trimtab_toml import Settings


def require(settings: Settings, *needed: Part, useful: tuple[Part, ...] = ()) -> None:
    """Raise TrimtabError where one of the *needed* parts cannot be reached; of the *useful* ones, say so."""
    if Part.LOG in (*needed, *useful) and isinstance(settings.log, LogInFolder):
        folder = Path(settings.log.folder.path)
        if folder.exists() and not folder.is_dir():
            raise SettingsError(f"log.folder.path = {str(folder)!r}: {folder} is not a folder")
    with long_work("waiting for the servers"):
        outages_found = outages(settings, *needed, *useful)
    missing = [str(outages_found[part]) for part in needed if part in outages_found]
    if missing:
        raise TrimtabError("\n".join(missing))
    for outage in outages_found.values():
        _say(str(outage))


@contextmanager
def outages_told(settings: Settings, *parts: Part) -> Iterator[OutageWatch]:
    """Within the block each of *parts* that cannot be reached is told once, and once when it answers again."""
    with OutageWatch(servers(settings, parts), say=lambda _level, text: _say(text)) as watch:
        yield watch


def _say(text: str) -> None:
    if logging.getLogger().hasHandlers():
        logging.getLogger(__name__).warning("%s", text)
    else:
        failures.say(text)
