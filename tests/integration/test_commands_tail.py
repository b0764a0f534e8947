"""``trimtab commands tail`` on a real Kafka."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from controller.adapters.kafka.journal import KafkaJournal
from controller.adapters.kafka.writer import Producer
from controller.cli.commands import app
from controller.lab.servers import KafkaServer
from controller.model.errors import LeadershipLostError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import read_settings
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("kafka-journal")]

PARTITIONS = 2


@pytest.fixture
def conf(kafka: KafkaServer, tmp_path: Path) -> Path:
    path, prefix = tmp_path / "trimtab.toml", uuid4().hex
    topics = [f'{name}_topic = "{prefix}-{name}"' for name in ("metrics", "results", "commands", "journal")]
    path.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        [log]
        kind = "kafka"
        [log.kafka]
        bootstrap = "{kafka.bootstrap}"
        partitions = {PARTITIONS}
        dead_letters_topic = "{prefix}-dead-letters"
        """
        + "\n".join(topics),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def settings(conf: Path) -> KafkaLogSettings:
    settings = read_settings(conf).log.kafka
    assert settings is not None
    return settings


@pytest.fixture
def journal(settings: KafkaLogSettings) -> KafkaJournal:
    journal = KafkaJournal(settings, cluster=CLUSTER)
    journal.open()
    return journal


def tail(conf: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["tail", "--conf", str(conf), "--no-follow", *options])


def test_epochs_and_committed_commands_are_printed_and_aborted_ones_are_not(conf: Path, journal: KafkaJournal) -> None:
    def lose() -> None:
        raise LeadershipLostError("another leads")

    journal.begin_epoch(3)
    with pytest.raises(LeadershipLostError):
        journal.append(entry(T, SPLIT), epoch=3, issued_at_ms=T, before_commit=lose)
    journal.append(entry(T, UNLOAD), epoch=3, issued_at_ms=T, before_commit=lambda: None)
    result = tail(conf)
    assert result.exit_code == 0
    assert result.stdout.count("epoch 3 of demo starts") == 1, "though it is in each partition"
    assert result.stdout.count(LEFT) == 1
    assert RIGHT not in result.stdout


def test_what_cannot_be_read_is_shown_with_partition_and_offset(
    conf: Path, settings: KafkaLogSettings, journal: KafkaJournal
) -> None:
    producer = Producer(settings.bootstrap)
    for _ in range(2):
        producer.send(settings.commands_topic, b"", partition=1)
    producer.flush()
    journal.append(entry(T, UNLOAD), epoch=3, issued_at_ms=T, before_commit=lambda: None)
    shown = tail(conf)
    for offset in range(2):
        assert f"undecodable, topic {settings.commands_topic}, partition 1, offset {offset}: not_json" in shown.stdout
    assert LEFT in shown.stdout
    as_json = tail(conf, "--json")
    assert [json.loads(line)["id"] for line in as_json.stdout.splitlines()] == [UNLOAD.id]
    assert as_json.stderr.count("undecodable") == 2


def test_following_prints_what_is_issued_until_ctrl_c(conf: Path, journal: KafkaJournal) -> None:
    journal.append(entry(T, UNLOAD), epoch=3, issued_at_ms=T, before_commit=lambda: None)
    command = [sys.executable, "-m", "controller.cli", "commands"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [*command, "tail", "--json", "--conf", str(conf)], stdout=subprocess.PIPE, text=True, env=environment
    ) as following:
        assert following.stdout is not None
        try:
            assert json.loads(following.stdout.readline())["id"] == UNLOAD.id
            journal.append(entry(T + PERIOD, SPLIT), epoch=3, issued_at_ms=T, before_commit=lambda: None)
            assert json.loads(following.stdout.readline())["id"] == SPLIT.id
            following.send_signal(signal.SIGINT)
            assert following.stdout.read() == ""
            assert following.wait(30) == 0
        finally:
            following.kill()
