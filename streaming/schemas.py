"""The shapes of records and rows in Spark.  Field by field the same as controller.wire; a test compares them."""

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

#: One bundle as streaming.jvm sums it up: ``load`` as controller.aggregate.rows.STATS, and where its topics are kept
#: their ``positions`` on the ring, and their ``rates``.
BUNDLE_LOAD = _struct(
    bundle=_STRING,
    flawed=BooleanType(),
    load=ArrayType(_LONG),
    positions=ArrayType(_LONG),
    rates=ArrayType(ArrayType(_DOUBLE)),
)
_LAST_SUMMED: dict[str, object] = {"lastStats": ArrayType(BUNDLE_LOAD)}

#: A LocalBrokerData, summed up.
REPORT = _struct(**_BROKER_FIELDS, **_ADDRESSES, **_LAST_SUMMED)


def _record(bundles: dict[str, object], report_bundles: dict[str, object]) -> StructType:
    return _struct(
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
        **bundles,
        bundle=_STRING,
        topic=_STRING,
        **dict.fromkeys(COUNTS, _LONG),
        partitions=_struct(metrics=_LONG, results=_LONG),
        report=_struct(**_BROKER_FIELDS, **_ADDRESSES, **report_bundles),
        _corrupt_record=_STRING,
    )


#: Every field of every record type of the metrics and result topics that matters before Python, in one struct.
#: Kinds of which the fold reads the whole record (tick, result, states) pass as text.
RECORD = _record({**_LAST_STATS, "bundleStats": ArrayType(_BUNDLE_STATS)}, _LAST_STATS)
#: The same, its topics summed.
SUMMED_RECORD = _record({**_LAST_SUMMED, "bundleStats": ArrayType(BUNDLE_LOAD)}, _LAST_SUMMED)

#: Columns of per-topic detail.
DETAIL_LOAD = tuple(f"detail_{name}" for name in _DETAIL_RATES)

#: One shard's state in the state store, and what it emits when an interval closes.
SHARD_STATE = _struct(state=BinaryType())
SHARD_SNAPSHOT = _struct(interval=_LONG, shard=IntegerType(), shards=IntegerType(), snapshot=BinaryType())
