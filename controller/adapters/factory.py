"""The servers that election and log run on, by the settings; and the store of verdicts.

controller.log.factory opens the log, and controller.log.elections the election.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final, assert_never

from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.disk.verdicts import VerdictStore
from controller.adapters.election.systems import WatchedServer
from controller.adapters.kafka.errors import check_options
from controller.adapters.kafka.unreachable import why_unreachable as why_kafka_is_unreachable
from controller.adapters.pulsar.log.unreachable import why_unreachable as why_pulsar_is_unreachable
from controller.adapters.zookeeper.system import ZooKeeperElection
from controller.model.errors import AnotherClusterError
from controller.settings.election import ElectionByFile, ElectionInZooKeeper, ElectionOnLog
from controller.settings.log import LogInFolder, LogInKafka, LogInPulsar
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)

_VERDICTS_KEY: Final = "journal.verdicts_path"


def election_server(settings: Settings) -> WatchedServer | None:
    """The server that the election runs on; None for a folder."""
    match settings.election:
        case ElectionInZooKeeper() as election:
            return ZooKeeperElection(election, settings).server()
        case ElectionByFile():
            return None
        case ElectionOnLog():
            return log_server(settings)
        case other:
            assert_never(other)


def log_server(settings: Settings) -> WatchedServer | None:
    """The server that the log lies on; None for a folder.  SettingsError where its client refuses an option."""
    match settings.log:
        case LogInKafka(kafka=kafka):
            check_options(kafka.client)
            return WatchedServer(
                name=f"Kafka at {kafka.bootstrap}",
                advice="start Kafka, or correct bootstrap in [log.kafka]",
                why=lambda: why_kafka_is_unreachable(kafka.bootstrap, kafka.client),
            )
        case LogInPulsar(pulsar=pulsar):
            return WatchedServer(
                name=f"the log's Pulsar at {pulsar.service_url}",
                advice="start its brokers, or correct service_url in [log.pulsar]",
                why=lambda: why_pulsar_is_unreachable(pulsar),
            )
        case LogInFolder():
            return None
        case other:
            assert_never(other)


def verdict_store(settings: Settings) -> VerdictStore:
    """Where verdicts are read; AnotherClusterError where the folder is another cluster's."""
    folder = Path(settings.verdicts_folder)
    with suppress(OSError):  # it may be on another machine
        refuse_another(folder, settings.cluster.name, key=_VERDICTS_KEY)
    return _verdicts_in(folder, settings)


def own_verdict_store(settings: Settings) -> VerdictStore | None:
    """Where a leader stores verdicts; the folder is claimed for its cluster. None, with an error in the log, if it
    belongs to another cluster.

    Verdicts are for people, so an unusable folder does not stop decisions.
    """
    folder = Path(settings.verdicts_folder)
    try:
        with suppress(OSError):  # writing fails the same way and logs it
            claim(folder, settings.cluster.name, key=_VERDICTS_KEY)
    except AnotherClusterError as error:
        log.error("cannot store verdicts; decisions continue: %s", error)
        return None
    return _verdicts_in(folder, settings)


def _verdicts_in(folder: Path, settings: Settings) -> VerdictStore:
    journal = settings.journal
    return VerdictStore(folder, keep=journal.verdicts_intervals, keep_bytes=journal.verdicts_megabytes << 20)
