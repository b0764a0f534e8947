"""From bytes to rows, all in the JVM: one pass of the JSON parser, one verdict a record, one explode.

Input, from streaming.sources: ``source, partition, offset, file, append_time (ms), value (bytes)``.
:func:`judged` adds what is wrong with each record as a whole; the query goes on with the good ones (:func:`rows`),
the dead letters (:func:`dead`) with the others.  Topics never leave the JVM one by one: their numbers are summed
within their record, and only bundles near a split keep them as arrays (``detail_*``).

Lambdas over arrays are interpreted, 50 times slower than compiled code.  So whatever can be is said of whole columns
of arrays, or after the explode, of one bundle; only the sums are left to a lambda.

Cost: a JSON pass over the bytes, and six additions a topic; what leaves is one row a bundle and record.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from controller.aggregate.rows import BUNDLE, FACT, PER_UNIT, REPORT, REPORT_BUNDLE, STATS, SWEEP, TICK, TOPIC
from controller.aggregate.shard import DetailLimits
from controller.wire.dead_letter import KEPT_BYTES
from streaming.schemas import BUNDLE_STATS, COUNTS, DETAIL_LOAD, RATES, RECORD, RESOURCES, TOTALS

_FACTS = ("namespace_state", "broker_state", "bundle_data", "result")
_TYPES = ("broker_sweep", "topic_stats", "broker_load", "tick", *_FACTS)
_BUNDLE_NAME = r"^[^/]+/[^/]+(/[^/]+)?/0x[0-9a-f]{8}_0x[0-9a-f]{8}$"
_MAX_RATE = 1e12
_SUMMED = (*RATES, "producerCount", "consumerCount")


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """What decoding needs to know."""

    cluster: str
    period_ms: int
    max_record_bytes: int
    shards: int
    #: From where on a bundle's topics are kept one by one.
    detail: DetailLimits


def judged(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """*records* with ``r`` (parsed), ``type``, ``said``, ``broker`` and ``reason`` (null: good as a whole)."""
    fits = F.length("value") <= options.max_record_bytes
    parsed = F.from_json(F.col("value").cast("string"), RECORD, {"columnNameOfCorruptRecord": "_corrupt_record"})
    return (
        records.select("*", F.when(fits, parsed).alias("r"))
        .select("*", _type().alias("type"), _said().alias("said"))
        .select("*", _broker().alias("broker"))
        .select("*", _reason(options).alias("reason"))
    )


def rows(judged_records: DataFrame, options: DecodeOptions) -> DataFrame:
    """The rows of the good records of our cluster, as controller.aggregate.rows names them, with their ``shard``."""
    ours = F.coalesce("r.cluster", F.lit(options.cluster)) == options.cluster
    # Neither a filter here nor the plain explode (which brings one): the optimizer would push it below the parser and
    # run the parser again for each column it names.
    elements = F.when(F.col("reason").isNull() & ours, _elements(options))
    text = F.col("type").isin("tick", *_FACTS)
    # Everything said once is put into columns of its own first, so that the explode does not carry whole records.
    said_once = judged_records.select(
        "source",
        "partition",
        "offset",
        "file",
        "type",
        F.coalesce("r.interval", F.lit(-1)).alias("interval"),
        F.coalesce("broker", F.lit("")).alias("broker"),
        F.coalesce("r.sweepId", F.lit("")).alias("sweep"),
        F.coalesce("r.chunk", F.lit(0)).alias("chunk"),
        F.coalesce("r.chunks", F.lit(0)).alias("chunks"),
        F.coalesce("said.lastUpdate", F.lit(0)).alias("last_update"),
        _numbers().alias("own"),
        F.when(text, F.col("value").cast("string")).alias("body"),
        F.when(F.col("type") == "topic_stats", F.xxhash64("r.topic")).otherwise(0).alias("topic_hash"),
        F.when(F.col("type") == "topic_stats", F.crc32("r.topic")).otherwise(0).alias("topic_position"),
        elements.alias("elements"),
    )
    exploded = said_once.select("*", F.posexplode_outer("elements").alias("pos", "stats")).drop("elements")
    kind = _kind(options.shards)
    flawless = F.col("stats").isNull() | (F.col("type") == "bundle_data") | _flaw(F.col("stats")).isNull()
    topics, near = F.coalesce(F.size("stats.topic"), F.lit(0)), _near(F.col("stats.totals"), options.detail)
    detailed = (topics > 0) & near
    return exploded.where(F.col("pos").isNotNull() & flawless).select(
        "source", "partition", "offset", "file", "interval", "broker", "sweep", "chunk", "chunks", "last_update",
        "body", "topic_hash", "topic_position",
        kind.alias("kind"),
        _shard(kind, options).alias("shard"),
        F.coalesce("stats.bundle", F.lit("")).alias("bundle"),
        *(column.alias(name) for name, column in _loads(topics).items()),
        F.when(kind.isin(SWEEP, REPORT) & (F.col("pos") == 0), F.col("own")).alias("numbers"),
        F.when(detailed, F.transform("stats.topic", lambda topic: F.crc32(topic))).alias("detail_position"),
        *(F.when(detailed, F.col(f"stats.{rate}")).alias(name) for name, rate in zip(DETAIL_LOAD, RATES, strict=True)),
    )  # fmt: skip


def suspects(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """Records that controller.wire must look at: those refused here, with the ``reason``, and all facts and ticks.

    ``suspect`` says which, ``value`` is null where the record is too large to look at.  Like :func:`judged` it must
    not be filtered before it has been computed.
    """
    flawed = (
        F.when(F.col("type") == "broker_sweep", F.exists("r.bundleStats", lambda stats: _flaw(stats).isNotNull()))
        .when(F.col("type") == "broker_load", F.exists(F.map_keys("said.lastStats"), lambda name: _impossible(name)))
        .when(F.col("type") == "topic_stats", _impossible(F.col("r.bundle")))
    )
    fact = F.col("type").isin("tick", *_FACTS)
    fits = F.length("value") <= options.max_record_bytes
    return judged(records, options).select(
        "source",
        "partition",
        "offset",
        "file",
        "append_time",
        "reason",
        F.when(fits, F.col("value")).alias("value"),
        F.length("value").alias("size"),
        F.sha2("value", 256).alias("sha256"),
        F.substring("value", 1, KEPT_BYTES).alias("head"),
        F.coalesce(F.col("reason").isNotNull() | fact | flawed, F.lit(False)).alias("suspect"),
    )


# ---- what a record is ----


def _type() -> Column:
    """The record's type; a LocalBrokerData as brokers write it has none of ours and is a broker_load."""
    bare = F.col("r.type").isNull() & F.col("r.webServiceUrl").isNotNull() & F.col("r.lastStats").isNotNull()
    return F.when(bare, F.lit("broker_load")).otherwise(F.col("r.type"))


