"""The shapes of records and rows in Spark.  Field by field the same as controller.wire; a test compares them."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from controller.aggregate.rows import RATES as _DETAIL_RATES


def _struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]


_LONG, _DOUBLE, _STRING = LongType(), DoubleType(), StringType()

#: Load of one topic; in a broker_sweep each is an array parallel to ``topic``.
RATES = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNTS = ("producerCount", "consumerCount", "storageSize", "backlogSize")

_RESOURCE = _struct(usage=_DOUBLE, limit=_DOUBLE)
RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
_BUNDLE_TOTALS = _struct(**dict.fromkeys(RATES, _DOUBLE), producerCount=_LONG, consumerCount=_LONG, topics=_LONG)
_BROKER_FIELDS: dict[str, object] = {
    "lastUpdate": _LONG,
    **dict.fromkeys(RESOURCES, _RESOURCE),
    **dict.fromkeys(RATES, _DOUBLE),
    **dict.fromkeys(("numTopics", "numBundles", "numProducers", "numConsumers"), _LONG),
}
_LOCAL_BROKER_DATA: dict[str, object] = {
    "webServiceUrl": _STRING,
    "loadReportType": _STRING,
    "lastStats": MapType(_STRING, _BUNDLE_TOTALS),
}

#: What a broker says of itself, in a sweep and in a LocalBrokerData.
TOTALS = (*_BROKER_FIELDS, *_LOCAL_BROKER_DATA)

#: One bundle of a sweep: its totals, and its topics as parallel arrays.
BUNDLE_STATS = _struct(
    bundle=_STRING,
    totals=_BUNDLE_TOTALS,
    topic=ArrayType(_STRING),
    **dict.fromkeys(RATES, ArrayType(_DOUBLE)),
    **dict.fromkeys(COUNTS, ArrayType(_LONG)),
)

#: Every field of every record type of the metrics and result topics that the query reads, in one struct: one
#: pass of the JSON parser.  Kinds of which the fold reads the whole record (tick, result, states) pass as text.
RECORD = _struct(
    v=_LONG,
    type=_STRING,
    cluster=_STRING,
    broker=_STRING,
    interval=_LONG,
    sweepId=_STRING,
    chunk=_LONG,
    chunks=_LONG,
    **_BROKER_FIELDS,
    **_LOCAL_BROKER_DATA,
    bundleStats=ArrayType(BUNDLE_STATS),
    bundle=_STRING,
    topic=_STRING,
    **dict.fromkeys(COUNTS, _LONG),
    partitions=_struct(metrics=_LONG, results=_LONG),
    report=_struct(**_BROKER_FIELDS, **_LOCAL_BROKER_DATA),
    _corrupt_record=_STRING,
)

#: Columns of per-topic detail.
DETAIL_LOAD = tuple(f"detail_{name}" for name in _DETAIL_RATES)

#: One shard's state in the state store, and what it emits when an interval closes.
SHARD_STATE = _struct(state=BinaryType())
SHARD_SNAPSHOT = _struct(interval=_LONG, shard=IntegerType(), shards=IntegerType(), snapshot=BinaryType())
