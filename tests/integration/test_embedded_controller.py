"""The real query on a real folder log, also in processes that are killed: what a user of `trimtab run` gets."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.metrics.controller import ControllerMetrics
from controller.cli.shared.metrics_address import served
from controller.lab.servers import free_port
from controller.settings.trimtab_toml import read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.wire.commands import EpochEvent, parse_event
from controller.wire.dead_letter import KEPT_BYTES, DeadLetter
from controller.wire.journal import encode_entry
from tests import controllers
from tests.folders import commands_in, entries_in, metrics_in

pytestmark = pytest.mark.integration

_START, _PERIOD, _INTERVALS = 1_735_689_600_000, 60_000, 5
#: A life takes 10 s of processor time; a busy machine may need many times that.
_LIFE_SECONDS, _END_SECONDS = 600.0, 180.0
_BROKER_CONF = """
loadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight
loadBalancerBrokerThresholdShedderPercentage=5
loadBalancerHistoryResourcePercentage=0.2
"""
_TOPIC = (
    b'{"v":1,"type":"topic_stats","cluster":"lab","broker":"b:1","bundle":"t/n/0x00000000_0xffffffff","topic":"x",'
    b'"msgRateIn":%s,"msgRateOut":1,"msgThroughputIn":1,"msgThroughputOut":1,"producerCount":1,"consumerCount":1}'
)
_TICK = b'{"v":%d,"type":"tick","cluster":"lab","interval":%d,"partitions":{"metrics":1,"results":1}}'
_FAR_FUTURE = 4_102_444_800_000
_BAD_LINES = {
    "not_json": [b"{not json"],
    "unknown_type": [b'{"v":1,"type":"never_heard_of","cluster":"lab"}'],
    "unknown_version": [_TICK % (7, 60_000)],
    "missing_field": [b'{"v":1,"type":"broker_sweep","cluster":"lab","broker":"b:1"}'],
    "bad_value": [_TOPIC % b'"NaN"', _TOPIC % b"-1", _TOPIC % b'"Infinity"'],
    "impossible_bundle": [(_TOPIC % b"1").replace(b"0xffffffff", b"0x00000000")],
    "misaligned_interval": [_TICK % (1, 60_001)],
    "future_interval": [_TICK % (1, _FAR_FUTURE)],
    "too_large": [b'{"v":1,"type":"tick","padding":"' + b"x" * 10_000_000 + b'"}'],
}
_BAD = sum(len(lines) for lines in _BAD_LINES.values())
#: Where controllers are killed, one life after the other, in the order in which an interval passes them and back.
_PLACES = ("inside-state-commit", "after-decide", "inside-transaction", "after-commit", "before-spark-commit")
_ORDERS = {"forwards": _PLACES, "backwards": _PLACES[::-1]}


def publish(folder: Path) -> None:
    """Five intervals of a cluster that obeys nobody, with bad records between."""
    bad = [line for lines in _BAD_LINES.values() for line in lines]
    publish_intervals(folder, [_START + number * _PERIOD for number in range(1, _INTERVALS + 1)], bad)


def publish_intervals(folder: Path, intervals: Sequence[int], bad: Sequence[bytes] = ()) -> None:
    cluster = ModelledCluster(ClusterShape(brokers=4, bundles=32, topics=400), seed=1, name="lab")
    metrics = metrics_in(folder, cluster="lab")
    metrics.publish(namespace_record("lab", state) for state in cluster.changed_namespaces())
    metrics.publish(("", line) for line in bad)
    for interval in intervals:
        sweeps = list(cluster.sweeps(interval))
        metrics.publish(record for sweep in sweeps for record in json_records(sweep))
        metrics.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        cluster.advance()


def settings(
    folder: Path, name: str, *, shuffle_partitions: int = 1, files_a_batch: int = 1000, period_ms: int = _PERIOD
) -> Path:
    (folder / "broker.conf").write_text(_BROKER_CONF)
    file = folder / f"{name}.toml"
    file.write_text(
        f"""
        [cluster]
        name = "lab"
        [intervals]
        shards = 4
        period_seconds = {period_ms // 1000}
        stale_after_seconds = 3_153_600_000
        stalled_after_seconds = {max(600, 3 * period_ms // 1000)}
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
        max_offsets_per_trigger = {files_a_batch}
        # A short life: started quickly beats compiled well.
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        [decisions]
        mode = "active"
        command_ttl_seconds = {max(300, 2 * period_ms // 1000)}
        [guardrails]
        move_undescribed = true
        brokers_balance_unknown = "ignore"
        freeze_intervals = 0
        window_seconds = {max(3600, 2 * period_ms // 1000)}
        """
    )
    return file


def run_until(condition: Callable[[], bool], conf: Path, failpoint: str = "") -> None:
    """Run the controller in a process until *condition* holds, or until a failpoint kills it."""
    command = [sys.executable, "-c", "from controller.cli.main import main; main()", "run", "--conf", str(conf)]
    env = os.environ | {"TRIMTAB_FAILPOINT": failpoint}
    with (conf.parent / "controller.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        deadline = time.monotonic() + _LIFE_SECONDS
        while process.poll() is None and not condition() and time.monotonic() < deadline:
            time.sleep(0.2)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(_END_SECONDS)
    if failpoint:
        assert process.returncode == -signal.SIGKILL, (conf.parent / "controller.log").read_text()[-3000:]
    else:
        assert condition(), (conf.parent / "controller.log").read_text()[-3000:]


def journal(folder: Path) -> list[bytes]:
    return [encode_entry(entry) for entry in entries_in(folder)]


def commands(folder: Path) -> list[tuple[str, str]]:
    """What was issued, in order; the leadership that issued it is no part of a command."""
    log = commands_in(folder)
    events = [parse_event(event) for event in log.poll()]
    return [(event.id, event.subject) for event in events if not isinstance(event, EpochEvent)]


def dead_letters(folder: Path) -> list[DeadLetter]:
    files = sorted((folder / "dead_letters").glob("*.jsonl"))
    return [DeadLetter.model_validate_json(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, list[bytes]]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    publish(folder / "log")
    read, shown, port = read_settings(settings(folder, "log")), ControllerMetrics(), free_port()

    def is_through() -> bool:
        if len(journal(folder / "log")) < _INTERVALS or len(dead_letters(folder / "log")) < _BAD:
            return False
        if not (folder / "metrics").exists():
            page = answered(port, "metrics")
            if 'trimtab_stage_seconds_count{stage="prune"} 0.0' in page:
                return False  # the batch has not ended yet
            for path in ("readyz", "healthz"):
                (folder / path).write_text(answered(port, path))
            (folder / "metrics").write_text(page)
        return True

    with served(shown, read, f"127.0.0.1:{port}"):
        controllers.run_until(is_through, read, spark, shown)
    return folder / "log", journal(folder / "log")


def answered(port: int, path: str) -> str:
    """What the controller answers."""
    return str(urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10).read().decode())


def test_its_metrics_tell_what_it_has_decided_and_it_is_ready(uninterrupted: tuple[Path, list[bytes]]) -> None:
    folder, _ = uninterrupted
    entries, letters = list(entries_in(folder)), Counter(letter.reason for letter in dead_letters(folder))
    families = text_string_to_metric_families((folder.parent / "metrics").read_text())
    shown = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    assert shown["trimtab_leader",] == shown["trimtab_ready",] == shown["trimtab_epoch",] == 1
    assert shown["trimtab_last_interval_timestamp_seconds",] == entries[-1].interval / 1000
    assert shown["trimtab_interval_delay_seconds_count",] == _INTERVALS
    assert (shown["trimtab_brokers",], shown["trimtab_bundles",]) == (4, 32)
    assert shown["trimtab_mode", "active"] == 1
    for reason, number in letters.items():
        assert shown["trimtab_dead_letters_total", reason] == number
    issued = sum(value for (name, *_), value in shown.items() if name == "trimtab_commands_total")
    assert issued == sum(len(entry.decision.commands) for entry in entries)
    assert shown["trimtab_in_flight",] == len(entries[-1].memory.in_flight)
    assert shown["trimtab_stage_seconds_sum", "query"] > 0
    assert (folder.parent / "readyz").read_text() == "ready: controller leads: it reads the log, epoch 1\n"
    assert (folder.parent / "healthz").read_text() == "alive\n"


def test_every_interval_is_decided_and_load_leaves_the_busy_brokers(uninterrupted: tuple[Path, list[bytes]]) -> None:
    folder, _ = uninterrupted
    entries = list(entries_in(folder))
    assert [entry.interval for entry in entries] == [_START + n * _PERIOD for n in range(1, _INTERVALS + 1)]
    assert sum(len(entry.decision.commands) for entry in entries) > 0


def test_bad_records_lie_in_the_dead_letters_with_reason_and_place_and_the_query_goes_on(
    uninterrupted: tuple[Path, list[bytes]],
) -> None:
    folder, _ = uninterrupted
    found = sorted(dead_letters(folder), key=lambda letter: (letter.source.file or "", letter.source.offset))
    expected = [(reason, line) for reason, lines in _BAD_LINES.items() for line in lines]
    assert [letter.reason for letter in found] == [reason for reason, _ in expected]
    for letter, (_, line) in zip(found, expected, strict=True):
        assert letter.size == len(line)
        assert letter.truncated == line[:KEPT_BYTES]
        file = folder / "metrics" / (letter.source.file or "")
        assert file.read_bytes().split(b"\n")[letter.source.offset] == line


def killed_at(places: Sequence[str], folder: Path) -> Path:
    publish(folder / "log")
    # A state commit can be torn once a batch, so there have to be several.
    conf = settings(folder, "log", shuffle_partitions=2, files_a_batch=3)
    for place in places:
        run_until(lambda: False, conf, failpoint=place)
    run_until(lambda: len(journal(folder / "log")) == _INTERVALS, conf)
    return folder / "log"


@pytest.mark.parametrize("order", ["forwards", pytest.param("backwards", marks=pytest.mark.extended)])
def test_killed_at_each_place_and_restarted_it_decides_as_if_nothing_had_happened(
    uninterrupted: tuple[Path, list[bytes]], tmp_path: Path, order: str
) -> None:
    log = killed_at(_ORDERS[order], tmp_path)
    assert journal(log) == uninterrupted[1]
    issued = commands(log)
    assert issued == commands(uninterrupted[0])
    assert len(issued) == len(set(issued)) > 0


@pytest.mark.parametrize("files_a_batch", [2, 1000])
def test_after_an_absence_the_newest_interval_acts_alone(
    tmp_path: Path, spark: SparkSession, files_a_batch: int
) -> None:
    # A period of which much is left: the controller takes a while to start.
    now_ms = int(time.time() * 1000)
    period = next(each for each in (3_600_000, 4_320_000, 5_400_000) if now_ms % each < each - _LIFE_SECONDS * 1000)
    intervals = [now_ms // period * period - n * period for n in reversed(range(4))]
    publish_intervals(tmp_path / "log", intervals)
    conf = settings(tmp_path, "log", files_a_batch=files_a_batch, period_ms=period)
    controllers.run_until(lambda: len(journal(tmp_path / "log")) == len(intervals), read_settings(conf), spark)
    entries = list(entries_in(tmp_path / "log"))
    assert [entry.interval for entry in entries] == intervals
    assert [len(entry.decision.commands) for entry in entries[:-1]] == [0, 0, 0]
    assert len(entries[-1].decision.commands) > 0
    assert "CatchingUp" in entries[-2].decision.summary


def test_a_second_controller_waits_while_the_first_holds_the_lock(tmp_path: Path) -> None:
    first, second = FileLeadership(tmp_path), FileLeadership(tmp_path)
    assert first.acquire(lambda: False)
    tries = iter([False, True])
    assert not second.acquire(lambda: next(tries))
    first.release()
    assert second.acquire(lambda: False)
