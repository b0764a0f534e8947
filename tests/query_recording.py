"""Records what batches a real query makes while its process is killed, and started again, in many places.

A recording is JSON: the records of the log, and for each life of the process what it noted (tests.query_recorder) and
what its checkpoint held at its end.  tests/simulation/recorded.py plays one in the simulation's model of Spark.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from controller.adapters.kafka.client import NO_CLIENT
from controller.adapters.process.failpoints import VARIABLE, newest_versions
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.log.factory import log_system
from controller.log.kafka.offsets import PartitionOffsets
from controller.log.port import LogTopic
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from streaming.assembly import Assembly
from tests.kafka_log import read_all

CLUSTER: Final = "lab"
SOURCES: Final[dict[LogTopic, int]] = {"metrics": METRICS, "results": RESULTS}
#: In a folder, line n of the file that was read as number i has the position i * STRIDE + n.
STRIDE: Final = 1_000_000
BROKER_CONF: Final = """loadBalancerBrokerThresholdShedderPercentage=5
loadBalancerHistoryResourcePercentage=0.2
"""
CONF: Final = """cluster.name = "lab"
intervals = {{shards = 3, stale_after_seconds = 3_153_600_000, close_at_most = 2}}
log = {log}
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
decisions.mode = "dry_run"
guardrails.brokers_balance_unknown = "ignore"
[spark]
master = "local[2]"
shuffle_partitions = 2
conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
"""
_START, _PERIOD = 1_735_689_600_000, 60_000
_INTERVALS_OF_THE_LAST_LIFE, _LIFE_SECONDS = 3, 1200.0


class ReadLog(Protocol):
    """A log of which a recording is made."""

    def content(self) -> dict[str, Any]:
        """Topic -> partitions -> records: position, when it was appended (epoch ms), value."""
        ...

    def ends(self) -> list[list[int]]:
        """Source, partition and end of each partition, now."""
        ...

    def offsets(self, checkpoint: Path, batch: int) -> list[list[int]]:
        """Source, partition and end of what was read with *batch*, as Spark's checkpoint says it."""
        ...


def record(
    folder: Path, settings: Settings, log: ReadLog, deaths: Sequence[str], between: Callable[[int], None]
) -> dict[str, Any]:
    """Have one life after the other die at *deaths* ("torn": while states are stored); "" ends in order.

    *between* is called before each life with its number.
    """
    publish, lives = _intervals(settings), list[dict[str, Any]]()
    checkpoint = Path(Assembly(settings).checkpoint)
    for _ in range(5):  # more than a batch closes, so that the first life has to catch up
        next(publish)
    for number, dies in enumerate(deaths):
        between(number)
        notes = folder / f"notes-{number}"
        _live(folder, notes, dies, publish)
        lives.append({"dies": dies, **_life(checkpoint, notes, log)})
    return {"topics": log.content(), "lives": lives}


def as_text(recording: dict[str, Any]) -> str:
    """*recording* as JSON, with a record and a note on a line each."""

    def lines(value: Any, depth: int) -> str:
        if depth and isinstance(value, dict):
            parts = [f"{json.dumps(name)}:{lines(each, depth - 1)}" for name, each in value.items()]
            return "{" + ",\n".join(parts) + "}"
        if depth and isinstance(value, list):
            return "[" + ",\n".join(lines(each, depth - 1) for each in value) + "]"
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    return lines(recording, 4) + "\n"


def _live(folder: Path, notes: Path, dies: str, publish: Iterator[int]) -> None:
    place = "" if dies == "torn" else dies
    command = [sys.executable, "-m", "tests.query_recorder", str(folder / "trimtab.toml"), str(notes), place]
    environment = os.environ | ({VARIABLE: "inside-state-commit"} if dies == "torn" else {})
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    began, seen = time.monotonic(), -1
    while process.poll() is None:
        decided = notes.read_text(encoding="utf-8").count('"decided"') if notes.exists() else 0
        if decided != seen:
            seen = decided
            next(publish)
        if not dies and decided >= _INTERVALS_OF_THE_LAST_LIFE:
            Path(f"{notes}.stop").touch()
        assert time.monotonic() - began < _LIFE_SECONDS, (folder / "output").read_text(encoding="utf-8")[-3000:]
        time.sleep(0.2)
    ended_as_told = process.returncode == (-9 if dies else 0)
    assert ended_as_told, (folder / "output").read_text(encoding="utf-8")[-3000:]


