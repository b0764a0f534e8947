"""``trimtab bench pipeline --as-it-arrives`` on a real Kafka, with a real controller, at a small size."""

import json

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from controller.lab.servers import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_SIZE = {"topics": 400, "bundles": 40, "brokers": 4, "period_seconds": 5}


def test_a_running_controller_is_measured_from_outside_while_sweeps_come_one_by_one(kafka: KafkaServer) -> None:
    size = [word for name, value in _SIZE.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = ["bench", "pipeline", "--as-it-arrives", "--form", "broker_sweep", "--runs", "2", "--json"]
    result = CliRunner().invoke(app, [*command, "--bootstrap", kafka.bootstrap, *size])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {name: found[name] for name in _SIZE} == _SIZE
    assert 0 < found["lowest_cpu_seconds"] <= found["cpu_seconds"] <= found["highest_cpu_seconds"]
    assert 0 < found["delay_seconds"] <= found["longest_delay_seconds"]
    # A JVM, and at least one shard's state in each interval.
    assert found["resident_megabytes"] > 200, result.output
    assert found["state_megabytes"] > 0
    assert 0 <= found["idle_cores"] < 2, result.output
    # One batch before the tick, one with it, one now and then: a query that reads whatever has come makes a dozen.
    stages = found["stages"]
    assert 1 <= stages["batches"] <= 5, result.output
    # Each batch writes the state of all shards, some kB here; more would be more batches, or shards written twice.
    assert found["state_megabytes"] < 0.5, result.output
    assert stages["python_seconds"] > 0
    assert stages["commit_seconds"] > 0
    assert all(stages[f"{stage}_seconds"] > 0 for stage in ("plan", "read", "fold", "decide"))
