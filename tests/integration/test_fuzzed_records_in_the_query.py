"""Thousands of spoilt records in one batch: the query refuses what controller.wire refuses, and nothing ends it."""

from random import SystemRandom

import numpy as np
import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from controller.aggregate.columns.rows import METRICS
from controller.model.errors import WireError
from controller.wire.metrics import MetricRecord, decode_metric
from controller.wire.packed_rows import rows_from_columns
from controller.wire.rows import Located, rows_from_records
from streaming.decode import DecodeOptions, rows, suspects
from tests.folds import NO_DETAIL
from tests.fuzz.readers import JSON_METRICS, MAX_BYTES, sweeps_in_arrow
from tests.fuzz.spoil import spoilt, spoilt_bytes, spoilt_json
from tests.integration.test_rows_in_spark_and_python import plain
from tests.records import CLUSTER, PERIOD, T
from tests.sharding import chosen_rows
from tests.unit.wire.test_wire_arrow import packed

pytestmark = pytest.mark.integration

_OPTIONS = DecodeOptions(cluster=CLUSTER, period_ms=PERIOD, max_record_bytes=MAX_BYTES, shards=3, detail=NO_DETAIL)
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"
_ARROW = (*sweeps_in_arrow(), *(packed(sweeps_in_arrow()[-1], codec) for codec in ("lz4", "zstd")))
#: Seeds that once told the two readers apart.
_SEEN = (517526611, 2140190265, 3412073285)
_CASES = 50 * settings().max_examples


def value_of(seed: int) -> bytes:
    if seed % 2:
        return spoilt(_ARROW, spoilt_bytes, seed)
    return spoilt(JSON_METRICS, spoilt_bytes if seed % 8 == 0 else spoilt_json, seed)


def wire(value: bytes) -> MetricRecord | WireError | None:
    try:
        return decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T, max_bytes=MAX_BYTES)
    except WireError as error:
        return error


def test_the_query_and_controller_wire_agree_on_every_spoilt_record(spark: SparkSession) -> None:
    new = SystemRandom().randrange(1 << 32)
    seeds = [*range(_CASES), *_SEEN, *range(new, new + _CASES)]
    values = [value_of(seed) for seed in seeds]
    data = [(METRICS, 0, offset, "", T, value) for offset, value in enumerate(values)]
    frame = spark.createDataFrame(data, _SCHEMA).coalesce(2).cache()
    found = suspects(frame, _OPTIONS).select("offset", "refused").toPandas()
    refused = set(found["offset"][found["refused"]].tolist())
    handed_on = set(found["offset"].tolist()) - refused
    columns = rows(frame, _OPTIONS).toPandas()
    frame.unpersist()
    arrays = {str(name): columns[name].to_numpy() for name in columns.columns}
    in_spark = rows_from_columns(arrays, cluster=CLUSTER, period_ms=PERIOD, files=False)

    accepted = 0
    for offset, (seed, value) in enumerate(zip(seeds, values, strict=True)):
        said = wire(value)
        told = f"seed {seed}: {value[:200]!r} ({len(value)} bytes), controller.wire says {said!r:.300}"
        if isinstance(said, WireError):
            assert offset in refused | handed_on, told
        elif said is not None:
            assert offset not in refused, told
            accepted += 1
            mine = chosen_rows(in_spark, np.flatnonzero(in_spark.offset == offset))
            at = Located(source=METRICS, partition=0, offset=offset, record=said)
            assert plain(mine) == plain(rows_from_records([at], NO_DETAIL)), told
    assert accepted > len(seeds) // 50
    assert len(refused) > len(seeds) // 4