def _said() -> Column:
    """The struct in which the broker speaks of itself."""
    own = F.struct(*(F.col(f"r.{name}").alias(name) for name in TOTALS))
    return F.when(F.col("r.report").isNotNull(), F.col("r.report")).otherwise(own)


def _broker() -> Column:
    named = F.regexp_extract("said.webServiceUrl", r"^https?://([^/]+)", 1)
    return F.when(F.col("type") == "broker_load", F.coalesce("r.broker", named)).otherwise(F.col("r.broker"))


# ---- what it says, element by element ----


def _elements(options: DecodeOptions) -> Column:
    """One element a row to be: a bundle's stats, or null for what the record says besides.

    A sweep speaks of itself to shard 0 (position 0), a report and a tick to every shard (the first positions).
    """
    nothing = F.lit(None).cast(BUNDLE_STATS)
    one, all_shards = F.array(nothing), F.array_repeat(nothing, options.shards)
    reported = F.transform(F.map_entries("said.lastStats"), lambda e: _bundle_stats(bundle=e["key"], totals=e["value"]))
    single = _bundle_stats(
        bundle=F.col("r.bundle"),
        totals=F.struct(*(F.col(f"r.{name}").alias(name) for name in _SUMMED), F.lit(1).cast("long").alias("topics")),
    )
    kind = F.col("type")
    return (
        F.when(kind == "broker_sweep", F.concat(one, F.col("r.bundleStats")))
        .when(kind == "tick", all_shards)
        .when(kind == "broker_load", F.concat(all_shards, reported))
        .when(kind == "topic_stats", F.array(single))
        .when(kind == "bundle_data", F.array(_bundle_stats(bundle=F.col("r.bundle"))))
        .when(kind.isin(*_FACTS), one)
    )


