"""A log system: all that trimtab stores in a log, on any implementation of the port."""

from collections.abc import Callable, Iterator
from contextlib import closing

from controller.adapters.folder.retention import FolderRetention
from controller.log.commands import CommandLog
from controller.log.dead_letters import DeadLetterLog
from controller.log.inbox import Inbox
from controller.log.journal import LogJournal
from controller.log.journal_reading import JournalReader
from controller.log.port import Log
from controller.log.records import LogRecords
from controller.log.summaries import SummaryLog
from controller.log.tail import LogTail
from controller.log.ticks import CollectorLog, MetricsLog
from controller.model.journal import JournalEntry
from controller.settings.trimtab_toml import Settings
from controller.wire.ed25519 import SigningKey


class LogSystem:
    """Everything that is stored in the logs that *connect* opens, one connection for each object.

    Each method opens something of its own; the caller closes what has a ``close``.
    """

    def __init__(
        self,
        connect: Callable[[], Log],
        settings: Settings,
        *,
        where: str,
        retention: FolderRetention | None = None,
        collect: Callable[[], Log] | None = None,
        connect_briefly: Callable[[], Log] | None = None,
    ) -> None:
        """*where*: its name for messages.  *retention*: deletes old records, where the system does not do so itself.

        *collect*: opens a log for a collector, which has deadlines, where that is another one.
        *connect_briefly*: opens one whose calls give up within seconds.
        """
        self.where = where
        self.connect_briefly = connect_briefly or connect
        self._connect, self._retention = connect, retention
        self._collect = collect or connect
        self._cluster, self._whole_every_ms = settings.cluster.name, settings.whole_every_ms
        self._group = settings.executor.group

    def metrics(self) -> MetricsLog:
        """The writing end of the metrics and result topics."""
        return MetricsLog(self._connect(), cluster=self._cluster)

    def commands(self) -> CommandLog:
        """The reading end of the command topic."""
        return CommandLog(self._connect())

    def dead_letters(self) -> DeadLetterLog:
        """Where unusable records go."""
        return DeadLetterLog(self._connect())

    def summaries(self) -> SummaryLog:
        """The writing end of the summaries."""
        return SummaryLog(self._connect())

    def connect(self) -> Log:
        """The log itself, for those who follow several topics of it."""
        return self._connect()

    def retention(self) -> FolderRetention | None:
        """Deletes old records; None if the system does so itself."""
        return self._retention

    def journal(self, signing_key: SigningKey | None = None) -> LogJournal:
        """The journal, not opened yet; *signing_key* signs the commands."""
        return LogJournal(
            self._connect(), cluster=self._cluster, whole_every_ms=self._whole_every_ms, signing_key=signing_key
        )

    def decisions(self) -> Iterator[JournalEntry]:
        """Every decision in the journal, oldest first; disturbs no writer."""
        with closing(self._connect()) as log:
            yield from JournalReader(log, self._cluster).entries()

    def inbox(self) -> Inbox:
        """The commands, as an executor takes them."""
        return Inbox(self._connect(), group=self._group, cluster=self._cluster)

    def collectors(self) -> CollectorLog:
        """The log, as collectors see it."""
        return CollectorLog(self._collect(), cluster=self._cluster)

    def tail(self) -> LogTail:
        """The end of the log, newest first."""
        return LogTail(self._connect, cluster=self._cluster, endless=True)

    def records(self) -> LogRecords:
        """The topics byte for byte."""
        return LogRecords(self._connect(), where=self.where)
