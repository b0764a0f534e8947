"""Good or bad: what a parsed record says, and whether anything is wrong with it, as expressions of Spark.

controller.wire draws the same line; a test holds the two against each other.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from controller.aggregate.rows import METRICS, PER_UNIT, RESULTS
from controller.wire.base import MAX_QUANTITY, MAX_RATE
from controller.wire.metrics import ADDRESS
from streaming import schemas
from streaming.schemas import BUNDLE_LOAD, COUNTS, RESOURCES

#: Types that pass as text: controller.wire reads them.
FACTS = ("namespace_state", "broker_state", "bundle_data", "result")
_TYPES = {
    METRICS: ("broker_sweep", "topic_stats", "broker_load", "tick", "namespace_state", "broker_state", "bundle_data"),
    RESULTS: ("result", "tick"),
}
_BUNDLE_NAME = r"\A[^/]+/[^/]+(/[^/]+)?/0x[0-9a-f]{8}_0x[0-9a-f]{8}\z"
_OWN_COUNTS = ("numTopics", "numBundles", "numProducers", "numConsumers", "lastUpdate")


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """*body* of *value*, which is computed once however often the body names it."""
    return F.get(F.transform(F.array(value), body), 0)


def judge(r: Column, *, cluster: str, period_ms: int) -> Column:
    """What is said in *r*, a SUMMED_RECORD, in one shape for all types, and whether it is ``refused``."""
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
    return let(
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
            _ours(r, found, cluster).alias("ours"),
            (false_if_null(_refused(r, found, period_ms)) & _ours(r, found, cluster)).alias("refused"),
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


def _ours(r: Column, found: Column, cluster: str) -> Column:
    return found.bare | (F.coalesce(r.cluster, F.lit(cluster)) == cluster)


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


def _refused(r: Column, found: Column, period_ms: int) -> Column:
    """Whether anything is wrong with the record; a condition that is null does not say so."""
    kind, flawed = found.kind, _any_true(F.array_max(found.bundles.flawed))
    interval = r.interval.isNull() | _any_true(
        r.interval < 0,
        F.pmod(r.interval, F.lit(period_ms)) != 0,
        r.interval > F.col("append_time") + period_ms,
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
        | false_if_null(content)
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
    return false_if_null(_any(conditions))


def false_if_null(condition: Column) -> Column:
    """*condition*, and a null one is none."""
    return F.coalesce(condition, F.lit(False))


def _any_null(*columns: Column) -> Column:
    return _any(column.isNull() for column in columns)


def _empty(*texts: Column) -> Column:
    return _any_true(*(text == "" for text in texts))