def _bundle_stats(**given: Column) -> Column:
    nothing = F.lit(None)
    return F.struct(*(given.get(f.name, nothing).cast(f.dataType).alias(f.name) for f in BUNDLE_STATS.fields))


def _kind(shards: int) -> Column:
    kind, pos = F.col("type"), F.col("pos")
    return (
        F.when(kind == "broker_sweep", F.when(pos == 0, SWEEP).otherwise(BUNDLE))
        .when(kind == "tick", TICK)
        .when(kind == "broker_load", F.when(pos < shards, REPORT).otherwise(REPORT_BUNDLE))
        .when(kind == "topic_stats", TOPIC)
        .otherwise(FACT)
    )


def _shard(kind: Column, options: DecodeOptions) -> Column:
    own = F.pmod(F.xxhash64(F.lit(options.cluster), "stats.bundle"), F.lit(options.shards)).cast("int")
    return F.when(kind.isin(TICK, REPORT), F.col("pos")).when(F.col("stats").isNull(), 0).otherwise(own)


def _loads(topics: Column) -> dict[str, Column]:
    """The STATS columns: topics summed in the record's order, or the totals where it lists no topics."""

    def load(name: str) -> Column:
        summed = F.aggregate(f"stats.{name}", F.lit(0.0), lambda total, x: total + x)
        return F.when(topics > 0, summed).otherwise(F.col(f"stats.totals.{name}"))

    rates = [F.rint(load(name) * PER_UNIT) for name in RATES]
    counts = [load("producerCount"), load("consumerCount")]
    counted = F.when(topics > 0, topics).otherwise(F.col("stats.totals.topics"))
    columns = [*rates, *counts, counted]
    return {n: F.coalesce(c.cast("double"), F.lit(0.0)) for n, c in zip(STATS, columns, strict=True)}


def _near(totals: Column, limits: DetailLimits) -> Column:
    return (
        (totals["topics"] >= limits.topics)
        | (totals["producerCount"] + totals["consumerCount"] >= limits.sessions)
        | (totals["msgRateIn"] + totals["msgRateOut"] >= limits.msg_rate)
        | (totals["msgThroughputIn"] + totals["msgThroughputOut"] >= limits.throughput)
    )


def _numbers() -> Column:
    """The broker's own numbers, in the order of controller.aggregate.rows.NUMBERS."""
    resources = [F.col(f"said.{name}.{part}") for name in RESOURCES for part in ("usage", "limit")]
    loads = [F.col(f"said.{name}") for name in (*RATES, "numTopics", "numBundles")]
    return F.array(*(column.cast("double") for column in (*resources, *loads)))


# ---- what is wrong with it ----


def _reason(options: DecodeOptions) -> Column:
    """The first thing wrong with the record, in the words of controller.wire.base, or null."""
    kind, r = F.col("type"), F.col("r")
    is_json = F.get_json_object(F.col("value").cast("string"), "$").isNotNull()
    unreadable = (
        F.when(F.length("value") > options.max_record_bytes, "too_large")
        .when(r.isNull() | (r["_corrupt_record"].isNotNull() & ~is_json), "not_json")
        .when(r["_corrupt_record"].isNotNull(), "bad_value")
    )
    envelope = (
        F.when(kind.isNull() | (r["type"].isNotNull() & _any_null("r.v", "r.cluster")), "missing_field")
        .when(r["v"] != 1, "unknown_version")
        .when(~kind.isin(*_TYPES), "unknown_type")
    )
    interval = (
        F.when(r["interval"].isNull(), "missing_field")
        .when(F.pmod(r["interval"], F.lit(options.period_ms)) != 0, "misaligned_interval")
        .when(r["interval"] > F.col("append_time") + options.period_ms, "future_interval")
    )
    content = (
        F.when(kind == "broker_sweep", F.coalesce(interval, _sweep_reason()))
        .when(kind == "tick", F.coalesce(interval, F.when(_any_null("r.partitions"), "missing_field")))
        .when(kind == "broker_load", _report_reason())
        .when(kind == "topic_stats", _topic_reason())
    )
    return F.coalesce(unreadable, envelope, content)


