"""Starts a new epoch in the journal and for all readers of commands, so that no older command is begun any more."""

from typing import Final

from controller.adapters.election.controls import ControlStore
from controller.log.factory import log_system
from controller.model.errors import LeadershipLostError, TrimtabError
from controller.model.leadership import newer_epoch
from controller.settings.trimtab_toml import Settings

_TRIES: Final = 5


def fence(settings: Settings, store: ControlStore, *, may_be_unknown: bool = False) -> int:
    """Start a new epoch in the journal and for all readers of commands, and return it; this ends the leadership.

    What the journal holds does not matter: it stops a controller that cannot read its journal, too.  *may_be_unknown*:
    go on where *store* cannot be read.  Raises TrimtabError.
    """
    for _ in range(_TRIES):
        journal = log_system(settings).journal()
        written = journal.fence()
        try:
            stored = store.epoch()
        except TrimtabError:
            if not may_be_unknown:
                raise
            stored = 0
        epoch = newer_epoch(stored, written) + 1
        try:
            journal.begin_epoch(epoch)
        except LeadershipLostError:
            continue  # a controller has just begun to lead: fence it, too
        if not may_be_unknown:
            store.raise_epoch(epoch)
        return epoch
    raise TrimtabError(f"no epoch was started: a controller began to lead during each of {_TRIES} tries; try again")
