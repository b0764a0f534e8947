"""``trimtab bench pipeline`` on a real Kafka, at a small size: the work of an interval, where it can be counted."""

import json
import os
import subprocess
import sys

import pytest

from controller.lab.servers import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_SIZE = {"topics": 400, "bundles": 40, "brokers": 4, "partitions": 2}
#: What an interval of each form took when this was written down.  64 rows are ticks: one for each shard and partition
#: of two topics.  A sweep has a row of its own, and one for each shard that has any of its bundles.  Rows of topics are
#: packed: there is one for each shard and partition.
_WORK = {
    "broker_sweep": {"shuffled_rows": 99, "put_megabytes": 0.014, "driver_megabytes": 0.042},
    "topic_stats": {"shuffled_rows": 85, "put_megabytes": 0.014, "driver_megabytes": 0.044},
}


def test_an_interval_takes_one_batch_and_less_than_twice_the_work_that_was_written_down(kafka: KafkaServer) -> None:
    size = [word for name, value in _SIZE.items() for word in (f"--{name}", str(value))]
    forms = [word for form in _WORK for word in ("--form", form)]
    # A process of its own: Spark logs its events there, which the session that tests share does not do.
    command = [sys.executable, "-m", "controller.cli", "bench", "pipeline", "--runs", "2", "--json", *size, *forms]
    # What is looked at is counted, not timed.
    quick = os.environ | {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1"}
    result = subprocess.run([*command, "--bootstrap", kafka.bootstrap], env=quick, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    found = {one["form"]: one for one in map(json.loads, result.stdout.splitlines())}
    assert list(found) == list(_WORK)
    for form, one in found.items():
        assert {name: one[name] for name in _SIZE} == _SIZE
        assert 0 < one["lowest_ratio"] <= one["ratio_to_floor"] <= one["highest_ratio"]
        assert one["cpu_seconds"] > 0
        assert one["stages"]["batches"] == 1
        for what, once in _WORK[form].items():
            assert 0 < one["stages"][what] < 2 * once, what
