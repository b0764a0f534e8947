"""``trimtab explain``, ``trimtab journal`` and ``trimtab audit`` on a log in a real Kafka with two partitions."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.adapters.network.waiting import wait_for
from controller.cli.app import app
from controller.lab.servers import KafkaServer
from controller.offline.explanations.explanation import explain
from controller.offline.explanations.sources import journalled_decision
from controller.status.decisions import DecisionFilter, decisions
from tests.modelled_kafka import played_on

pytestmark = pytest.mark.integration

_INTERVALS = 4


def test_decisions_in_kafka_are_browsed_and_made_again_the_same(kafka: KafkaServer, tmp_path: Path) -> None:
    settings, entries = played_on(kafka, tmp_path, _INTERVALS)
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
