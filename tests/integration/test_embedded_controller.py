"""The real query on a real folder log, in processes of their own: what a user of `trimtab run` gets."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.adapters.folder import FolderMetricsLog, read_journal
from controller.adapters.folder_leadership import FileLeadership
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.wire.journal import encode_entry

pytestmark = pytest.mark.integration

_START, _PERIOD, _INTERVALS = 1_735_689_600_000, 60_000, 5
_BROKER_CONF = """
loadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight
loadBalancerBrokerThresholdShedderPercentage=5
loadBalancerHistoryResourcePercentage=0.2
"""
_BAD_LINES = [
    b"{not json",
    b'{"v":1,"type":"never_heard_of","cluster":"lab"}',
    b'{"v":7,"type":"tick","cluster":"lab","interval":60000}',
    b'{"v":1,"type":"broker_sweep","cluster":"lab","broker":"b:1"}',
    b'{"v":1,"type":"tick","cluster":"lab","interval":60001,"partitions":{"metrics":1,"results":1}}',
]


def publish(folder: Path) -> None:
    """Five intervals of a cluster that obeys nobody, with bad records between."""
    cluster = ModelledCluster(ClusterShape(brokers=4, bundles=32, topics=400), seed=1, name="lab")
    metrics = FolderMetricsLog(folder, cluster="lab")
    metrics.publish(namespace_record("lab", state) for state in cluster.changed_namespaces())
    metrics.publish(("", line) for line in _BAD_LINES)
    for number in range(1, _INTERVALS + 1):
        sweeps = list(cluster.sweeps(_START + number * _PERIOD))
        metrics.publish(record for sweep in sweeps for record in json_records(sweep))
        metrics.tick(_START + number * _PERIOD, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        cluster.advance()


def settings(folder: Path, name: str, *, shuffle_partitions: int = 1) -> Path:
    (folder / "broker.conf").write_text(_BROKER_CONF)
    file = folder / f"{name}.toml"
    file.write_text(
        f"""
        [cluster]
        name = "lab"
        [intervals]
        shards = 4
        stale_after_seconds = 3_153_600_000
        [log]
        kind = "folder"
        [log.folder]
        path = "{name}"
        [election]
        kind = "file"
        path = "{name}/election"
        [checkpoint]
        path = "{name}/checkpoint"
        [spark]
        master = "local[2]"
        shuffle_partitions = {shuffle_partitions}
        [decisions]
        mode = "active"
        """
    )
    return file


def run_until(condition: Callable[[], bool], conf: Path, *, failpoint: str = "") -> None:
    """Run the controller until *condition* holds, or until a failpoint kills it."""
    command = [sys.executable, "-c", "from controller.cli import main; main()", "run", "--conf", str(conf)]
    env = os.environ | {"TRIMTAB_FAILPOINT": failpoint}
    with (conf.parent / "controller.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while process.poll() is None and not condition() and time.monotonic() < deadline:
            time.sleep(0.2)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)
    if failpoint:
        assert process.returncode == -signal.SIGKILL, (conf.parent / "controller.log").read_text()[-3000:]
    else:
        assert condition(), (conf.parent / "controller.log").read_text()[-3000:]


def journal(folder: Path) -> list[bytes]:
    return [encode_entry(entry) for entry in read_journal(folder)]


def dead_letters(folder: Path) -> list[str]:
    files = sorted((folder / "dead_letters").glob("*.jsonl"))
    return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    publish(folder / "log")
    conf = settings(folder, "log")
    run_until(
        lambda: len(journal(folder / "log")) == _INTERVALS and len(dead_letters(folder / "log")) == len(_BAD_LINES),
        conf,
    )
    return folder / "log", journal(folder / "log")


def test_every_interval_is_decided_and_load_leaves_the_busy_brokers(uninterrupted: tuple[Path, list[bytes]]) -> None:
    folder, _ = uninterrupted
    entries = list(read_journal(folder))
    assert [entry.interval for entry in entries] == [_START + n * _PERIOD for n in range(1, _INTERVALS + 1)]
    assert sum(len(entry.decision.commands) for entry in entries) > 0


def test_bad_records_lie_in_the_dead_letters_with_their_reasons(uninterrupted: tuple[Path, list[bytes]]) -> None:
    folder, _ = uninterrupted
    found = "\n".join(dead_letters(folder))
    for reason in ("not_json", "unknown_type", "unknown_version", "missing_field", "misaligned_interval"):
        assert f'"reason":"{reason}"' in found


@pytest.mark.parametrize(
    "failpoint", ["after-decide:2", "inside-transaction:3", "after-commit:2", "before-spark-commit:1"]
)
def test_killed_anywhere_and_restarted_it_decides_as_if_nothing_had_happened(
    tmp_path: Path, uninterrupted: tuple[Path, list[bytes]], failpoint: str
) -> None:
    publish(tmp_path / "log")
    conf = settings(tmp_path, "log", shuffle_partitions=2)
    run_until(lambda: False, conf, failpoint=failpoint)
    run_until(lambda: len(journal(tmp_path / "log")) == _INTERVALS, conf)
    assert journal(tmp_path / "log") == uninterrupted[1]


def test_a_second_controller_waits_while_the_first_holds_the_lock(tmp_path: Path) -> None:
    first, second = FileLeadership(tmp_path), FileLeadership(tmp_path)
    assert first.acquire(lambda: False)
    tries = iter([False, True])
    assert not second.acquire(lambda: next(tries))
    first.release()
    assert second.acquire(lambda: False)
