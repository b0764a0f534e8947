"""The one place where ``[log] kind`` of trimtab.toml becomes a log.  A new system is a folder beside it, and a case."""

from functools import partial
from pathlib import Path
from typing import Final, assert_never
from uuid import uuid4

from controller.adapters.folder.retention import FolderRetention
from controller.adapters.recordings.reading import Recording, is_recording
from controller.adapters.recordings.record_log import RECORDED_TOPICS
from controller.log.files.log import FolderLog
from controller.log.kafka.log import KafkaLog
from controller.log.pulsar.log import PulsarLog
from controller.log.records import LogRecords
from controller.log.system import LogSystem
from controller.log.tail import LogTail
from controller.model.errors import SettingsError
from controller.settings.log import LogInFolder, LogInKafka, LogInPulsar
from controller.settings.trimtab_toml import Settings

#: How long a collector waits for a Pulsar that does not answer: it has a deadline for each interval.
_COLLECTOR_SECONDS: Final = 10.0
#: How long somebody waits who asks who leads, or changes the controls.
_BRIEF_SECONDS: Final = 5.0


def log_system(settings: Settings) -> LogSystem:
    """The system that holds the log."""
    cluster = settings.cluster.name
    match settings.log:
        case LogInKafka(kafka=log):
            connect = partial(KafkaLog, log, cluster=cluster, executor=settings.executor)
            briefly = partial(connect, seconds=_BRIEF_SECONDS)
            return LogSystem(connect, settings, where=f"Kafka at {log.bootstrap}", connect_briefly=briefly)
        case LogInPulsar(pulsar=log):
            executor, patience = str(uuid4()), float(settings.executor.session_timeout_seconds)
            connect_to_pulsar = partial(PulsarLog, log, cluster=cluster, executor=executor, claim_seconds=patience)
            collect = partial(connect_to_pulsar, seconds=_COLLECTOR_SECONDS)
            return LogSystem(
                connect_to_pulsar,
                settings,
                where=f"Pulsar at {log.service_url}",
                collect=collect,
                connect_briefly=partial(connect_to_pulsar, seconds=_BRIEF_SECONDS),
            )
        case LogInFolder(folder=log):
            path = Path(log.path)
            hours = log.summaries_retention_hours
            retention = FolderRetention(path, kept_ms=settings.folder_kept_ms, summaries_ms=hours * 3_600_000)
            return LogSystem(partial(FolderLog, path, cluster=cluster), settings, where=str(path), retention=retention)
        case other:
            assert_never(other)


def recording(folder: Path) -> LogTail:
    """A log in *folder* that no settings name."""
    return LogTail(partial(FolderLog, folder, cluster=None), cluster=None, endless=False)


def records_in(folder: Path) -> Recording | LogRecords:
    """The records in *folder*: a recording, or a log in a folder that no settings name."""
    if is_recording(folder):
        return Recording(folder)
    if not any((folder / topic).is_dir() for topic in RECORDED_TOPICS):
        raise SettingsError(
            f"{folder} is neither a recording, which has a manifest.json, nor a log in a folder, which has metrics/"
        )
    return LogRecords(FolderLog(folder, cluster=None), where=str(folder))
