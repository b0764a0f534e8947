"""Where the time of the query's micro-batches goes, from the log of events that Spark writes while it runs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

_PROGRESS: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
_STAGE: Final = "SparkListenerStageCompleted"
#: What Spark calls the time that its Python workers ran.
_PYTHON: Final = "time to run Python workers"
#: What Spark calls the time of a batch without its planning.
_ADDED: Final = "addBatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the micro-batches of some time did; seconds as a clock shows them, but where tasks are added up."""

    batches: int
    records: int
    #: The log's end, planning, and the checkpoint's logs of offsets and commits.
    plan: float
    #: Reading the log, its decode, and the rows written for the shuffle.
    read: float
    #: The rest of Spark's work: rows to Python, the fold, state read and written.
    fold: float
    #: Of ``fold``, in the Python workers, added up over tasks.
    python: float
    #: Of ``fold``, writing state, added up over tasks.
    commit: float
    #: Snapshots to the driver, decision, journal, dead letters.
    decide: float


def stages_of(lines: Iterable[str], since_ms: int) -> Stages:
    """The stages of the batches that began at *since_ms*, epoch ms, or later; *lines* are Spark's event log."""
    batches: list[Mapping[str, Any]] = []
    stages: list[Mapping[str, Any]] = []
    # What Spark logs between two batches is of the second one.
    of_batch: list[Mapping[str, Any]] = []
    for event in map(json.loads, lines):
        if event["Event"] == _STAGE:
            of_batch.append(event["Stage Info"])
        elif event["Event"] == _PROGRESS and _ADDED in event["progress"]["durationMs"]:
            if _began(event["progress"]["timestamp"]) >= since_ms:
                batches.append(event["progress"])
                stages += of_batch
            of_batch = []
    in_python = [stage for stage in stages if _sum(stage, _PYTHON)]
    read, fold = (_seconds(some) for some in ([stage for stage in stages if stage not in in_python], in_python))
    whole, added = (sum(batch["durationMs"][name] for batch in batches) / 1000 for name in ("triggerExecution", _ADDED))
    return Stages(
        batches=len(batches),
        records=sum(batch["sources"][0].get("numInputRows", 0) for batch in batches),
        plan=whole - added,
        read=read,
        fold=fold,
        python=sum(_sum(stage, _PYTHON) for stage in in_python) / 1000,
        commit=sum(one["commitTimeMs"] for batch in batches for one in batch["stateOperators"]) / 1000,
        decide=max(0.0, added - read - fold),
    )


def read_stages(folder: Path, since_ms: int) -> Stages:
    """The stages in the one event log in *folder*; see :func:`stages_of`."""
    (file,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    with file.open(encoding="utf-8") as lines:
        # Spark may be in the middle of the last line.
        return stages_of((line for line in lines if line.endswith("\n")), since_ms)


def _began(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp() * 1000


def _seconds(stages: Iterable[Mapping[str, Any]]) -> float:
    return sum(int(stage["Completion Time"]) - int(stage["Submission Time"]) for stage in stages) / 1000


def _sum(stage: Mapping[str, Any], name: str) -> int:
    """What *stage* adds up under *name*; 0 where it has no such figure."""
    return sum(int(one["Value"]) for one in stage["Accumulables"] if one.get("Name") == name)
