"""From bytes to rows, all in the JVM: topics summed, one pass of the JSON parser, one verdict a record, one explode.

Input, from streaming.sources: ``source, partition, offset, file, append_time (ms), value (bytes)``.

    value --sum--> value without its topics --parse--> record --judge--> good ones --explode--> rows

Topics never leave the JVM one by one: the function ``topics_summed`` (streaming.jvm) adds them up within their record,
before Spark's parser makes an object of each number; only bundles near a split keep them, as arrays.  A refused record
is refused whole; why, in words, controller.wire finds out when it becomes a dead letter.

Cost: one look at each byte of a record; what leaves is one row a bundle and record.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from controller.aggregate.rows import (
    BUNDLE,
    FACT,
    METRICS,
    PER_UNIT,
    REPORT,
    REPORT_BUNDLE,
    RESULTS,
    STATS,
    SWEEP,
    TICK,
    TOPIC,
)
from controller.aggregate.shard import DetailLimits
from controller.wire.base import MAX_QUANTITY, MAX_RATE
from controller.wire.dead_letter import KEPT_BYTES
from controller.wire.metrics import ADDRESS
from streaming import arrow, schemas
from streaming.jvm import topics_summed
from streaming.schemas import BUNDLE_LOAD, COUNTS, DETAIL_LOAD, RESOURCES, SUMMED_RECORD

_FACTS = ("namespace_state", "broker_state", "bundle_data", "result")
_TYPES = {
    METRICS: ("broker_sweep", "topic_stats", "broker_load", "tick", "namespace_state", "broker_state", "bundle_data"),
    RESULTS: ("result", "tick"),
}
_BUNDLE_NAME = r"\A[^/]+/[^/]+(/[^/]+)?/0x[0-9a-f]{8}_0x[0-9a-f]{8}\z"
#: What a record says once: see controller.aggregate.rows.
_ONCE = ("interval", "broker", "sweep", "chunk", "chunks", "last_update", "topic_hash", "topic_position")
_OWN_COUNTS = ("numTopics", "numBundles", "numProducers", "numConsumers", "lastUpdate")


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """What decoding needs to know."""

    cluster: str
    period_ms: int
    max_record_bytes: int
    shards: int
    #: From where on a bundle's topics are kept one by one.
    detail: DetailLimits
    #: Whether Arrow sweeps are read, besides JSON.
    sweeps: Literal["json", "arrow"] = "json"


def rows(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """The rows of the good records of our cluster, as controller.aggregate.rows names them, with their ``shard``."""
    if options.sweeps == "json":
        return _json_rows(records, options)
    is_arrow = arrow.is_arrow(options.max_record_bytes)
    from_json = _json_rows(records.where(~is_arrow), options)
    swept = arrow.rows(records.where(is_arrow), _arrow(options), from_json.drop("shard").schema)
    shard = F.when(F.col("kind") == SWEEP, 0).otherwise(_shard_of("bundle", options))
    return from_json.unionByName(swept.withColumn("shard", shard))


def _arrow(options: DecodeOptions) -> arrow.ArrowOptions:
    return arrow.ArrowOptions(
        cluster=options.cluster,
        period_ms=options.period_ms,
        max_record_bytes=options.max_record_bytes,
        detail=options.detail,
    )


def _json_rows(records: DataFrame, options: DecodeOptions) -> DataFrame:
    # Neither a filter here nor the plain explode (which brings one): the optimizer would push it below the parser and
    # run the parser again for each column it names.
    said = judged(records, options).select(
        "source",
        "partition",
        "offset",
        "file",
        F.when(F.col("r.type").isin("tick", *_FACTS), F.col("value").cast("string")).alias("body"),
        *(F.col(f"r.{name}").alias(name) for name in ("type", *_ONCE, "own")),
        F.when(~F.col("r.refused") & F.col("r.ours"), _elements(options)).alias("elements"),
    )
    exploded = said.select("*", F.posexplode_outer("elements").alias("pos", "one")).drop("elements")
    kind = _kind(options.shards)
    return exploded.where(F.col("pos").isNotNull()).select(
        "source", "partition", "offset", "file", "body", *_ONCE,
        kind.alias("kind"),
        _shard(kind, options).alias("shard"),
        F.coalesce("one.bundle", F.lit("")).alias("bundle"),
        *(F.coalesce(F.get("one.load", i), F.lit(0)).cast("double").alias(name) for i, name in enumerate(STATS)),
        F.when(kind.isin(SWEEP, REPORT) & (F.col("pos") == 0), F.col("own")).alias("numbers"),
        F.col("one.positions").alias("detail_position"),
        *(F.get("one.rates", i).alias(name) for i, name in enumerate(DETAIL_LOAD)),
    )  # fmt: skip


def suspects(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """Records that controller.wire must look at: those ``refused`` here, and all facts and ticks.

    ``suspect`` says which, ``value`` is null where the record is too large to look at.  Like :func:`judged` it must
    not be filtered before it has been computed.
    """
    if options.sweeps == "json":
        return _json_suspects(records, options)
    is_arrow = arrow.is_arrow(options.max_record_bytes)
    of_arrow = arrow.refused(records.where(is_arrow), _arrow(options))
    judged_so = of_arrow.withColumn("r", F.struct(F.lit(True).alias("refused"), F.lit("broker_sweep").alias("type")))
    return _json_suspects(records.where(~is_arrow), options).unionByName(_suspects(judged_so, options))


def _json_suspects(records: DataFrame, options: DecodeOptions) -> DataFrame:
    return _suspects(judged(records, options), options)


def _suspects(judged: DataFrame, options: DecodeOptions) -> DataFrame:
    fits = F.length("value") <= options.max_record_bytes
    return judged.select(
        "source",
        "partition",
        "offset",
        "file",
        "append_time",
        F.col("r.refused").alias("refused"),
        F.when(fits, F.col("value")).alias("value"),
        F.length("value").alias("size"),
        F.sha2("value", 256).alias("sha256"),
        F.substring("value", 1, KEPT_BYTES).alias("head"),
        (F.col("r.refused") | _false_if_null(F.col("r.type").isin("tick", *_FACTS))).alias("suspect"),
    )


def judged(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """*records* with ``r``: what a good record says, see :func:`_judged`, and whether this one is ``refused``."""
    limits = options.detail
    fits = F.length("value") <= options.max_record_bytes
    summed = topics_summed("value", limits.topics, limits.sessions, limits.msg_rate, limits.throughput)
    parsed = F.from_json(summed.cast("string"), SUMMED_RECORD, {"columnNameOfCorruptRecord": "_corrupt_record"})
    return records.select("*", _let(F.when(fits, parsed), lambda r: _judged(r, options)).alias("r"))


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    """*body* of *value*, which is computed once however often the body names it."""
    return F.get(F.transform(F.array(value), body), 0)


# ---- judge ----


def _judged(r: Column, options: DecodeOptions) -> Column:
    """What is said in the record, in one shape for all types."""
    # A LocalBrokerData as brokers write it has no type.
    bare = r.type.isNull() & r.lastStats.isNotNull()
    kind = F.when(bare, F.lit("broker_load")).otherwise(r.type)
    is_sweep, is_load, is_topic = (kind == name for name in ("broker_sweep", "broker_load", "topic_stats"))
    of_itself = F.struct(*(r[name].alias(name) for name in schemas.REPORT.names))
    said = F.when(is_load & ~bare, r.report).when(is_sweep | bare, of_itself)
    bundles = (
        F.when(is_topic, F.array(_of_one_topic(r)))
        .when(is_load, said.lastStats)
        .when(kind == "bundle_data", F.array(_bundle(r.bundle)))
        .when(is_sweep, r.bundleStats)
    )
    address = F.when(is_load, F.coalesce(F.nullif(said.webServiceUrl, F.lit("")), said.webServiceUrlTls))
    host = F.nullif(F.regexp_extract(address, ADDRESS, 1), F.lit(""))
    return _let(
        F.struct(
            kind.alias("kind"),
            bare.alias("bare"),
            said.alias("said"),
            host.alias("host"),
            F.coalesce(F.when(~bare, r.broker), host).alias("broker"),
            bundles.alias("bundles"),
        ),
        lambda found: F.struct(
            found.kind.alias("type"),
            _ours(r, found, options).alias("ours"),
            (_false_if_null(_refused(r, found, options)) & _ours(r, found, options)).alias("refused"),
            F.coalesce(r.interval, F.lit(-1)).alias("interval"),
            F.coalesce(found.broker, F.lit("")).alias("broker"),
            _if_sweep(found, r.sweepId, "").alias("sweep"),
            _if_sweep(found, r.chunk, 0).alias("chunk"),
            _if_sweep(found, r.chunks, 0).alias("chunks"),
            F.coalesce(found.said.lastUpdate, F.lit(0)).alias("last_update"),
            _own(found.said).alias("own"),
            F.when(found.kind == "topic_stats", F.xxhash64(r.topic)).otherwise(0).alias("topic_hash"),
            F.when(found.kind == "topic_stats", F.crc32(r.topic)).otherwise(0).alias("topic_position"),
            found.bundles.alias("bundles"),
        ),
    )


def _ours(r: Column, found: Column, options: DecodeOptions) -> Column:
    return found.bare | (F.coalesce(r.cluster, F.lit(options.cluster)) == options.cluster)


def _if_sweep(found: Column, value: Column, otherwise: object) -> Column:
    return F.coalesce(F.when(found.kind == "broker_sweep", value), F.lit(otherwise))


def _of_one_topic(r: Column) -> Column:
    numbers = [r[name] for name in (*schemas.RATES, *COUNTS)]
    lower, upper = F.substring(r.bundle, -19, 8), F.substring(r.bundle, -8, 8)
    flawed = (
        _any_null(r.bundle, r.topic, *numbers)
        | _empty(r.topic)
        | _any_true(*(x < 0 for x in numbers), *(r[name] > MAX_RATE for name in schemas.RATES))
        | _any_true(~r.bundle.rlike(_BUNDLE_NAME), lower >= upper)
    )
    rates = (F.rint(r[name] * PER_UNIT) for name in schemas.RATES)
    load = F.when(~flawed, F.array(*(x.cast("long") for x in (*rates, r.producerCount, r.consumerCount, F.lit(1)))))
    return _bundle(r.bundle, flawed, load)


def _bundle(name: Column, flawed: Column | None = None, load: Column | None = None) -> Column:
    given = {"bundle": name, "flawed": flawed, "load": load}
    fields = ((given.get(field.name), field) for field in BUNDLE_LOAD.fields)
    return F.struct(*((F.lit(None) if c is None else c).cast(f.dataType).alias(f.name) for c, f in fields))


def _own(said: Column) -> Column:
    """The broker's own numbers, in the order of controller.aggregate.rows.NUMBERS."""
    resources = [said[name][part] for name in RESOURCES for part in ("usage", "limit")]
    loads = [said[name] for name in (*schemas.RATES, "numTopics", "numBundles")]
    return F.when(said.isNotNull(), F.array(*(number.cast("double") for number in (*resources, *loads))))


