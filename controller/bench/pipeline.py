"""How fast the real query is: a modelled cluster on a real log, through the whole of it, interval by interval.

What is measured is a controller that has been running for a while: one query that goes on, and for each interval the
micro-batch that closes and decides it.  The floor is the lower limit: the same records read from the same
log and parsed with the same schema, into Spark's noop sink.  It comes second each time, when its input is in memory
already, so the ratio is rather too high than too low.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import ArrayType, DoubleType, LongType, MapType, StringType, StructField, StructType

from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.process.process_tree import usage
from controller.bench.logs import LogServer, MeasuredLog
from controller.bench.stages import event_log, read_stages
from controller.model.errors import TrimtabError
from controller.model.load import RESOURCES
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ClusterShape, ModelledCluster, ModelledSweep
from controller.simulator.encode import FORMS, KeyValue, namespace_record, topic_records
from controller.wire.answers.bench import PipelineAnswer, StagesAnswer
from streaming.assembly import Assembly
from streaming.sink import DecisionSink
from streaming.spark import gateway


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


_START_MS: Final = 1_735_689_600_000
_CLUSTER: Final = "bench"
#: Intervals that are not counted: the JVM compiles what is hot while they run.
WARM_UP: Final = 4
#: How often the query looks for a new interval; the waiting is not counted.
_TRIGGER: Final = "1 second"
#: Where Spark logs its events, beside the folders of the forms: they share a session.
_EVENTS: Final = "events"


class _Run(NamedTuple):
    """One interval."""

    floor_seconds: float
    query_seconds: float
    cpu_seconds: float


def pipeline(
    form: str,
    shape: ClusterShape,
    server: LogServer,
    folder: Path,
    *,
    master: str,
    partitions: int,
    runs: int,
    report: Callable[[str], None],
) -> PipelineAnswer:
    """Measure *form*, one of FORMS, over *runs* intervals after those to warm up.

    In a log on *server*, in topics of so many *partitions*; state in *folder*; *master*: Spark's, which one
    process has one of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    events = folder.parent / _EVENTS
    log = server.log(form, partitions, _CLUSTER)
    settings = _settings(log, folder, master, events)
    assembly = Assembly(settings)
    spark = assembly.session()
    cluster = ModelledCluster(shape, seed=1, name=_CLUSTER)
    leader = FileLeadership(folder / "election")
    leader.acquire(lambda: False)
    sink = assembly.decision_sink(leader, assembly.control_store(), assembly.dead_letters(spark))
    running = assembly.decision_query(spark, sink).trigger(processingTime=_TRIGGER).start()
    measured, size, warm_ms = list[_Run](), 0, 0
    for run in range(WARM_UP + runs):
        interval = _START_MS + run * settings.intervals.period_ms
        size = _publish(cluster, interval, FORMS[form], log)
        cluster.advance()
        warm_ms = time.time_ns() // 1_000_000 if run == WARM_UP else warm_ms
        one = _run(assembly, spark, running, sink, folder / "floor")
        warm = "" if run >= WARM_UP else " (to warm up)"
        report(
            f"{form}: interval {run + 1}{warm}: floor {one.floor_seconds:.2f} s, query {one.query_seconds:.2f} s,"
            f" {one.cpu_seconds:.1f} s of CPU"
        )
        measured.append(one)
    running.stop()
    leader.release()
    _wait_for_event_log(spark)
    stages = read_stages(events, warm_ms, runs)
    return _figures(form, shape, master, partitions, size, measured[WARM_UP:], stages)


def _run(assembly: Assembly, spark: SparkSession, running: StreamingQuery, sink: DecisionSink, floor: Path) -> _Run:
    """Let the query read the interval that lies in the log; then the floor, with its checkpoint in *floor*."""
    before = usage(gateway.jvm_pid()).cpu_seconds
    assembly.open_gate(spark)
    seconds = _seconds_of_query(running, sink)
    cpu = usage(gateway.jvm_pid()).cpu_seconds - before
    bare = _floor(assembly.records(spark), floor).trigger(availableNow=True).start()
    bare.awaitTermination()
    return _Run(floor_seconds=_seconds(bare.recentProgress), query_seconds=seconds, cpu_seconds=cpu)


