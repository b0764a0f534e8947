"""The simulation's model of Spark can do what a real query does that is killed and started again.

With --update-golden the recordings become those of tests/data/batches, which tests/simulation plays without Spark.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from controller.lab.servers import KafkaServer
from controller.log.factory import log_system
from controller.log.files.log import FolderLog
from controller.log.port import Out
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings, read_settings
from streaming.assembly import Assembly
from tests.kafka_log import as_toml, own_topics
from tests.query_recording import BROKER_CONF, CLUSTER, CONF, FolderRecords, KafkaRecords, ReadLog, as_text, record
from tests.simulation.recorded import refusal, repeated

pytestmark = [pytest.mark.integration, pytest.mark.extended]

DATA: Final = Path(__file__).parent.parent / "data" / "batches"
#: The process is killed once the second batch is read, then before Spark commits it, while states are stored, after a
#: commit, once a batch has offsets, and in the end it is told to stop.
DEATHS: Final = ("read:2", "decided:1", "torn", "committed:1", "begun:2", "")
#: The lives before which there are more partitions, and a record that nobody can use.
MORE_PARTITIONS, POISON = 3, 4


def settings_in(folder: Path, log: str) -> Settings:
    (folder / "broker.conf").write_text(BROKER_CONF, encoding="utf-8")
    (folder / "trimtab.toml").write_text(CONF.format(log=log), encoding="utf-8")
    return read_settings(folder / "trimtab.toml")


def held(
    name: str, folder: Path, settings: Settings, log: ReadLog, between: Callable[[int], None], *, update: bool
) -> None:
    recording = record(folder, settings, log, DEATHS, between)
    (folder / "recording.json").write_text(json.dumps(recording), encoding="utf-8")
    assert refusal(recording, folder) == ""
    assert {"begun", "read", "decided"} <= {*repeated(recording)}
    if update:
        DATA.mkdir(exist_ok=True)
        (DATA / f"{name}.json").write_text(as_text(recording), encoding="utf-8")


def test_on_kafka(tmp_path: Path, kafka: KafkaServer, request: pytest.FixtureRequest) -> None:
    log: KafkaLogSettings = own_topics(kafka.bootstrap)
    settings = settings_in(tmp_path, f'{{kind = "kafka", kafka = {{{as_toml(log).strip().replace(chr(10), ", ")}}}}}')

    def between(life: int) -> None:
        if life == MORE_PARTITIONS:
            admin = AdminClient({"bootstrap.servers": log.bootstrap})
            admin.create_partitions([NewPartitions(log.metrics_topic, 3)])[log.metrics_topic].result(30)
        if life == POISON:
            log_system(settings).metrics().publish([("poison", b"{")])

    held("kafka", tmp_path, settings, KafkaRecords(log), between, update=request.config.getoption("--update-golden"))


def test_on_a_folder(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    settings = settings_in(tmp_path, '{kind = "folder", folder.path = "log"}')
    assert settings.log.folder is not None
    folder = Path(settings.log.folder.path)

    def between(life: int) -> None:
        if life == POISON:
            FolderLog(folder, cluster=CLUSTER).append([Out("metrics", b"{")], within_seconds=1.0)

    log = FolderRecords(folder, Path(Assembly(settings).checkpoint))
    held("folder", tmp_path, settings, log, between, update=request.config.getoption("--update-golden"))
