"""The one place where ``[log] kind`` and ``[election] kind`` of trimtab.toml become implementations of the ports."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from controller.adapters.folder import journal as folder_journal
from controller.adapters.folder import log as folder_log
from controller.adapters.folder.collectors import FileGroup, FolderCollectorLog
from controller.adapters.folder.controls import FileControls
from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.kafka import journal as kafka_journal
from controller.adapters.kafka import log as kafka_log
from controller.adapters.kafka.ticks import KafkaCollectorLog
from controller.adapters.zookeeper.access import ZooKeeperAccess, election_access
from controller.adapters.zookeeper.collectors import ZooKeeperGroup
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.model.journal import JournalEntry
from controller.ports.collectors import CollectorGroup, CollectorLog
from controller.ports.controls import ControlStore
from controller.ports.journal import Journal
from controller.ports.leadership import Leadership
from controller.ports.log import CommandLog, DeadLetterLog, MetricsLog
from controller.settings.election import ElectionByFile, ElectionInZooKeeper
from controller.settings.log import KafkaLogSettings, LogInKafka
from controller.settings.trimtab_toml import Settings


class _Nodes(TypedDict):
    access: ZooKeeperAccess
    path: str
    cluster: str
    session_timeout_seconds: int


def metrics_log(settings: Settings) -> MetricsLog:
    """The writing end of the metrics and result topics."""
    at, cluster = _at(settings), settings.cluster.name
    if isinstance(at, Path):
        return folder_log.FolderMetricsLog(at, cluster=cluster)
    return kafka_log.KafkaMetricsLog(at, cluster=cluster)


def command_log(settings: Settings) -> CommandLog:
    """The reading end of the command topic."""
    at = _at(settings)
    return folder_log.FolderCommandLog(at) if isinstance(at, Path) else kafka_log.KafkaCommandLog(at)


def dead_letter_log(settings: Settings) -> DeadLetterLog:
    """Where records go that cannot be used."""
    at = _at(settings)
    return folder_log.FolderDeadLetterLog(at) if isinstance(at, Path) else kafka_log.KafkaDeadLetterLog(at)


def journal(settings: Settings) -> Journal:
    """The journal, not opened yet."""
    at, cluster = _at(settings), settings.cluster.name
    every = settings.journal.whole_every_intervals * settings.intervals.period_ms
    if isinstance(at, Path):
        return folder_journal.FolderJournal(at, cluster=cluster, whole_every_ms=every)
    return kafka_journal.KafkaJournal(at, cluster=cluster, whole_every_ms=every)


def read_journal(settings: Settings) -> Iterator[JournalEntry]:
    """Every decision in the journal, oldest first; disturbs no writer."""
    at = _at(settings)
    if isinstance(at, Path):
        return folder_journal.read_journal(at)
    return kafka_journal.read_journal(at, cluster=settings.cluster.name)


def collector_log(settings: Settings) -> CollectorLog:
    """The log, as collectors see it."""
    at, cluster = _at(settings), settings.cluster.name
    if isinstance(at, Path):
        return FolderCollectorLog(at, cluster=cluster)
    return KafkaCollectorLog(at, cluster=cluster)


def leadership(settings: Settings) -> Leadership:
    """This process's part in the election."""
    election = settings.election
    if isinstance(election, ElectionByFile):
        return FileLeadership(Path(election.path))
    return ZooKeeperLeadership(**_nodes(election, settings.cluster.name))


def collector_group(settings: Settings) -> CollectorGroup:
    """The group of collectors, which meets where controllers elect."""
    election = settings.election
    if isinstance(election, ElectionByFile):
        return FileGroup(Path(election.path) / "collectors")
    return ZooKeeperGroup(**_nodes(election, settings.cluster.name))


def control_store(settings: Settings) -> ControlStore:
    """The operator's controls, which are kept beside the election."""
    election = settings.election
    if isinstance(election, ElectionByFile):
        return FileControls(Path(election.path))
    return ZooKeeperControls(**_nodes(election, settings.cluster.name))


def _nodes(election: ElectionInZooKeeper, cluster: str) -> _Nodes:
    """Where the nodes of *cluster* are, and how to reach them."""
    return {
        "access": election_access(election),
        "path": election.path,
        "cluster": cluster,
        "session_timeout_seconds": election.session_timeout_seconds,
    }


def _at(settings: Settings) -> Path | KafkaLogSettings:
    if isinstance(settings.log, LogInKafka):
        return settings.log.kafka
    return Path(settings.log.folder.path)
