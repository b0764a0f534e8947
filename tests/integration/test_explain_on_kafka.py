"""``trimtab explain``, ``trimtab journal`` and ``trimtab audit`` on a log in a real Kafka with two partitions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.adapters.network.waiting import wait_for
from controller.cli.app import app
from controller.lab.servers import KafkaServer
from controller.log.factory import log_system
from controller.offline.explanations.explanation import explain
from controller.offline.explanations.sources import journalled_decision
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.decisions import DecisionFilter, decisions
from controller.wire.base import read_object
from tests.kafka_log import as_toml, named_topics
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER

pytestmark = pytest.mark.integration

_INTERVALS = 4
_EAGER = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
minUnloadMessage=1
minUnloadMessageThroughput=1
maxUnloadPercentage=0.5
"""


def _in_kafka(kafka: KafkaServer, folder: Path) -> Settings:
    (folder / "broker.conf").write_text(_EAGER, encoding="utf-8")
    path = folder / "trimtab.toml"
    path.write_text(
        f"""cluster.name = "{CLUSTER}"
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
guardrails.brokers_balance_unknown = "ignore"
[log]
kind = "kafka"
[log.kafka]
{as_toml(named_topics(kafka.bootstrap))}
""",
        encoding="utf-8",
    )
    return read_settings(path)


def _values(folder: Path, topic: str) -> Iterator[tuple[int, list[bytes]]]:
    """The interval of each tick, and the records before it; T + intervals behind the last tick."""
    found: list[bytes] = []
    for path in sorted((folder / "log" / topic).glob("*.jsonl")):
        for value in path.read_bytes().splitlines():
            fields = read_object(value)
            if fields["type"] == "tick":
                yield fields["interval"], found
                found = []
            else:
                found.append(value)


def test_decisions_in_kafka_are_browsed_and_made_again_the_same(kafka: KafkaServer, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "kafka").mkdir()
    entries = played(settings_in(tmp_path / "folder", broker_conf=_EAGER), _INTERVALS)
    settings = _in_kafka(kafka, tmp_path / "kafka")
    system = log_system(settings)
    metrics, journal = system.metrics(), system.journal()
    journal.open()
    journal.begin_epoch(1)
    results = dict(_values(tmp_path / "folder", "results"))
    for (interval, records), entry in zip(_values(tmp_path / "folder", "metrics"), entries, strict=True):
        metrics.publish((str(number), value) for number, value in enumerate(records))
        metrics.results((str(number), value) for number, value in enumerate(results[interval]))
        metrics.tick(interval, _roster(tmp_path / "folder", interval))
        journal.append(entry, epoch=1, issued_at_ms=interval, before_commit=lambda: None)

    # Kafka lets readers see a transaction a moment after its end.
    wait_for(lambda: len(decisions(settings, DecisionFilter(), 100)) == _INTERVALS, 60, every=0.1)
    found = decisions(settings, DecisionFilter(), 100)
    assert [each.interval for each in found] == [entry.interval for entry in reversed(entries)]
    moved = [entry for entry in entries if entry.decision.commands]
    assert len(moved) > 1
    for entry in entries:
        told = journalled_decision(settings, entry.interval, before=30)
        assert told.reproduced is True
        assert told.verdicts == entry.decision.verdicts
        for command in entry.decision.commands:
            answer = explain(told, command.bundle, "bundle")
            assert (answer.chosen, answer.where_to) == (True, command.destination)
    of_bundle = decisions(settings, DecisionFilter(bundle=moved[0].decision.commands[0].bundle, issued=True), 1)
    assert [[result and result.status for _, result in each.commands] for each in of_bundle] == [["done"]]
    assert _audited(tmp_path / "kafka") == _audited(tmp_path / "folder")


def _audited(folder: Path) -> dict[str, Any]:
    """What ``trimtab audit`` tells of the live log of the settings in *folder*."""
    words = ["audit", "--conf", str(folder / "trimtab.toml"), "--from", "2025-01-01T00:00:00Z", "--json"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    found: dict[str, Any] = json.loads(said.stdout)
    assert found["total"]["moves"] == len(found["moves"]) > 1
    return found


def _roster(folder: Path, interval: int) -> dict[str, str | None]:
    lines = (line for path in sorted((folder / "log" / "metrics").glob("*.jsonl")) for line in path.open())
    ticks = [fields for fields in map(json.loads, lines) if fields["type"] == "tick"]
    roster = next(tick["roster"] for tick in ticks if tick["interval"] == interval)
    return {each["broker"]: each["sweepId"] for each in roster}
