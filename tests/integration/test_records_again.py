"""What lies in a span of a folder log is read again as the stream had it, whatever the file's name."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span
from streaming.sources import folder_records, folder_records_again

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("hadoop_elsewhere")
def test_the_files_of_the_spans_are_read_again_and_no_others(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for part in ("metrics", "results"):
        (log / part).mkdir(parents=True)
        for name in ("a", "odd[1]{b,c}*?\\", "odd1"):
            (log / part / f"{name}.jsonl").write_bytes(f"{part} {name} \xe9\n\nsecond\n".encode())
    stream = folder_records(spark, log)
    wanted = [("metrics", METRICS, "odd[1]{b,c}*?\\.jsonl"), ("results", RESULTS, "a.jsonl")]
    again = folder_records_again(spark, log, [Span(source, 0, file, 0, 2) for _, source, file in wanted])
    assert again.schema.names == stream.schema.names
    found = {(row.source, row.file, row.offset): bytes(row.value) for row in again.collect()}
    assert found == {
        (source, file, line): value
        for part, source, file in wanted
        for line, value in ((0, f"{part} {file.removesuffix('.jsonl')} \xe9".encode()), (2, b"second"))
    }
