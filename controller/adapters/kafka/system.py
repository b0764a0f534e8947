"""Kafka as a log system."""

from collections.abc import Iterator

from controller.adapters.kafka.inbox import KafkaInbox
from controller.adapters.kafka.journal import KafkaJournal, read_journal
from controller.adapters.kafka.log import KafkaCommandLog, KafkaDeadLetterLog, KafkaMetricsLog
from controller.adapters.kafka.records import KafkaRecords
from controller.adapters.kafka.tail import KafkaTail
from controller.adapters.kafka.ticks import KafkaCollectorLog
from controller.adapters.kafka.unreachable import why_unreachable
from controller.model.journal import JournalEntry
from controller.ports.systems import WatchedServer
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings


class KafkaSystem:
    """LogSystem in the Kafka that *log* names."""

    def __init__(self, log: KafkaLogSettings, settings: Settings) -> None:
        self._log, self._cluster = log, settings.cluster.name
        self._whole_every_ms, self._executor = settings.whole_every_ms, settings.executor

    def server(self) -> WatchedServer:
        """See LogSystem."""
        log = self._log
        return WatchedServer(
            name=f"Kafka at {log.bootstrap}",
            advice="start Kafka, or correct bootstrap in [log.kafka]",
            why=lambda: why_unreachable(log.bootstrap, log.client),
        )

    def metrics(self) -> KafkaMetricsLog:
        """See LogSystem."""
        return KafkaMetricsLog(self._log, cluster=self._cluster)

    def commands(self) -> KafkaCommandLog:
        """See LogSystem."""
        return KafkaCommandLog(self._log)

    def dead_letters(self) -> KafkaDeadLetterLog:
        """See LogSystem."""
        return KafkaDeadLetterLog(self._log)

    def retention(self) -> None:
        """See LogSystem.  Kafka deletes them."""

    def journal(self) -> KafkaJournal:
        """See LogSystem."""
        return KafkaJournal(self._log, cluster=self._cluster, whole_every_ms=self._whole_every_ms)

    def decisions(self) -> Iterator[JournalEntry]:
        """See LogSystem."""
        return read_journal(self._log, cluster=self._cluster)

    def inbox(self) -> KafkaInbox:
        """See LogSystem."""
        return KafkaInbox(self._log, self._executor, cluster=self._cluster)

    def collectors(self) -> KafkaCollectorLog:
        """See LogSystem."""
        return KafkaCollectorLog(self._log, cluster=self._cluster)

    def tail(self) -> KafkaTail:
        """See LogSystem."""
        return KafkaTail(self._log)

    def records(self) -> KafkaRecords:
        """See LogSystem."""
        return KafkaRecords(self._log)
