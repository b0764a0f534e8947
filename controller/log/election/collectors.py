"""The group of collectors on cells: its members, the one that leads, and which brokers each one sweeps.

members/<id>   owned by a session, one a collector; the one that was made first leads
shares         member -> brokers, JSON
"""

import json
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from uuid import uuid4

from controller.adapters.election.collectors import GroupView, shares_in
from controller.log.election.cells import ABSENT, EXISTS
from controller.log.election.store import ElectionCells, end, has, put
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

_MEMBERS: Final = "members/"
_SHARES: Final = "shares"


class LogGroup:
    """CollectorGroup on *cells*."""

    def __init__(self, cells: ElectionCells) -> None:
        """Join.  TrimtabError where the log does not answer."""
        self._cells = cells
        self._view = GroupView(me=f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}")
        self._version = ABSENT
        self._answers = True
        self._view = self._read_view()

    def look(self) -> GroupView:
        """See CollectorGroup."""
        try:
            self._view = self._read_view()
        except TrimtabError as error:
            if self._answers:
                log.warning("cannot read the group of collectors; using its last known members: %s", error)
            self._answers = False
        else:
            self._answers = True
        return self._view

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        encoded = json.dumps({name: list(brokers) for name, brokers in shares.items()}, separators=(",", ":")).encode()
        with suppress(TrimtabError):  # the next look shows the result
            self._cells.commit([has(_SHARES, self._version)], [put(_SHARES, encoded)])

    def step_back(self) -> None:
        """See CollectorGroup.  Until the log answers again, nobody leads."""
        self._view = replace(self._view, members=())
        with suppress(TrimtabError):
            self._cells.commit([], [end(f"{_MEMBERS}{self._view.me}")])

    def leave(self) -> None:
        """See CollectorGroup."""
        self._cells.close()

    def _read_view(self) -> GroupView:
        cells, own = self._cells, f"{_MEMBERS}{self._view.me}"
        session = cells.session()
        cells.refresh()
        if cells.get(own) is None:
            cells.commit([has(session, EXISTS), has(own, ABSENT)], [put(own, b"", session)])
        shares = cells.get(_SHARES)
        self._version = ABSENT if shares is None else shares.version
        members = tuple(key.removeprefix(_MEMBERS) for key, _ in cells.below(_MEMBERS))
        return replace(self._view, members=members, shares=shares_in(b"" if shares is None else shares.value))
