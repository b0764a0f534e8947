"""The records of the log as Spark's own JSON parser reads them: what the bench compares the query with."""

from pyspark.sql.types import ArrayType, DoubleType, LongType, MapType, StringType, StructField, StructType

from controller.model.load import RESOURCES


def _struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]


_LONG, _DOUBLE, _STRING = LongType(), DoubleType(), StringType()

#: Load of one topic; in a broker_sweep each is an array parallel to ``topic``.
_RATES = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
_COUNTS = ("producerCount", "consumerCount")

_RESOURCE = _struct(usage=_DOUBLE, limit=_DOUBLE)
_BUNDLE_TOTALS = _struct(**dict.fromkeys(_RATES, _DOUBLE), producerCount=_LONG, consumerCount=_LONG, topics=_LONG)
_BROKER_FIELDS: dict[str, object] = {
    "lastUpdate": _LONG,
    **dict.fromkeys(RESOURCES, _RESOURCE),
    **dict.fromkeys(_RATES, _DOUBLE),
    **dict.fromkeys(("numTopics", "numBundles", "numProducers", "numConsumers"), _LONG),
}
_ADDRESSES: dict[str, object] = {"webServiceUrl": _STRING, "webServiceUrlTls": _STRING}
_LAST_STATS: dict[str, object] = {"lastStats": MapType(_STRING, _BUNDLE_TOTALS)}

#: One bundle of a sweep as it is published: its totals, and its topics as parallel arrays.
_BUNDLE_STATS = _struct(
    bundle=_STRING,
    totals=_BUNDLE_TOTALS,
    topic=ArrayType(_STRING),
    **dict.fromkeys(_RATES, ArrayType(_DOUBLE)),
    **dict.fromkeys(_COUNTS, ArrayType(_LONG)),
)

#: Every field of every record of the metrics and result topics that matters before Python, as Spark parses it.
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
    **dict.fromkeys(_COUNTS, _LONG),
    partitions=_struct(metrics=_LONG, results=_LONG),
    report=_struct(**_BROKER_FIELDS, **_ADDRESSES, **_LAST_STATS),
    _corrupt_record=_STRING,
)