def _wait_for_event_log(spark: SparkSession) -> None:
    """Until Spark has logged what has happened: it does so in a thread of its own."""
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty()


def _seconds_of_query(running: StreamingQuery, sink: DecisionSink) -> float:
    """Wait until *running* has read what there is; returns the seconds that this took."""
    mark = len(running.recentProgress)
    try:
        running.processAllAvailable()
    except StreamingQueryException as error:
        raise sink.failure or error from error
    return _seconds(running.recentProgress[mark:])


def _figures(
    form: str,
    shape: ClusterShape,
    master: str,
    partitions: int,
    size: int,
    measured: Sequence[_Run],
    stages: StagesAnswer,
) -> PipelineAnswer:
    """*size*: bytes of an interval."""
    queries = [one.query_seconds for one in measured]
    ratios = [one.query_seconds / one.floor_seconds for one in measured]
    return PipelineAnswer(
        form=form,
        topics=shape.topics,
        bundles=shape.bundles,
        brokers=shape.brokers,
        megabytes_per_interval=round(size / 1e6, 1),
        topics_per_second=round(shape.topics / statistics.median(queries)),
        seconds_per_interval=round(statistics.median(queries), 3),
        floor_seconds=round(statistics.median(one.floor_seconds for one in measured), 3),
        ratio_to_floor=round(statistics.median(ratios), 3),
        lowest_ratio=round(min(ratios), 3),
        highest_ratio=round(max(ratios), 3),
        master=master,
        partitions=partitions,
        cpu_seconds=round(statistics.median(one.cpu_seconds for one in measured), 2),
        stages=stages,
    )


def _settings(log: MeasuredLog, folder: Path, master: str, events: Path) -> Settings:
    conf = folder / "broker.conf"
    conf.touch()
    return Settings.model_validate(
        {
            "cluster": {"name": _CLUSTER, "broker_conf": str(conf)},
            # The modelled clock is far behind the real time.
            "intervals": {"stale_after_seconds": 3_153_600_000},
            "log": log.section,
            "election": {"kind": "file", "path": str(folder / "election")},
            "checkpoint": {"path": str(folder / "checkpoint")},
            "spark": {
                "master": master,
                "shuffle_partitions": 2,
                "max_offsets_per_trigger": 10_000_000,
                "conf": {"spark.driver.memory": "6g", **event_log(events)},
            },
            "decisions": {"mode": "active"},
        }
    )


def _publish(
    cluster: ModelledCluster,
    interval: int,
    form: Callable[[ModelledSweep], Iterator[KeyValue]],
    log: MeasuredLog,
) -> int:
    """Publish one interval with its ticks, at once, so that it is one micro-batch; returns the bytes.

    With what is new about namespaces, as a collector does: nothing is moved in a namespace that is not described.
    """
    states = [namespace_record(_CLUSTER, state) for state in cluster.changed_namespaces()]
    sweeps = list(cluster.sweeps(interval))
    records = [*states, *chain.from_iterable(map(form, sweeps))]
    swept = form is not topic_records
    log.publish(records, interval, {sweep.broker: sweep.sweep_id if swept else None for sweep in sweeps})
    return sum(len(value) for _, value in records)


def _floor(records: DataFrame, checkpoint: Path) -> DataStreamWriter:
    """Reads and parses what the query reads, and does nothing with it."""
    parsed = F.from_json(F.col("value").cast("string"), RECORD, {"columnNameOfCorruptRecord": "_corrupt_record"})
    columns = [name for name in records.columns if name != "value"]
    return (
        records.select(*columns, parsed.alias("r"))
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
    )


def _seconds(progress: Sequence[Any]) -> float:
    """Seconds that the micro-batches among *progress* took."""
    batches = [batch for batch in progress if batch["numInputRows"]]
    if not batches:
        raise TrimtabError("the query read none of the published records: see its log")
    return sum(float(batch["durationMs"]["triggerExecution"]) for batch in batches) / 1000
