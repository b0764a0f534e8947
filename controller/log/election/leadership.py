"""Leadership by a cell that ends with the session of its process: the one that was made first leads.

contenders/<id>   owned by a session, one a process; host and number of the process, for people who ask
epoch             the number of the newest leadership
"""

import time
from collections.abc import Callable, Sequence
from typing import Final
from uuid import uuid4

from controller.adapters.process.own_process import own_process
from controller.log.election.cells import ABSENT, EXISTS
from controller.log.election.store import ElectionCells, has, put
from controller.model.errors import AccessDeniedError, LeadershipLostError, SettingsError, StateError, TrimtabError
from controller.model.leadership import Agreement, epoch_of, newer_epoch, no_preparation
from controller.wire.cells import CellChange, CellCondition

CONTENDERS: Final = "contenders/"
EPOCH: Final = "epoch"
#: How often a process that waits looks, in a session's timeout.
_LOOKS_IN_TIMEOUT: Final = 20
#: What no retry mends.
_PERMANENT: Final = (AccessDeniedError, SettingsError, StateError)
#: Maximum number of bytes shown of a cell with unexpected content.
_LONGEST_EXCERPT: Final = 60


class LogLeadership:
    """Leadership on *cells*.  A process whose session has ended must be restarted."""

    def __init__(self, cells: ElectionCells, *, where: str) -> None:
        """*where*: the topic, for messages."""
        self._cells, self._where = cells, where
        self._key = f"{CONTENDERS}{uuid4().hex}"
        self._session = ""
        self._contender: int | None = None
        self._epoch: int | None = None
        self._leads = False

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:
        """See Leadership.  TrimtabError where the log cannot be reached at first, or refuses."""
        self._leads, self._epoch = False, None
        while not stop():
            try:
                self._leads = self._is_first()
            except _PERMANENT:
                raise
            except TrimtabError:
                if not self._session:
                    raise
            if self.session_lost():
                raise LeadershipLostError(f"{self._where}: the session of this process has ended")
            if not self.lost():
                return True
            if self._contender is not None:
                stand_by()
                stand_by = no_preparation
            time.sleep(self._cells.session_seconds / _LOOKS_IN_TIMEOUT)
        return False

    def claim(self, journal_epoch: int) -> int:
        """See Leadership."""
        with_stored = self._cells.get(EPOCH)
        known = 0 if with_stored is None else epoch_of(with_stored.value)
        if known is None:
            excerpt = b"" if with_stored is None else with_stored.value[:_LONGEST_EXCERPT]
            raise StateError(f"{self._where}: epoch is {excerpt!r}, no number: `trimtab stop-all` starts a new one")
        epoch = newer_epoch(known, journal_epoch) + 1
        # Whoever changed it since it was read has started a newer epoch, or ends this leadership.
        condition = has(EPOCH, ABSENT if with_stored is None else with_stored.version)
        self._epoch = self._commit([condition], [put(EPOCH, b"%d" % epoch)])
        return epoch

    def check(self) -> None:
        """See Leadership.  It is the topic that says so: the contender is there, and nobody has claimed an epoch."""
        self._commit([])

    def lost(self) -> bool:
        """See Leadership."""
        self._leads = self._leads and not self._cells.in_doubt(self._session)
        return not self._leads

    def session_lost(self) -> bool:
        """See Leadership."""
        return self._cells.session_lost(self._session)

    def release(self) -> None:
        """See Leadership."""
        self._leads = False
        self._cells.close()

    def agreement(self, name: str) -> Agreement:
        """See Leadership."""
        return Agreement(where="", propose=lambda value: self._agreed(name, value))

    def _agreed(self, name: str, value: str) -> str:
        try:
            self._cells.commit([has(name, ABSENT)], [put(name, value.encode())])
        except TrimtabError as error:
            raise self._loss(str(error)) from error
        cell = self._cells.get(name)
        return "" if cell is None else cell.value.decode(errors="replace")

    def _is_first(self) -> bool:
        cells = self._cells
        if not self._session:
            self._session = cells.session()
        cells.refresh()
        if cells.get(self._key) is None and not self.session_lost():
            self._contender = cells.commit(
                [has(self._session, EXISTS), has(self._key, ABSENT)], [put(self._key, own_process(), self._session)]
            )
        contenders = cells.below(CONTENDERS)
        self._contender = next((cell.version for key, cell in contenders if key == self._key), None)
        return bool(contenders) and contenders[0][0] == self._key

    def _commit(self, conditions: Sequence[CellCondition], changes: Sequence[CellChange] = ()) -> int:
        """Make *changes* if *conditions* hold and this process leads; else LeadershipLostError."""
        if self.lost() or self._contender is None:
            raise LeadershipLostError(f"{self._where}: this process does not lead, or could not say that it is there")
        leads = [has(self._key, self._contender)]
        if self._epoch is not None:
            leads.append(has(EPOCH, self._epoch))
        try:
            written = self._cells.commit([*leads, *conditions], changes)
        except TrimtabError as error:
            raise self._loss(str(error)) from error
        if written is None:
            raise self._loss(self._why())
        return written

    def _why(self) -> str:
        if self._cells.get(self._key) is None:
            return "this process no longer takes part in the election: it wrote nothing for too long"
        return "a newer epoch has started: another controller leads, or somebody ran stop-all"

    def _loss(self, why: str) -> LeadershipLostError:
        self._leads = False
        return LeadershipLostError(f"{self._where}: {why}")
