"""Where the time of micro-batches goes, by Spark's event log."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from controller.bench.stages import Stages, stages_of

WARM = 1_000_000


def progress(at_ms: int, *, trigger: int, add: int | None, commit: int = 0, records: int = 0) -> dict[str, Any]:
    durations = {"triggerExecution": trigger} | ({} if add is None else {"addBatch": add})
    return {
        "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
        "progress": {
            "timestamp": f"1970-01-01T00:{at_ms // 60_000:02d}:{at_ms % 60_000 / 1000:06.3f}Z",
            "durationMs": durations,
            "sources": [{"numInputRows": records}],
            "stateOperators": [{"commitTimeMs": commit}],
        },
    }


def stage(at_ms: int, ms: int, python_ms: int = 0) -> dict[str, Any]:
    told = [{"Name": "internal.metrics.resultSize", "Value": 7}]
    if python_ms:
        told.append({"Name": "time to run Python workers", "Value": str(python_ms)})
    info = {"Submission Time": at_ms, "Completion Time": at_ms + ms, "Accumulables": told}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def test_the_time_of_a_batch_is_parted_into_its_stages_and_what_came_before_the_warm_up_ended_is_left_out() -> None:
    events = [
        stage(WARM + 500, 900),
        progress(WARM - 1, trigger=5_000, add=4_000, records=99),
        {"Event": "SparkListenerTaskEnd"},
        stage(WARM, 400),
        stage(WARM + 400, 1_000, python_ms=1_500),
        progress(WARM, trigger=2_000, add=1_700, commit=60, records=840),
        stage(WARM + 30_000, 100),
        stage(WARM + 30_100, 900, python_ms=1_100),
        progress(WARM + 30_000, trigger=1_600, add=1_500, commit=40, records=160),
        progress(WARM + 40_000, trigger=3, add=None),
    ]
    found = stages_of(map(json.dumps, events), WARM)
    wanted = Stages(batches=2, records=1_000, plan=0.4, read=0.5, fold=1.9, python=2.6, commit=0.1, decide=0.8)
    assert asdict(found) == pytest.approx(asdict(wanted))
