"""How fast the real query is: a modelled cluster on a real Kafka, through the whole of it, interval by interval.

What is measured is a controller that has been running for a while: one query that goes on, and for each interval the
micro-batch that closes and decides it.  The floor is the lower limit: the same records read from the same
Kafka and parsed with the same schema, into Spark's noop sink.  It comes second each time, when its input is in memory
already, so the ratio is rather too high than too low.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.kafka.log import KafkaMetricsLog, create_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.bench.record_schema import RECORD
from controller.model.errors import TrimtabError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ClusterShape, ModelledCluster, ModelledSweep
from controller.simulator.encode import FORMS, KeyValue, topic_records
from streaming.assembly import Assembly
from streaming.gate import open_gate
from streaming.sink import DecisionSink

_START_MS: Final = 1_735_689_600_000
_CLUSTER: Final = "bench"
_PARTITIONS: Final = 4
#: Intervals that are not counted: the JVM compiles what is hot while they run.
WARM_UP: Final = 4
#: How often the query looks for a new interval; the waiting is not counted.
_TRIGGER: Final = "1 second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one form of records costs; medians over the runs."""

    form: str
    topics: int
    bundles: int
    brokers: int
    megabytes_per_interval: float
    topics_per_second: float
    seconds_per_interval: float
    floor_seconds: float
    #: Median of the runs' own quotients: floor and query take turns, so changes in machine speed cancel out.
    ratio_to_floor: float
    lowest_ratio: float
    highest_ratio: float


def pipeline(
    form: str, shape: ClusterShape, bootstrap: str, folder: Path, *, runs: int, said: Callable[[str], None]
) -> Figures:
    """Measure *form*, one of FORMS, over *runs* intervals after those to warm up.

    On the Kafka at *bootstrap*; state in *folder*.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kafka = _log(form, bootstrap)
    settings = _settings(kafka, folder)
    assembly = Assembly(settings)
    spark = assembly.session()
    cluster = ModelledCluster(shape, seed=1, name=_CLUSTER)
    create_topics(kafka)
    leader = FileLeadership(folder / "election")
    leader.acquire(lambda: False)
    sink = assembly.decision_sink(leader, assembly.control_store(), assembly.dead_letters(spark))
    query = assembly.decision_query(spark, sink)
    running = query.trigger(processingTime=_TRIGGER).start()
    measured, size = [], 0
    for run in range(WARM_UP + runs):
        interval = _START_MS + run * settings.intervals.period_ms
        size = _publish(cluster, interval, FORMS[form], kafka)
        cluster.advance()
        open_gate(spark)
        seconds = _seconds_of_query(running, sink)
        floor = _floor(assembly.records(spark), folder / "floor").trigger(availableNow=True).start()
        floor.awaitTermination()
        of_floor = _seconds(floor.recentProgress)
        warm = "" if run >= WARM_UP else " (to warm up)"
        said(f"{form}: interval {run + 1}{warm}: floor {of_floor:.2f} s, query {seconds:.2f} s")
        measured.append((of_floor, seconds))
    running.stop()
    leader.release()
    return _figures(form, shape, size, measured[WARM_UP:])


def _seconds_of_query(running: StreamingQuery, sink: DecisionSink) -> float:
    """Wait until *running* has read what there is; returns the seconds that this took."""
    mark = len(running.recentProgress)
    try:
        running.processAllAvailable()
    except StreamingQueryException as error:
        raise sink.failure or error from error
    return _seconds(running.recentProgress[mark:])


def _figures(form: str, shape: ClusterShape, size: int, measured: Sequence[tuple[float, float]]) -> Figures:
    """*size*: bytes of an interval; *measured*: the seconds of floor and query of each run."""
    floors, queries = [floor for floor, _ in measured], [query for _, query in measured]
    ratios = [query / floor for floor, query in measured]
    return Figures(
        form=form,
        topics=shape.topics,
        bundles=shape.bundles,
        brokers=shape.brokers,
        megabytes_per_interval=round(size / 1e6, 1),
        topics_per_second=round(shape.topics / statistics.median(queries)),
        seconds_per_interval=round(statistics.median(queries), 3),
        floor_seconds=round(statistics.median(floors), 3),
        ratio_to_floor=round(statistics.median(ratios), 3),
        lowest_ratio=round(min(ratios), 3),
        highest_ratio=round(max(ratios), 3),
    )


def _log(form: str, bootstrap: str) -> KafkaLogSettings:
    names = ("metrics", "results", "commands", "journal", "dead_letters")
    topics = {f"{name}_topic": f"{form}-{name}" for name in names}
    return KafkaLogSettings.model_validate({"bootstrap": bootstrap, "partitions": _PARTITIONS, **topics})


def _settings(kafka: KafkaLogSettings, folder: Path) -> Settings:
    conf = folder / "broker.conf"
    conf.touch()
    return Settings.model_validate(
        {
            "cluster": {"name": _CLUSTER, "broker_conf": str(conf)},
            # The modelled clock is far behind the real time.
            "intervals": {"stale_after_seconds": 3_153_600_000},
            "log": {"kind": "kafka", "kafka": kafka},
            "election": {"kind": "file", "path": str(folder / "election")},
            "checkpoint": {"path": str(folder / "checkpoint")},
            "spark": {
                "master": "local[2]",
                "shuffle_partitions": 2,
                "max_offsets_per_trigger": 10_000_000,
                "conf": {"spark.driver.memory": "6g"},
            },
            "decisions": {"mode": "active"},
        }
    )


def _publish(
    cluster: ModelledCluster,
    interval: int,
    form: Callable[[ModelledSweep], Iterator[KeyValue]],
    kafka: KafkaLogSettings,
) -> int:
    """Publish one interval with its ticks, at once, so that it is one micro-batch; returns the bytes."""
    sweeps = list(cluster.sweeps(interval))
    records = list(chain.from_iterable(map(form, sweeps)))
    swept = form is not topic_records
    publisher = TransactionalProducer(kafka.bootstrap, f"{_CLUSTER}-metrics")
    publisher.init()
    with publisher.transaction() as transaction:
        metrics = KafkaMetricsLog(kafka, cluster=_CLUSTER, transaction=transaction)
        metrics.publish(records)
        metrics.tick(interval, {sweep.broker: sweep.sweep_id if swept else None for sweep in sweeps})
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
