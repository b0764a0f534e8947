"""Spark reads from a leader that knows less than was read, or planned, as a broker that comes back does for a moment.

A topic whose records are written later stands for it: its log ends before the place, and then does not.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.kafka.writer import Producer
from controller.adapters.network.waiting import wait_for
from controller.adapters.process.process_tree import descendants
from controller.lab.servers import KafkaServer
from controller.settings.log import KafkaLogSettings
from tests.kafka_log import own_topics

pytestmark = pytest.mark.integration

#: Reads what was planned: two records from offset 2 on, and prints their values.
_PLANNED = """
from controller.aggregate.columns.rows import METRICS
from controller.aggregate.places import Span
from streaming.sources import kafka_records_again

print("reads", flush=True)
records = kafka_records_again(spark, log, given, [Span(METRICS, 0, "", 2, 3)])
print(json.dumps([bytes(row.value).decode() for row in records.orderBy("offset").collect()]), flush=True)
"""
#: Reads on from offset 4, and prints the values of each micro-batch that has some.
_READ_ON = """
from streaming.batches.gate import GATED_KAFKA, open_gate
from streaming.sources import located

given |= {"startingOffsets": json.dumps({log.metrics_topic: {"0": 4}, log.results_topic: {"0": 0}})}
stream = located(spark.readStream.format(GATED_KAFKA).options(**given).load(), log.results_topic)

def sink(batch, number):
    values = [bytes(row.value).decode() for row in batch.orderBy("offset").collect()]
    if values:  # the first one has none, and so has one in which the place goes back
        print(json.dumps(values), flush=True)

query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder / "checkpoint")).start()
print("reads", flush=True)
open_gate(spark)
query.awaitTermination()
"""
_SPARK = """
import json, sys
from pathlib import Path
from controller.adapters.disk import jars
from controller.settings.log import KafkaLogSettings
from streaming.sources import kafka_options
from streaming.spark.session import start_session

folder, log = Path(sys.argv[1]), KafkaLogSettings.model_validate(json.loads(sys.argv[2]))
spark = start_session("local[2]", 1, {"spark.driver.memory": "512m"}, jars.fetch("connector"), folder)
given = {**kafka_options(log, 16 << 20), **json.loads(sys.argv[3])}
"""


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    """Topics of the test's own, and a record in the metrics topic."""
    settings = own_topics(kafka.bootstrap, 1)
    write(settings, ["read"])
    return settings


def write(log: KafkaLogSettings, values: Sequence[str]) -> None:
    producer = Producer(log.bootstrap)
    for each in values:
        producer.send(log.metrics_topic, each.encode(), partition=0)
    producer.flush()


class Reading:
    """A program that reads with Spark."""

    def __init__(self, program: str, folder: Path, log: KafkaLogSettings, **options: str) -> None:
        text = log.model_dump_json(include={*log.model_fields_set})
        command = [sys.executable, "-c", _SPARK + program, str(folder), text, json.dumps(options)]
        self._folder, self._log = folder, (folder / "log").open("w+")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True, start_new_session=True
        )
        # A limit for all of it: nobody reads a pipe for some seconds only.
        self._limit = threading.Timer(240, self._kill)
        self._limit.start()

    def __enter__(self) -> "Reading":
        assert self._line() == "reads\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._limit.cancel()
        self._kill()
        self._process.communicate()
        self._log.close()

    def _kill(self) -> None:
        """With its JVM and Python's workers."""
        for pid in (*descendants(self._process.pid), self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def values(self) -> list[Any]:
        """What it says that it has read next."""
        found: list[Any] = json.loads(self._line())
        return found

    def wait_until_it_waits(self) -> None:
        """For a leader that is behind."""

        def waits() -> bool:
            return any("was read: waiting" in each.read_text() for each in self._folder.glob("spark-vm-*.log"))

        wait_for(waits, 120.0, every=0.2)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._log.seek(0)
        assert line, self._log.read()[-3000:]
        return line


def test_planned_records_that_a_leader_does_not_know_yet_are_read(log: KafkaLogSettings, tmp_path: Path) -> None:
    with Reading(_PLANNED, tmp_path, log) as reading:
        time.sleep(8.0)
        write(log, ["lost for a moment", "planned", "planned, too", "more"])
        assert reading.values() == ["planned", "planned, too"]


def test_planned_records_that_stay_away_are_gone(log: KafkaLogSettings, tmp_path: Path) -> None:
    with Reading(_PLANNED, tmp_path, log, patienceMs="2000") as reading:
        assert reading.values() == []


def test_a_query_does_not_go_back_where_its_leader_ends_before_its_place(log: KafkaLogSettings, tmp_path: Path) -> None:
    with Reading(_READ_ON, tmp_path, log) as reading:
        time.sleep(8.0)  # Spark itself asks for three
        write(log, ["read", "read", "read", "new"])
        assert reading.values() == ["new"]


def test_a_query_reads_a_topic_that_was_created_anew_from_where_it_then_ended(
    log: KafkaLogSettings, tmp_path: Path
) -> None:
    with Reading(_READ_ON, tmp_path, log, patienceMs="4000") as reading:
        reading.wait_until_it_waits()
        write(log, ["new"])
        assert reading.values() == ["new"]