def _intervals(settings: Settings) -> Iterator[int]:
    """Publish one interval after the other."""
    cluster = ModelledCluster(ClusterShape(brokers=2, bundles=6, topics=8), seed=1, name=CLUSTER)
    interval = _START
    while True:
        interval += _PERIOD
        metrics, sweeps = log_system(settings).metrics(), list(cluster.sweeps(interval))
        metrics.publish(namespace_record(CLUSTER, state) for state in cluster.changed_namespaces())
        metrics.publish(each for sweep in sweeps for each in json_records(sweep))
        metrics.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        metrics.close()
        cluster.advance()
        yield interval


def _life(checkpoint: Path, notes: Path, log: ReadLog) -> dict[str, Any]:
    def numbers(name: str) -> list[int]:
        return sorted(int(path.name) for path in (checkpoint / name).glob("[0-9]*") if path.name.isdecimal())

    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return {
        "notes": [json.loads(line) for line in lines],
        "offsets": {str(batch): log.offsets(checkpoint, batch) for batch in numbers("offsets")},
        "commits": numbers("commits"),
        "states": sorted(newest_versions(checkpoint / "state" / "0").values()),
        "ends": log.ends(),
    }


class KafkaRecords:
    """ReadLog."""

    def __init__(self, log: KafkaLogSettings) -> None:
        self._log = log
        self._names = {topic: getattr(log, f"{topic}_topic") for topic in SOURCES}

    def content(self) -> dict[str, Any]:
        """See ReadLog."""
        found: dict[str, Any] = {topic: [] for topic in SOURCES}
        for topic, name in self._names.items():
            for partition in self._partitions(name):
                records = read_all(self._log.bootstrap, name, partition)
                found[topic].append([[each.position, each.timestamp_ms, each.value.decode()] for each in records])
        return found

    def ends(self) -> list[list[int]]:
        """See ReadLog."""
        offsets = PartitionOffsets(self._log.bootstrap, NO_CLIENT)
        return sorted(
            [SOURCES[topic], partition, offsets.stable_end(name, partition)]
            for topic, name in self._names.items()
            for partition in self._partitions(name)
        )

    def _partitions(self, name: str) -> Sequence[int]:
        from confluent_kafka.admin import AdminClient

        metadata = AdminClient({"bootstrap.servers": self._log.bootstrap}).list_topics(name, timeout=10)
        return sorted(metadata.topics[name].partitions)

    def offsets(self, checkpoint: Path, batch: int) -> list[list[int]]:
        """See ReadLog."""
        read = json.loads((checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2])
        return sorted(
            [SOURCES[topic], int(partition), end]
            for topic, name in self._names.items()
            for partition, end in read.get(name, {}).items()
        )


class FolderRecords:
    """ReadLog.  The end of a topic is the number of its files that were read, times STRIDE."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self._folder, self._checkpoint = folder, checkpoint

    def content(self) -> dict[str, Any]:
        """See ReadLog; one partition, and a fourth field: the name of the file."""
        found: dict[str, Any] = {}
        for topic in SOURCES:
            records = list[list[Any]]()
            for number, (name, modified_ms) in enumerate(self._read_files(topic)):
                lines = (self._folder / topic / name).read_text(encoding="utf-8").split("\n")
                records += [[number * STRIDE + n, modified_ms, line, name] for n, line in enumerate(lines) if line]
            found[topic] = [records]
        return found

    def ends(self) -> list[list[int]]:
        """See ReadLog."""
        return sorted([SOURCES[topic], 0, len(self._read_files(topic)) * STRIDE] for topic in SOURCES)

    def offsets(self, checkpoint: Path, batch: int) -> list[list[int]]:
        """See ReadLog."""
        text = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2]
        upto = int(json.loads(text)["logOffset"])
        return sorted([SOURCES[topic], 0, len(self._read_files(topic, upto)) * STRIDE] for topic in SOURCES)

    def _read_files(self, topic: LogTopic, upto: int = sys.maxsize) -> list[tuple[str, int]]:
        """Names of the files of *topic* that Spark's list has up to the offset *upto*, and when they were modified."""
        found = dict[str, tuple[int, int]]()
        for path in (self._checkpoint / "sources" / "0").glob("[0-9]*"):
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                folder, _, name = entry["path"].rpartition("/")
                if folder.endswith(f"/{topic}") and entry["batchId"] <= upto:
                    found[name] = entry["batchId"], entry["timestamp"]
        in_order = sorted(found.items(), key=lambda each: (each[1][0], each[0]))
        return [(name, modified) for name, (_, modified) in in_order]
