"""Where the time of the query's micro-batches goes, from the log of events that Spark writes while it runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from controller.wire.answers.bench import StagesAnswer

_PROGRESS: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
_STAGE: Final = "SparkListenerStageCompleted"
#: The query that decides, by Spark's name for it; another one in the same log is not counted.
_QUERY: Final = "trimtab-decisions"
#: What Spark calls the time that its Python workers ran.
_PYTHON: Final = "time to run Python workers"
#: What Spark calls the time of a batch without its planning.
_ADDED: Final = "addBatch"
_SHUFFLED_ROWS: Final = "internal.metrics.shuffle.write.recordsWritten"
_SHUFFLED_BYTES: Final = "internal.metrics.shuffle.write.bytesWritten"
_RESULT_BYTES: Final = "internal.metrics.resultSize"
_STATE_BYTES: Final = "rocksdbTotalBytesWritten"

#: Options of Spark that make it log its events to a folder, as :func:`read_stages` reads them.
_EVENT_LOG: Final = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def event_log(folder: Path) -> dict[str, str]:
    """Spark's options that make it log its events to *folder*, which is made; see :func:`read_stages`."""
    folder.mkdir(parents=True, exist_ok=True)
    return {**_EVENT_LOG, "spark.eventLog.dir": folder.resolve().as_uri()}


def stages_of(lines: Iterable[str], since_ms: int, intervals: int) -> StagesAnswer:
    """The stages of the batches that began at *since_ms*, epoch ms, or later; *lines* are Spark's event log.

    *intervals*: so many passed since then.
    """
    batches: list[Mapping[str, Any]] = []
    stages: list[Mapping[str, Any]] = []
    # What Spark logs between two batches is of the second one.
    of_batch: list[Mapping[str, Any]] = []
    for event in map(json.loads, lines):
        if event["Event"] == _STAGE:
            of_batch.append(event["Stage Info"])
        elif event["Event"] == _PROGRESS and _ADDED in event["progress"]["durationMs"]:
            if event["progress"]["name"] == _QUERY and _began(event["progress"]["timestamp"]) >= since_ms:
                batches.append(event["progress"])
                stages += of_batch
            of_batch = []
    return _means(batches, stages, intervals)


def _means(batches: Sequence[Mapping[str, Any]], stages: Sequence[Mapping[str, Any]], intervals: int) -> StagesAnswer:
    in_python = [stage for stage in stages if _sum(stage, _PYTHON)]
    decoding = [stage for stage in stages if stage not in in_python]
    read, fold = _seconds(decoding), _seconds(in_python)
    whole, added = (sum(batch["durationMs"][name] for batch in batches) / 1000 for name in ("triggerExecution", _ADDED))
    states = [one for batch in batches for one in batch["stateOperators"]]

    def mean(total: float) -> float:
        return round(total / intervals, 3)

    def total(some: Sequence[Mapping[str, Any]], name: str) -> int:
        return sum(_sum(stage, name) for stage in some)

    return StagesAnswer(
        batches=mean(len(batches)),
        records=mean(sum(batch["sources"][0].get("numInputRows", 0) for batch in batches)),
        plan_seconds=mean(whole - added),
        read_seconds=mean(read),
        fold_seconds=mean(fold),
        python_seconds=mean(total(in_python, _PYTHON) / 1000),
        commit_seconds=mean(sum(one["commitTimeMs"] for one in states) / 1000),
        decide_seconds=mean(max(0.0, added - read - fold)),
        shuffled_rows=mean(total(decoding, _SHUFFLED_ROWS)),
        shuffled_megabytes=mean(total(decoding, _SHUFFLED_BYTES) / 1e6),
        put_megabytes=mean(sum(one["customMetrics"].get(_STATE_BYTES, 0) for one in states) / 1e6),
        driver_megabytes=mean(total(in_python, _RESULT_BYTES) / 1e6),
    )


def read_stages(folder: Path, since_ms: int, intervals: int) -> StagesAnswer:
    """The stages in the one event log in *folder*; see :func:`stages_of`."""
    (file,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    with file.open(encoding="utf-8") as lines:
        # Spark may be in the middle of the last line.
        return stages_of((line for line in lines if line.endswith("\n")), since_ms, intervals)


def _began(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp() * 1000


def _seconds(stages: Iterable[Mapping[str, Any]]) -> float:
    return sum(int(stage["Completion Time"]) - int(stage["Submission Time"]) for stage in stages) / 1000


def _sum(stage: Mapping[str, Any], name: str) -> int:
    """What *stage* adds up under *name*; 0 where it has no such figure."""
    return sum(int(one["Value"]) for one in stage["Accumulables"] if one.get("Name") == name)
