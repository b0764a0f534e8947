"""Where the time of micro-batches goes, by Spark's event log."""

import json
from typing import Any

import pytest

from controller.bench.stages import stages_of
from controller.wire.answers.bench import StagesAnswer

WARM = 1_000_000
QUERY = "trimtab-decisions"


def progress(
    at_ms: int, *, trigger: int, add: int | None, commit: int = 0, records: int = 0, name: str = QUERY
) -> dict[str, Any]:
    durations = {"triggerExecution": trigger} | ({} if add is None else {"addBatch": add})
    return {
        "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
        "progress": {
            "name": name,
            "timestamp": f"1970-01-01T00:{at_ms // 60_000:02d}:{at_ms % 60_000 / 1000:06.3f}Z",
            "durationMs": durations,
            "sources": [{"numInputRows": records}],
            "stateOperators": [{"commitTimeMs": commit, "customMetrics": {"rocksdbTotalBytesWritten": 3_000_000}}],
        },
    }


def stage(at_ms: int, ms: int, **told: int) -> dict[str, Any]:
    """*told*: what its tasks add up, by Spark's names for it, whose last word is enough."""
    names = {
        "python_ms": "time to run Python workers",
        "rows": "internal.metrics.shuffle.write.recordsWritten",
        "shuffled": "internal.metrics.shuffle.write.bytesWritten",
        "result": "internal.metrics.resultSize",
    }
    figures = [{"Name": names[name], "Value": str(value)} for name, value in told.items()]
    info = {"Submission Time": at_ms, "Completion Time": at_ms + ms, "Accumulables": figures}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def test_what_batches_did_is_parted_into_stages_without_the_warm_up_and_without_other_queries() -> None:
    events = [
        stage(WARM + 500, 900, rows=7),
        progress(WARM - 1, trigger=5_000, add=4_000, records=99),
        {"Event": "SparkListenerTaskEnd"},
        stage(WARM, 400, rows=1_000, shuffled=4_000_000),
        stage(WARM + 400, 1_000, python_ms=1_500, result=6_000_000),
        progress(WARM, trigger=2_000, add=1_700, commit=60, records=840),
        stage(WARM + 20_000, 3_000, rows=50),
        progress(WARM + 20_000, trigger=3_000, add=3_000, records=1_000, name="floor"),
        stage(WARM + 30_000, 100, rows=200, shuffled=2_000_000),
        stage(WARM + 30_100, 900, python_ms=1_100, result=2_000_000),
        progress(WARM + 30_000, trigger=1_600, add=1_500, commit=40, records=160),
        progress(WARM + 40_000, trigger=3, add=None),
    ]
    found = stages_of(map(json.dumps, events), WARM, intervals=2)
    wanted = StagesAnswer(
        batches=1,
        records=500,
        plan_seconds=0.2,
        read_seconds=0.25,
        fold_seconds=0.95,
        python_seconds=1.3,
        commit_seconds=0.05,
        decide_seconds=0.4,
        shuffled_rows=600,
        shuffled_megabytes=3,
        put_megabytes=3,
        driver_megabytes=4,
    )
    assert found.model_dump() == pytest.approx(wanted.model_dump())
