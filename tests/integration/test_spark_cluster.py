"""`trimtab run` on Spark clusters: a standalone one, its master and workers processes of their own; and YARN on HDFS.

The executors get trimtab's code from the controller.  One of them is killed while an interval is decided.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from controller.adapters.disk import jars
from controller.adapters.network.waiting import wait_for
from controller.simulator.cluster import ClusterShape
from tests.folders import decisions_in
from tests.modelled_log import played, settings_in
from tests.spark_cluster import spark_cluster
from tests.yarn_cluster import yarn_cluster

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_INTERVALS = 6
_ROOT = Path(__file__).parents[2]
_BROKER_CONF = (_ROOT / "conf" / "scenarios" / "demo.broker.conf").read_text(encoding="utf-8")
_PATIENCE_SECONDS = 600.0
#: Of YARN: its executors find Spark where the controller has it.
_ON_YARN = f"""
"spark.executor.instances" = "1"
"spark.yarn.am.memory" = "256m"
"spark.yarn.am.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.yarn.jars" = "local:{jars.pyspark_jars()}/*"
"""


class Cluster(Protocol):
    """A running one."""

    @property
    def master(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    def executors(self) -> list[int]: ...


def settings(master: str, folder: Path) -> str:
    return f"""
journal.verdicts_path = "verdicts"
intervals = {{ shards = 4, stale_after_seconds = 3_153_600_000 }}
decisions.mode = "active"
[spark]
master = "{master}"
shuffle_partitions = 2
log_path = "{folder}"
[spark.conf]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={folder}"
"spark.executor.memory" = "512m"
"spark.driver.memory" = "1g"
"""


def journal(folder: Path) -> dict[int, bytes]:
    """Interval -> its entry in the journal."""
    return {interval: record.value for interval, record in decisions_in(folder / "log").items()}


def run_until_all_is_decided(conf: Path, folder: Path, cluster: Cluster, executors: int) -> None:
    """Run a controller; kill an executor when the first interval is decided, and let the rest of the log come then."""
    later = folder / "later"
    command = [sys.executable, "-c", "from controller.cli.main import main; main()", "run", "--conf", str(conf)]
    env = os.environ | cluster.environment | {"PYTHONPATH": str(_ROOT)}
    with (folder / "controller.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)
    try:

        def has(number: int) -> bool:
            assert process.poll() is None, (folder / "controller.log").read_text()[-3000:]
            return len(journal(folder)) >= number

        wait_for(lambda: has(1), _PATIENCE_SECONDS, every=0.2)
        running = cluster.executors()
        assert len(running) == executors
        for file in sorted(later.iterdir()):
            shutil.move(file, folder / "log" / "metrics" / file.name)
        os.kill(running[0], signal.SIGKILL)
        wait_for(lambda: has(_INTERVALS), _PATIENCE_SECONDS, every=0.2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def check_a_lost_executor(folder: Path, cluster: Cluster, checkpoint: str, *, executors: int, more: str = "") -> None:
    """The journal of a controller on *cluster* is that of one process, though one of its *executors* is killed."""
    conf = settings_in(folder, broker_conf=_BROKER_CONF, more=settings(cluster.master, folder / "spark-logs") + more)
    conf.write_text(conf.read_text().replace('checkpoint.path = "checkpoint"', f'checkpoint.path = "{checkpoint}"'))
    entries = played(conf, _INTERVALS, executes=False, shape=ClusterShape(bundles=96, topics=960))
    assert any(entry.decision.commands for entry in entries)
    expected = journal(folder)
    assert len(expected) == _INTERVALS
    shutil.rmtree(folder / "log" / "journal")
    metrics = sorted((folder / "log" / "metrics").iterdir())
    (folder / "later").mkdir()
    for file in metrics[len(metrics) // 2 :]:
        shutil.move(file, folder / "later" / file.name)
    run_until_all_is_decided(conf, folder, cluster, executors)
    assert journal(folder) == expected


def test_the_journal_of_a_cluster_that_loses_an_executor_is_that_of_one_process(tmp_path: Path) -> None:
    with spark_cluster(tmp_path, workers=2) as cluster:
        check_a_lost_executor(tmp_path, cluster, (tmp_path / "checkpoint").as_uri(), executors=2)
        workers = [*tmp_path.glob("worker-*/app-*/*/trimtab-code-*.zip")]
    assert workers, "the executors had the code of the controller"


def test_on_yarn_a_lost_executor_is_replaced_and_the_journal_is_that_of_one_process(tmp_path: Path) -> None:
    """The log is in a folder of this machine, the checkpoint in HDFS, which is Hadoop's default file system."""
    with yarn_cluster(tmp_path, workers=1) as cluster:
        check_a_lost_executor(tmp_path, cluster, f"{cluster.files}/trimtab", executors=1, more=_ON_YARN)
