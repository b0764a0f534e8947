"""The one place that maps ``[election] kind`` of trimtab.toml to an election.  A new system is a case here."""

from contextlib import suppress
from pathlib import Path
from typing import assert_never

from controller.adapters.disk.cluster_file import refuse_another
from controller.adapters.election.registry import Registry
from controller.adapters.election.systems import ElectionSystem
from controller.adapters.folder.election import FileElection
from controller.adapters.folder.names import LOG_PATH
from controller.adapters.kubernetes.system import LeaseElection
from controller.adapters.zookeeper.system import ZooKeeperElection
from controller.log.election.system import LogElection
from controller.log.factory import log_system
from controller.settings.election import ElectionByFile, ElectionInZooKeeper, ElectionOnLog
from controller.settings.log import LogInFolder
from controller.settings.trimtab_toml import Settings


def election_system(settings: Settings) -> ElectionSystem:
    """The system in which controllers elect their leader; a Lease elects it where the settings have one."""
    stores, lease = _system_of_kind(settings), settings.election.lease
    return stores if lease is None else LeaseElection(stores=stores, lease=lease, cluster=settings.cluster.name)


def _system_of_kind(settings: Settings) -> ElectionSystem:
    match settings.election:
        case ElectionInZooKeeper() as election:
            return ZooKeeperElection(election, settings)
        case ElectionByFile() as election:
            if isinstance(settings.log, LogInFolder):  # the folder of an election may not say whose it is
                with suppress(OSError):  # reading the log reports what is wrong
                    refuse_another(Path(settings.log.folder.path), settings.cluster.name, key=LOG_PATH)
            return FileElection(Path(election.path), cluster=settings.cluster.name)
        case ElectionOnLog() as election:
            log = log_system(settings)
            return LogElection(
                log.connect_briefly,
                cluster=settings.cluster.name,
                session_seconds=election.session_timeout_seconds,
                where=f"the election's topic in {log.where}",
            )
        case other:
            assert_never(other)


def registry_of(settings: Settings) -> Registry:
    """The registry of the processes that run."""
    return election_system(settings).registry()
