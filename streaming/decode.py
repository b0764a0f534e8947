"""From bytes to rows, all in the JVM: topics summed, one pass of the JSON parser, one verdict a record, one explode.

Input, from streaming.sources: ``source, partition, offset, file, append_time (ms), value (bytes)``.

    value --sum--> value without its topics --parse--> record --judge--> good ones --explode--> rows

Topics never leave the JVM one by one: the function ``topics_summed`` (streaming.jvm) adds them up within their record,
before Spark's parser makes an object of each number; only bundles near a split keep them, as arrays.  A refused record
is refused whole; why, in words, controller.wire finds out when it becomes a dead letter.

Arrow sweeps take another way, see streaming.arrow.

Cost: one look at each byte of a record; what leaves is one row a bundle and record.
"""

from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from controller.aggregate.rows import (
    BUNDLE,
    FACT,
    REPORT,
    REPORT_BUNDLE,
    STATS,
    SWEEP,
    TICK,
    TOPIC,
)
from controller.aggregate.shard import DetailLimits
from controller.wire.dead_letter import KEPT_BYTES
from streaming import arrow
from streaming.judge import FACTS, false_if_null, judge, let
from streaming.jvm import topics_summed
from streaming.schemas import BUNDLE_LOAD, DETAIL_LOAD, SUMMED_RECORD

#: What a record says once: see controller.aggregate.rows.
_ONCE = ("interval", "broker", "sweep", "chunk", "chunks", "last_update", "topic_hash", "topic_position")


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
        F.when(F.col("r.type").isin("tick", *FACTS), F.col("value").cast("string")).alias("body"),
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
        (F.col("r.refused") | false_if_null(F.col("r.type").isin("tick", *FACTS))).alias("suspect"),
    )


def judged(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """*records* with ``r``: what a good record says, see streaming.judge, and whether this one is ``refused``."""
    limits = options.detail
    fits = F.length("value") <= options.max_record_bytes
    summed = topics_summed("value", limits.topics, limits.sessions, limits.msg_rate, limits.throughput)
    parsed = F.from_json(summed.cast("string"), SUMMED_RECORD, {"columnNameOfCorruptRecord": "_corrupt_record"})
    judgement = let(F.when(fits, parsed), lambda r: judge(r, cluster=options.cluster, period_ms=options.period_ms))
    return records.select("*", judgement.alias("r"))


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
        .when(kind.isin(*FACTS), one)
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