def _sweep_reason() -> Column:
    required = ("broker", "sweepId", "chunk", "chunks", "bundleStats")
    names = F.col("r.bundleStats.bundle")
    chunk = F.col("r.chunk")
    arrays = [_flat(name) for name in (*RATES, *COUNTS)]
    gaps = _any(_has_null(_flat(name)) for name in COUNTS)
    return F.when(_any_null(*(f"r.{name}" for name in required)) | _numbers_missing(), "missing_field").when(
        _out_of_range(_numbers())
        | (chunk < 0)
        | (chunk >= F.col("r.chunks"))
        | (F.size(F.array_distinct(names)) != F.size(names))
        | _any(_out_of_range(array) for array in arrays)
        | gaps,
        "bad_value",
    )


def _report_reason() -> Column:
    totals = F.map_values("said.lastStats")
    numbers = F.array(*(F.col(f"said.{name}.usage") for name in RESOURCES), *(F.col(f"said.{name}") for name in RATES))
    return F.when(_any_null("broker", "said.lastStats") | _numbers_missing(), "missing_field").when(
        _out_of_range(numbers) | _any(_out_of_range(totals[name]) for name in (*_SUMMED, "topics")),
        "bad_value",
    )


def _topic_reason() -> Column:
    numbers = F.array(*(F.col(f"r.{name}").cast("double") for name in (*RATES, *COUNTS)))
    required = ("broker", "bundle", "topic", *RATES, *COUNTS)
    return F.when(_any_null(*(f"r.{name}" for name in required)), "missing_field").when(
        _out_of_range(numbers), "bad_value"
    )


def _numbers_missing() -> Column:
    resources = (f"said.{name}.{part}" for name in RESOURCES for part in ("usage", "limit"))
    return _any_null(*resources, "said.lastUpdate", *(f"said.{name}" for name in (*RATES, "numTopics", "numBundles")))


def _flaw(stats: Column) -> Column:
    """What is wrong with one bundle, or null.  Such a bundle does not count; the others of its record do."""
    totals, size = stats["totals"], F.coalesce(F.size(stats["topic"]), F.lit(0))
    arrays = [stats[name] for name in (*RATES, *COUNTS)]
    numbers = F.array(*(totals[name].cast("double") for name in (*_SUMMED, "topics")))
    lacking = _any(totals[name].isNull() for name in (*_SUMMED, "topics")) | stats["bundle"].isNull()
    lacking = lacking | ((size > 0) & _any(array.isNull() for array in arrays))
    uneven = (size > 0) & _any(F.size(array) != size for array in arrays)
    return (
        F.when(lacking, "missing_field")
        .when(uneven | _out_of_range(numbers), "bad_value")
        .when(_impossible(stats["bundle"]), "impossible_bundle")
    )


def _impossible(bundle: Column) -> Column:
    lower, upper = F.substring(bundle, -19, 8), F.substring(bundle, -8, 8)
    return ~bundle.rlike(_BUNDLE_NAME) | (lower >= upper)


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions)


def _any_null(*names: str) -> Column:
    return _any(F.col(name).isNull() for name in names)


def _flat(name: str) -> Column:
    """All topics' values of a sweep under *name*, as one array; null if some bundle lists no topics."""
    return F.flatten(F.col(f"r.bundleStats.{name}"))


def _out_of_range(numbers: Column) -> Column:
    """Some number is negative, too large, infinite or NaN (which Spark orders last)."""
    return F.coalesce((F.array_min(numbers) < 0) | (F.array_max(numbers) > _MAX_RATE), F.lit(False))


def _has_null(array: Column) -> Column:
    """Some element of an array of longs >= 0 is null: then arrays_overlap with what is not there answers null."""
    return F.arrays_overlap(array, F.array(F.lit(-1).cast("long"))).isNull()
