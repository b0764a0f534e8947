"""The shapes of records and rows in Spark."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)


def _struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]


_INT, _LONG, _DOUBLE, _STRING, _BYTES = IntegerType(), LongType(), DoubleType(), StringType(), BinaryType()

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
_ADDRESSES: dict[str, object] = {"webServiceUrl": _STRING, "webServiceUrlTls": _STRING}
_LAST_STATS: dict[str, object] = {"lastStats": MapType(_STRING, _BUNDLE_TOTALS)}

#: One bundle of a sweep as it is published: its totals, and its topics as parallel arrays.
_BUNDLE_STATS = _struct(
    bundle=_STRING,
    totals=_BUNDLE_TOTALS,
    topic=ArrayType(_STRING),
    **dict.fromkeys(RATES, ArrayType(_DOUBLE)),
    **dict.fromkeys(COUNTS, ArrayType(_LONG)),
)

#: Every field of every record of the metrics and result topics that matters before Python, as Spark would parse it.
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
    **_ADDRESSES,
    **_LAST_STATS,
    bundleStats=ArrayType(_BUNDLE_STATS),
    bundle=_STRING,
    topic=_STRING,
    **dict.fromkeys(COUNTS, _LONG),
    partitions=_struct(metrics=_LONG, results=_LONG),
    report=_struct(**_BROKER_FIELDS, **_ADDRESSES, **_LAST_STATS),
    _corrupt_record=_STRING,
)

#: A row for one shard, without where its record lies.  Several bundles can share it: ``bundles`` are their names, one a
#: line, and each binary column holds numbers of eight bytes, little-endian, of one bundle after another.
ROW = _struct(
    shard=_INT,
    #: The same as in controller.aggregate.rows.Rows, from here
    kind=_INT,
    interval=_LONG,
    broker=_STRING,
    sweep=_STRING,
    chunk=_LONG,
    chunks=_LONG,
    last_update=_LONG,
    #: to here.
    bundles=_STRING,
    #: Whole numbers, STATS a bundle; null for kinds that have none.
    stats=_BYTES,
    topic_hash=_LONG,
    topic_position=_LONG,
    #: NUMBERS of them; SWEEP and REPORT.
    numbers=_BYTES,
    #: Null where no bundle of the row has topics of detail: how many each has, and of each its place on the ring
    #: (whole numbers) and four rates.
    detail_size=_BYTES,
    detail_position=_BYTES,
    detail_load=_BYTES,
)
#: What streaming.jvm makes of a record.  Suspect are the refused ones, and facts and ticks: controller.wire reads them.
RECORD_ROWS = _struct(suspect=BooleanType(), refused=BooleanType(), rows=ArrayType(ROW))

#: One shard's state in the state store, and what it emits when an interval closes.
SHARD_STATE = _struct(state=_BYTES)
SHARD_SNAPSHOT = _struct(interval=_LONG, shard=_INT, shards=_INT, snapshot=_BYTES)
