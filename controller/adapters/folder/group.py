"""The group of the collectors on one machine: a lock lets one of them work at a time."""

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from controller.adapters.election.collectors import GroupView
from controller.adapters.folder.leadership import FileLeadership
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)


class FileGroup:
    """CollectorGroup on one machine: the process with the lock in *folder* does all the work; others wait."""

    def __init__(self, folder: Path) -> None:
        self._lock = FileLeadership(folder)
        self._me = f"{socket.gethostname()}-{os.getpid()}"
        self._shares: Mapping[str, Sequence[str]] = {}
        #: Why the lock could not be read or taken at the last look.
        self._problem = ""

    def look(self) -> GroupView:
        """See CollectorGroup.

        If the lock file was deleted, this member leads again at the next look at the earliest, and takes over as if for
        the first time: another one may have led in between.
        """
        problem, self._problem = self._problem, ""
        try:
            if self._lock.lost():
                self._lock.try_to_acquire()
            else:
                self._lock.check()
        except (OSError, TrimtabError) as error:
            self._problem = str(error)
            if self._problem != problem:
                log.warning("cannot determine which collector leads: %s", error)
        members = () if self._lock.lost() else (self._me,)
        return GroupView(me=self._me, members=members, shares=self._shares if members else {})

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        self._shares = shares

    def step_back(self) -> None:
        """See CollectorGroup."""
        self._lock.release()

    def leave(self) -> None:
        """See CollectorGroup."""
        self._lock.release()
