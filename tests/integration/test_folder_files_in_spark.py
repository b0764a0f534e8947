"""Files of a log in a folder, as Spark reads them: those of the future, and those that were deleted."""

import os
import time
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from controller.adapters.folder.names import record_files
from streaming.batches.gate import open_gate
from streaming.sources import folder_records
from tests.faults.clock import eventually

pytestmark = pytest.mark.integration

DAY = 86_400_000
#: (line, append time) of each record that a batch has read.
Seen = list[tuple[bytes, int]]


def put(log: Path, name: str, ahead_ms: int = 0) -> Path:
    path = log / "metrics" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(name.encode())
    modified = time.time_ns() + ahead_ms * 1_000_000
    os.utime(path, ns=(modified, modified))
    return path


def read(spark: SparkSession, log: Path, *, fails: bool = False) -> Seen:
    """What a query reads of *log* that goes on from its checkpoint; it *fails* before Spark commits that."""
    seen: Seen = []

    def take(batch: DataFrame, _: int) -> None:
        seen.extend((bytes(row["value"]), row["append_time"]) for row in batch.collect())
        if fails:
            raise RuntimeError("not committed")

    writer = folder_records(spark, log).writeStream.option("checkpointLocation", f"file:{log}/checkpoint")
    query = writer.foreachBatch(take).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception:
        assert fails
    return seen


def test_a_file_of_the_future_was_appended_when_it_was_read_and_hides_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, "ahead.jsonl", ahead_ms=70_000 * DAY)
    ((line, appended),) = read(spark, tmp_path, fails=True)
    assert line == b"ahead.jsonl"
    assert appended < time.time() * 1000 + 1
    # The batch that was not committed comes again and judges as before.
    assert read(spark, tmp_path) == [(line, appended)]
    put(tmp_path, "today.jsonl")
    assert [line for line, _ in read(spark, tmp_path)] == [b"today.jsonl"]


def test_files_that_were_read_and_committed_are_missed_by_nobody(spark: SparkSession, tmp_path: Path) -> None:
    first, second = put(tmp_path, "1.jsonl", ahead_ms=-DAY), put(tmp_path, "2.jsonl", ahead_ms=-DAY // 2)
    assert [line for line, _ in read(spark, tmp_path)] == [b"1.jsonl", b"2.jsonl"]
    first.unlink()
    second.unlink()
    put(tmp_path, "3.jsonl")
    assert [line for line, _ in read(spark, tmp_path)] == [b"3.jsonl"]


def test_a_running_query_reads_what_lies_there_when_its_gate_is_opened_and_nothing_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, "1.jsonl")
    (tmp_path / "results").mkdir()
    batches: list[list[bytes]] = []

    def take(batch: DataFrame, _: int) -> None:
        batches.append(sorted(bytes(row["value"]) for row in batch.collect()))

    records = folder_records(spark, tmp_path, files_per_trigger=2)
    writer = records.writeStream.option("checkpointLocation", f"file:{tmp_path}/checkpoint").foreachBatch(take)
    open_gate(spark)
    query = writer.start()
    try:
        eventually(lambda: len(batches) == 1, "the first file is read", 60)
        (tmp_path / "results" / "2.jsonl").write_text("2.jsonl")
        put(tmp_path, "3.jsonl")
        put(tmp_path, "4.jsonl")
        time.sleep(1)  # a query asks four times a second
        assert batches == [[b"1.jsonl"]]
        open_gate(spark)
        eventually(lambda: len(batches) == 3, "all files are read, two in a batch", 60)
        assert sorted(chain(*batches)) == [b"1.jsonl", b"2.jsonl", b"3.jsonl", b"4.jsonl"]
    finally:
        query.stop()


def test_names_that_are_hidden_and_folders_in_the_folder_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    for name in (".hidden.jsonl", "_hidden.jsonl", "other.json", "deeper/1.jsonl", "folder.jsonl/1.jsonl"):
        put(tmp_path, name)
    put(tmp_path, "1.jsonl")
    assert [line for line, _ in read(spark, tmp_path)] == [b"1.jsonl"]


def test_what_lies_below_leads_back_or_is_no_file_neither_ends_the_query_nor_keeps_it_busy(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("1.jsonl", "day=1/2.jsonl", "other/kind=2/3.jsonl"):
        put(tmp_path, name)
    metrics = tmp_path / "metrics"
    for link, to in {"loop": ".", "again": ".", "gone.jsonl": "nowhere", "endless.jsonl": "/dev/zero"}.items():
        (metrics / link).symlink_to(to)
    os.mkfifo(metrics / "pipe.jsonl")
    assert [line for line, _ in read(spark, tmp_path)] == [b"1.jsonl"]


def test_a_name_that_is_a_pattern_or_no_ascii_is_read_by_nobody_and_has_no_other_file_read_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    for stem in ("1", "*", "[1]", "{1,2}", "?", "\\", "caf\u00e9", "\n", "09:30"):
        put(tmp_path, f"{stem}.jsonl")
    put(tmp_path, " 2 (copy),+%20#=~.jsonl")
    os.close(os.open(os.fsencode(tmp_path / "metrics") + b"/\xff.jsonl", os.O_CREAT))
    found = sorted(line.decode() for line, _ in read(spark, tmp_path))
    assert found == [path.name for path in record_files(tmp_path / "metrics")]
    assert found == [" 2 (copy),+%20#=~.jsonl", "1.jsonl"]
