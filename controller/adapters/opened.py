"""Which log and which journal: what ``[log] kind`` in trimtab.toml says, behind the same interfaces."""

from collections.abc import Iterator
from pathlib import Path

from controller.adapters.folder import log as folder
from controller.adapters.kafka import journal as kafka_journal
from controller.adapters.kafka import log as kafka_log
from controller.model.journal import JournalEntry
from controller.ports.journal import Journal
from controller.ports.log import CommandLog, DeadLetterLog, MetricsLog
from controller.settings.log import KafkaLogSettings, LogInKafka
from controller.settings.trimtab_toml import Settings


def metrics_log(settings: Settings) -> MetricsLog:
    """The writing end of the metrics and result topics."""
    at, cluster = _at(settings), settings.cluster.name
    if isinstance(at, Path):
        return folder.FolderMetricsLog(at, cluster=cluster)
    return kafka_log.KafkaMetricsLog(at, cluster=cluster)


def command_log(settings: Settings) -> CommandLog:
    """The reading end of the command topic."""
    at = _at(settings)
    return folder.FolderCommandLog(at) if isinstance(at, Path) else kafka_log.KafkaCommandLog(at)


def dead_letter_log(settings: Settings) -> DeadLetterLog:
    """Where records go that cannot be used."""
    at = _at(settings)
    return folder.FolderDeadLetterLog(at) if isinstance(at, Path) else kafka_log.KafkaDeadLetterLog(at)


def journal(settings: Settings) -> Journal:
    """The journal, not opened yet."""
    at, cluster = _at(settings), settings.cluster.name
    every = settings.journal.whole_every_intervals * settings.intervals.period_ms
    if isinstance(at, Path):
        return folder.FolderJournal(at, cluster=cluster, whole_every_ms=every)
    return kafka_journal.KafkaJournal(at, cluster=cluster, whole_every_ms=every)


def read_journal(settings: Settings) -> Iterator[JournalEntry]:
    """Every decision in the journal, oldest first; disturbs no writer."""
    at = _at(settings)
    if isinstance(at, Path):
        return folder.read_journal(at)
    return kafka_journal.read_journal(at, cluster=settings.cluster.name)


def _at(settings: Settings) -> Path | KafkaLogSettings:
    if isinstance(settings.log, LogInKafka):
        return settings.log.kafka
    return Path(settings.log.folder.path)