def _refused(r: Column, found: Column, options: DecodeOptions) -> Column:
    """Whether anything is wrong with the record; a condition that is null does not say so."""
    kind, flawed = found.kind, _any_true(F.array_max(found.bundles.flawed))
    interval = r.interval.isNull() | _any_true(
        r.interval < 0,
        F.pmod(r.interval, F.lit(options.period_ms)) != 0,
        r.interval > F.col("append_time") + options.period_ms,
    )
    unnamed = _any_null(found.broker, found.bundles) | _empty(found.broker)
    content = (
        F.when(kind == "broker_sweep", interval | unnamed | flawed | _sweep_refused(r, found))
        .when(kind == "topic_stats", unnamed | flawed)
        .when(kind == "broker_load", unnamed | flawed | found.host.isNull() | _own_refused(found.said, -MAX_QUANTITY))
        .when(kind == "tick", interval | r.partitions.isNull())
    )
    return (
        r.isNull()
        | r["_corrupt_record"].isNotNull()
        | (~found.bare & (_any_null(r.v, r.cluster) | _any_true(r.v != 1)))
        | kind.isNull()
        | ~F.when(F.col("source") == RESULTS, kind.isin(*_TYPES[RESULTS])).otherwise(kind.isin(*_TYPES[METRICS]))
        | _false_if_null(content)
    )


