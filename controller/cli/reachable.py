"""Commands that answer a person say within seconds what they cannot reach, and that they still wait."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

from controller.adapters.outages import OutageWatch, Part, outages, servers
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import Settings

_TOLD_EVERY_SECONDS: Final = 4.0


def require(settings: Settings, *needed: Part, useful: tuple[Part, ...] = ()) -> None:
    """Raise TrimtabError where one of the *needed* parts cannot be reached; of the *useful* ones, say so."""
    found = outages(settings, *needed, *useful)
    missing = [str(found[part]) for part in needed if part in found]
    if missing:
        raise TrimtabError("\n".join(missing))
    for outage in found.values():
        _say(str(outage))


@contextmanager
def outages_told(settings: Settings, *parts: Part) -> Iterator[OutageWatch]:
    """Within the block each of *parts* that cannot be reached is told once, and once when it answers again."""
    with OutageWatch(servers(settings, parts), say=lambda _level, text: _say(text)) as watch:
        yield watch


@contextmanager
def still_waiting(for_what: str) -> Iterator[None]:
    """Where the block takes longer than some seconds, say every few seconds that it waits *for_what*."""
    done = threading.Event()

    def tell() -> None:
        seconds = 0.0
        while not done.wait(_TOLD_EVERY_SECONDS):
            seconds += _TOLD_EVERY_SECONDS
            _say(f"still waiting for {for_what}, {seconds:.0f} s")

    thread = threading.Thread(target=tell, name="still waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def _say(text: str) -> None:
    if logging.getLogger().hasHandlers():
        logging.getLogger(__name__).warning("%s", text)
    else:
        typer.echo(f"trimtab: {text}", err=True)
