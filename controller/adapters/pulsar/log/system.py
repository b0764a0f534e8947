"""Pulsar as a log system."""

from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.inbox import PulsarInbox
from controller.adapters.pulsar.log.journal import PulsarJournal
from controller.adapters.pulsar.log.journal_reading import read_journal
from controller.adapters.pulsar.log.log import PulsarCommandLog, PulsarDeadLetterLog, PulsarMetricsLog
from controller.adapters.pulsar.log.records import PulsarRecordLog
from controller.adapters.pulsar.log.tail import PulsarTail
from controller.adapters.pulsar.log.ticks import PulsarCollectorLog
from controller.adapters.pulsar.log.unreachable import why_unreachable
from controller.model.journal import JournalEntry
from controller.ports.systems import WatchedServer
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import Settings


class PulsarSystem:
    """LogSystem in the Pulsar that *log* names."""

    def __init__(self, log: PulsarLogSettings, settings: Settings) -> None:
        self._log, self._cluster = log, settings.cluster.name
        self._whole_every_ms, self._executor = settings.whole_every_ms, settings.executor
        #: Of this process among the executors; an inbox that is opened anew has the same.
        self._executor_name = str(uuid4())

    def server(self) -> WatchedServer:
        """See LogSystem."""
        return WatchedServer(
            name=f"the log's Pulsar at {self._log.service_url}",
            advice="start its brokers, or correct service_url in [log.pulsar]",
            why=lambda: why_unreachable(self._log),
        )

    def metrics(self) -> PulsarMetricsLog:
        """See LogSystem."""
        return PulsarMetricsLog(self._log, cluster=self._cluster)

    def commands(self) -> PulsarCommandLog:
        """See LogSystem."""
        return PulsarCommandLog(self._log)

    def dead_letters(self) -> PulsarDeadLetterLog:
        """See LogSystem."""
        return PulsarDeadLetterLog(self._log)

    def retention(self) -> None:
        """See LogSystem.  Pulsar deletes them."""

    def journal(self) -> PulsarJournal:
        """See LogSystem."""
        return PulsarJournal(self._log, cluster=self._cluster, whole_every_ms=self._whole_every_ms)

    def decisions(self) -> Iterator[JournalEntry]:
        """See LogSystem."""
        with closing(LogConnection(self._log)) as connection:
            connection.existing(self._log.journal_topic)
            yield from read_journal(connection, cluster=self._cluster)

    def inbox(self) -> PulsarInbox:
        """See LogSystem."""
        return PulsarInbox(self._log, self._executor, cluster=self._cluster, name=self._executor_name)

    def collectors(self) -> PulsarCollectorLog:
        """See LogSystem."""
        return PulsarCollectorLog(self._log, cluster=self._cluster)

    def records(self) -> PulsarRecordLog:
        """See LogSystem."""
        return PulsarRecordLog(self._log)

    def tail(self) -> PulsarTail:
        """See LogSystem."""
        return PulsarTail(self._log)
