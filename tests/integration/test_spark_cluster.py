"""`trimtab run` on a standalone Spark cluster: a master and two workers in processes of their own.

The executors get trimtab's code from the controller.  One of them is killed while an interval is decided.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controller.adapters.folder.journal import read_journal
from controller.adapters.network.waiting import wait_for
from controller.simulator.cluster import ClusterShape
from tests.modelled_log import played, settings_in
from tests.spark_cluster import SparkCluster, spark_cluster

pytestmark = pytest.mark.integration

_INTERVALS = 6
_ROOT = Path(__file__).parents[2]
_BROKER_CONF = (_ROOT / "conf" / "scenarios" / "demo.broker.conf").read_text(encoding="utf-8")
_PATIENCE_SECONDS = 600.0


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
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.executor.memory" = "512m"
"spark.driver.memory" = "1g"
"""


def decided(folder: Path) -> list[tuple[int, object]]:
    return [(entry.interval, entry.decision.commands) for entry in read_journal(folder / "log")]


def run_until_all_is_decided(conf: Path, folder: Path, cluster: SparkCluster) -> None:
    """Run a controller; kill an executor when the first interval is decided, and let the rest of the log come then."""
    later = folder / "later"
    command = [sys.executable, "-c", "from controller.cli.main import main; main()", "run", "--conf", str(conf)]
    env = os.environ | {"PYTHONPATH": str(_ROOT)}
    with (folder / "controller.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)
    try:

        def has(number: int) -> bool:
            assert process.poll() is None, (folder / "controller.log").read_text()[-3000:]
            return len(decided(folder)) >= number

        wait_for(lambda: has(1), _PATIENCE_SECONDS, every=0.2)
        executors = cluster.executors()
        assert len(executors) == 2
        for file in sorted(later.iterdir()):
            shutil.move(file, folder / "log" / "metrics" / file.name)
        os.kill(executors[0], signal.SIGKILL)
        wait_for(lambda: has(_INTERVALS), _PATIENCE_SECONDS, every=0.2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_the_decisions_of_a_cluster_that_loses_an_executor_are_those_of_one_process(tmp_path: Path) -> None:
    with spark_cluster(tmp_path, workers=2) as cluster:
        uri = (tmp_path / "checkpoint").as_uri()
        conf = settings_in(tmp_path, broker_conf=_BROKER_CONF, more=settings(cluster.master, tmp_path / "spark-logs"))
        conf.write_text(conf.read_text().replace('checkpoint.path = "checkpoint"', f'checkpoint.path = "{uri}"'))
        entries = played(conf, _INTERVALS, executes=False, shape=ClusterShape(bundles=96, topics=960))
        expected = [(entry.interval, entry.decision.commands) for entry in entries]
        assert any(commands for _, commands in expected)
        shutil.rmtree(tmp_path / "log" / "journal")
        metrics = sorted((tmp_path / "log" / "metrics").iterdir())
        (tmp_path / "later").mkdir()
        for file in metrics[len(metrics) // 2 :]:
            shutil.move(file, tmp_path / "later" / file.name)
        run_until_all_is_decided(conf, tmp_path, cluster)
        workers = [*tmp_path.glob("worker-*/app-*/*/trimtab-code-*.zip")]
    assert decided(tmp_path) == expected
    assert workers, "the executors had the code of the controller"
