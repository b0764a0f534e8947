"""``trimtab commands tail`` on a real Kafka."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from controller.adapters.kafka.writer import Producer
from controller.cli.commands import app
from controller.lab.servers import KafkaServer
from controller.log.journal import LogJournal
from controller.model.errors import LeadershipLostError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import read_settings
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.kafka_log import as_toml, journal_in, named_topics
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T

pytestmark = pytest.mark.integration


@pytest.fixture
def conf(kafka: KafkaServer, tmp_path: Path) -> Path:
    path = tmp_path / "trimtab.toml"
    path.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        [log]
        kind = "kafka"
        [log.kafka]
        {as_toml(named_topics(kafka.bootstrap))}
        """,
        encoding="utf-8",
    )
    return path


@pytest.fixture
def settings(conf: Path) -> KafkaLogSettings:
    settings = read_settings(conf).log.kafka
    assert settings is not None
    return settings


@pytest.fixture
def journal(settings: KafkaLogSettings) -> LogJournal:
    journal = journal_in(settings, cluster=CLUSTER)
    journal.open()
    journal.begin_epoch(3)
    return journal


def tail(conf: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["tail", "--conf", str(conf), "--no-follow", *options])


def test_epochs_and_committed_commands_are_printed_and_aborted_ones_are_not(conf: Path, journal: LogJournal) -> None:
    def lose() -> None:
        raise LeadershipLostError("another leads")

    with pytest.raises(LeadershipLostError):
        journal.append(entry(T, SPLIT), epoch=3, issued_at_ms=T, before_commit=lose)
    journal.append(entry(T, UNLOAD), epoch=3, issued_at_ms=T, before_commit=lambda: None)
    result = tail(conf)
    assert result.exit_code == 0
    assert result.stdout.count("epoch 3 of demo starts") == 1, "though it is in each partition"
    assert result.stdout.count(LEFT) == 1
    assert RIGHT not in result.stdout


def test_what_cannot_be_read_is_shown_with_partition_and_offset(
    conf: Path, settings: KafkaLogSettings, journal: LogJournal
) -> None:
    producer = Producer(settings.bootstrap)
    for _ in range(2):
        producer.send(settings.commands_topic, b"", partition=1)
    producer.flush()
    journal.append(entry(T, UNLOAD), epoch=3, issued_at_ms=T, before_commit=lambda: None)
    shown = tail(conf)
    for offset in (2, 3):  # behind the epoch, and the end of its transaction
        place = f"Kafka topic '{settings.commands_topic}', partition 1, offset {offset}"
        assert f"undecodable, {place}: not_json" in shown.stdout
    assert LEFT in shown.stdout
    as_json = tail(conf, "--json")
    ids = [json.loads(line)["id"] for line in as_json.stdout.splitlines()]
    assert [each for each in ids if each != "epoch/3"] == [UNLOAD.id]
    assert as_json.stderr.count("undecodable") == 2


def test_following_prints_what_is_issued_until_ctrl_c(conf: Path, journal: LogJournal) -> None:
    journal.append(entry(T, UNLOAD), epoch=3, issued_at_ms=T, before_commit=lambda: None)
    command = [sys.executable, "-m", "controller.cli", "commands"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [*command, "tail", "--json", "--conf", str(conf)], stdout=subprocess.PIPE, text=True, env=environment
    ) as following:
        assert following.stdout is not None
        try:
            assert {json.loads(following.stdout.readline())["id"] for _ in range(2)} == {"epoch/3", UNLOAD.id}
            journal.append(entry(T + PERIOD, SPLIT), epoch=3, issued_at_ms=T, before_commit=lambda: None)
            assert json.loads(following.stdout.readline())["id"] == SPLIT.id
            following.send_signal(signal.SIGINT)
            assert following.stdout.read() == ""
            assert following.wait(30) == 0
        finally:
            following.kill()
