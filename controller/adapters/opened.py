"""The one place where ``[log] kind`` and ``[election] kind`` of trimtab.toml become implementations of the ports.

A new system is a folder beside this file and a case here.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final, assert_never

from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.disk.verdicts import VerdictStore
from controller.adapters.folder.records import FolderRecords
from controller.adapters.folder.system import FileElection, FolderSystem
from controller.adapters.folder.tail import FolderTail
from controller.adapters.kafka.system import KafkaSystem
from controller.adapters.pulsar.log.system import PulsarSystem
from controller.adapters.recordings.reading import Recording, is_recording
from controller.adapters.zookeeper.system import ZooKeeperElection
from controller.model.errors import AnotherClusterError, SettingsError
from controller.ports.records import RECORDED_TOPICS
from controller.ports.systems import ElectionSystem, LogSystem, LogTail
from controller.settings.election import ElectionByFile, ElectionInZooKeeper
from controller.settings.log import LogInFolder, LogInKafka, LogInPulsar
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)

_VERDICTS_KEY: Final = "journal.verdicts_path"


def log_system(settings: Settings) -> LogSystem:
    """The system that holds the log."""
    match settings.log:
        case LogInKafka(kafka=log):
            return KafkaSystem(log, settings)
        case LogInPulsar(pulsar=log):
            return PulsarSystem(log, settings)
        case LogInFolder(folder=log):
            return FolderSystem(Path(log.path), settings)
        case other:
            assert_never(other)


def election_system(settings: Settings) -> ElectionSystem:
    """The system in which controllers elect their leader."""
    match settings.election:
        case ElectionInZooKeeper() as election:
            return ZooKeeperElection(election, settings)
        case ElectionByFile() as election:
            log_system(settings)  # refuses another cluster's folder; that of an election may not say whose it is
            return FileElection(Path(election.path), cluster=settings.cluster.name)
        case other:
            assert_never(other)


def verdict_store(settings: Settings) -> VerdictStore:
    """Where verdicts are read; AnotherClusterError where the folder is another cluster's."""
    folder = Path(settings.verdicts_folder)
    with suppress(OSError):  # it may be on another machine
        refuse_another(folder, settings.cluster.name, key=_VERDICTS_KEY)
    return _verdicts_in(folder, settings)


def own_verdict_store(settings: Settings) -> VerdictStore | None:
    """Where a leader keeps verdicts: the folder becomes its cluster's.  None, with an error logged, if it is another's.

    Verdicts are for people: a folder that cannot be used keeps nobody from deciding.
    """
    folder = Path(settings.verdicts_folder)
    try:
        with suppress(OSError):  # writing meets it again, and tells of it
            claim(folder, settings.cluster.name, key=_VERDICTS_KEY)
    except AnotherClusterError as error:
        log.error("verdicts are not kept, decisions go on: %s", error)
        return None
    return _verdicts_in(folder, settings)


def _verdicts_in(folder: Path, settings: Settings) -> VerdictStore:
    kept = settings.journal
    return VerdictStore(folder, keep=kept.verdicts_intervals, keep_bytes=kept.verdicts_megabytes << 20)


def recording(folder: Path) -> LogTail:
    """A log in *folder* that no settings name."""
    return FolderTail(folder)


def records_in(folder: Path) -> Recording | FolderRecords:
    """The records in *folder*: a recording, or a log in a folder that no settings name."""
    if is_recording(folder):
        return Recording(folder)
    if not any((folder / topic).is_dir() for topic in RECORDED_TOPICS):
        raise SettingsError(
            f"{folder} is neither a recording, which has a manifest.json, nor a log in a folder, which has metrics/"
        )
    return FolderRecords(folder)
