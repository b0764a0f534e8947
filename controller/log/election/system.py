"""An election in a topic of the log: no server but the log's."""

from collections.abc import Callable

from controller.log.election.collectors import LogGroup
from controller.log.election.leadership import CONTENDERS, EPOCH, LogLeadership
from controller.log.election.proposals import LogProposals
from controller.log.election.shared import LogControls, LogNotifications, LogRegistry
from controller.log.election.store import ElectionCells
from controller.log.port import Log
from controller.model.leadership import Leader
from controller.wire.process import process_in


class LogElection:
    """ElectionSystem of *cluster* in the log that *connect* opens; each object has a session of its own."""

    def __init__(self, connect: Callable[[], Log], *, cluster: str, session_seconds: float, where: str) -> None:
        """*where*: the topic, for messages."""
        self._connect, self._cluster, self._seconds, self._where = connect, cluster, session_seconds, where

    def leadership(self) -> LogLeadership:
        """See ElectionSystem."""
        return LogLeadership(self._cells(), where=self._where)

    def leader(self) -> Leader | None:
        """See ElectionSystem."""
        cells = self._cells()
        try:
            cells.refresh()
            first = next((cell for _, cell in cells.below(CONTENDERS) if not cells.seems_ended(cell.owner)), None)
            if first is None:
                return None
            host, process = process_in(first.value)
            epoch = cells.get(EPOCH)
            return Leader(
                host=host, process=process, since_ms=max(first.changed_ms, 0 if epoch is None else epoch.changed_ms)
            )
        finally:
            cells.close()

    def collectors(self) -> LogGroup:
        """See ElectionSystem."""
        return LogGroup(self._cells())

    def controls(self) -> LogControls:
        """See ElectionSystem."""
        return LogControls(self._cells(), where=self._where)

    def proposals(self) -> LogProposals:
        """See ElectionSystem."""
        return LogProposals(self._cells())

    def registry(self) -> LogRegistry:
        """See ElectionSystem."""
        return LogRegistry(self._cells())

    def notifications(self) -> LogNotifications:
        """See ElectionSystem."""
        return LogNotifications(self._cells())

    def _cells(self) -> ElectionCells:
        return ElectionCells(self._connect, cluster=self._cluster, session_seconds=self._seconds)