def _sweep_refused(r: Column, found: Column) -> Column:
    names = found.bundles.bundle
    return (
        _any_null(r.sweepId, r.chunk, r.chunks)
        | _empty(r.sweepId)
        | _any_true(r.chunk < 0, r.chunk >= r.chunks, F.size(F.array_distinct(names)) != F.size(names))
        | _own_refused(found.said, 0.0)
    )


def _own_refused(said: Column, least_limit: float) -> Column:
    """Whether what a broker says of itself lacks something or is out of range."""
    usage, limit = ([said[name][part] for name in RESOURCES] for part in ("usage", "limit"))
    rates, counts = ([said[name] for name in names] for names in (schemas.RATES, _OWN_COUNTS))
    return _any_null(*usage, *limit, *rates, *counts) | _any_true(
        *(x < 0 for x in (*usage, *rates, *counts)),
        *(x < least_limit for x in limit),
        *(x > MAX_QUANTITY for x in (*usage, *limit)),
        *(x > MAX_RATE for x in rates),
    )


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions)


def _any_true(*conditions: Column) -> Column:
    return _false_if_null(_any(conditions))


def _false_if_null(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))


def _any_null(*columns: Column) -> Column:
    return _any(column.isNull() for column in columns)


def _empty(*texts: Column) -> Column:
    return _any_true(*(text == "" for text in texts))


# ---- rows ----


def _elements(options: DecodeOptions) -> Column:
    """One element a row to be: a bundle, or null for what the record says besides.

    A sweep speaks of itself to shard 0 (position 0), a report and a tick to every shard (the first positions).
    """
    nothing = F.lit(None).cast(BUNDLE_LOAD)
    one, all_shards, bundles = F.array(nothing), F.array_repeat(nothing, options.shards), F.col("r.bundles")
    kind = F.col("r.type")
    return (
        F.when(kind == "broker_sweep", F.concat(one, bundles))
        .when(kind == "tick", all_shards)
        .when(kind == "broker_load", F.concat(all_shards, bundles))
        .when(kind.isin("topic_stats", "bundle_data"), bundles)
        .when(kind.isin(*_FACTS), one)
    )


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
    own = _shard_of("one.bundle", options)
    return F.when(kind.isin(TICK, REPORT), F.col("pos")).when(F.col("one").isNull(), 0).otherwise(own)


def _shard_of(bundle: str, options: DecodeOptions) -> Column:
    return F.pmod(F.xxhash64(F.lit(options.cluster), bundle), F.lit(options.shards)).cast("int")
