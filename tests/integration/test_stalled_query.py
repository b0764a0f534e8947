"""A micro-batch that hangs while ticks arrive: the process ends by itself, and the next one decides what was left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.adapters.process.failpoints import HANG_VARIABLE
from controller.model.errors import StalledError
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records
from tests.folders import entries_in, metrics_in

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_PERIOD = 1_000
_SETTINGS = """
cluster.name = "lab"
intervals.period_seconds = 1
intervals.shards = 1
intervals.stalled_after_seconds = 25
log.kind = "folder"
log.folder.path = "log"
election.kind = "file"
election.path = "election"
checkpoint.path = "checkpoint"
[spark]
master = "local[2]"
shuffle_partitions = 1
conf = { "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }
"""


def run_until(ended: Callable[[subprocess.Popen[bytes]], bool], folder: Path, hang: str) -> int:
    """Tick the log every second, and run a controller on it until it has *ended*: its exit code."""
    cluster = ModelledCluster(ClusterShape(brokers=2, bundles=8, topics=40), seed=1, name="lab")
    metrics = metrics_in(folder / "log", cluster="lab")
    command = [sys.executable, "-c", "from controller.cli.main import main; main()", "run", "--conf", "trimtab.toml"]
    env = os.environ | {HANG_VARIABLE: hang, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (folder / "controller.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)
        deadline = time.monotonic() + 180
        while not ended(process) and time.monotonic() < deadline:
            interval = time.time_ns() // 1_000_000 // _PERIOD * _PERIOD
            sweeps = list(cluster.sweeps(interval))
            metrics.publish(record for sweep in sweeps for record in json_records(sweep))
            metrics.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
            time.sleep(1)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        return process.wait(60)


def test_a_batch_that_hangs_ends_the_process_with_a_code_of_its_own_and_the_next_one_goes_on(tmp_path: Path) -> None:
    (tmp_path / "trimtab.toml").write_text(_SETTINGS)
    (tmp_path / "broker.conf").write_text("")
    code = run_until(lambda process: process.poll() is not None, tmp_path, "after-decide:1")
    told = (tmp_path / "controller.log").read_text()
    assert code == StalledError.exit_code, told[-3000:]
    assert "a query did not stop within 15 s: exiting" in told
    assert "has finished no batch for 25 s while ticks arrived" in told
    assert not list(entries_in(tmp_path / "log"))

    code = run_until(lambda _: len(list(entries_in(tmp_path / "log"))) > 2, tmp_path, "")
    assert code == 0, (tmp_path / "controller.log").read_text()[-3000:]
