"""From the settings to the parts of a running controller: session, source, options, sinks.

Here alone it is decided what a log in Kafka and one in a folder need; queries and sinks do not know which it is.
"""

import time
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from controller.adapters import jars
from controller.adapters import opened as transport
from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.folder.log import files_of
from controller.adapters.opened import leadership as leadership
from controller.adapters.verdicts import VerdictStore
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.aggregate.limits import WaitLimits
from controller.aggregate.rows import METRICS, RESULTS
from controller.aggregate.shard import DetailLimits, FoldOptions
from controller.engine import take_over
from controller.model.errors import SettingsError
from controller.ports.controls import ControlStore
from controller.ports.leadership import Leadership
from controller.settings.log import LogInFolder, LogInKafka
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.strategies.protocols import SplitThresholds
from streaming.checkpoint import CheckpointFiles, checkpoint_files
from streaming.dead_letters import DeadLetterSink
from streaming.decode import DecodeOptions
from streaming.query import QueryOptions
from streaming.session import start_session
from streaming.sink import DecisionSink
from streaming.sources import FILES_PER_TRIGGER, folder_records, kafka_records

#: The set of conf/jars.lock that Spark needs to read Kafka.
_CONNECTOR = "connector"
_DAY_MS = 86_400_000


def check_shared_checkpoint(settings: Settings, leader: Leadership, files: CheckpointFiles) -> None:
    """Refuse, with a SettingsError, a checkpoint that the other controllers of this cluster do not see.

    A checkpoint says who it is in its file ``identity``, and the first leader writes that into ZooKeeper.
    """
    if not isinstance(leader, ZooKeeperLeadership):
        return
    files.create("identity", uuid4().hex.encode())
    ours = (files.read("identity") or b"").decode(errors="replace")
    agreed = leader.agreed("checkpoint", ours)
    if agreed != ours:
        node = f"{settings.election.path.rstrip('/')}/{settings.cluster.name}/checkpoint"
        raise SettingsError(
            f"checkpoint.path = {settings.checkpoint.path!r}: its file identity is {ours}, the controllers of this"
            f" cluster use {agreed}: choose a place that all of them share; where the old one is gone for good, delete"
            f" {node} in ZooKeeper ({settings.election.hosts})"
        )


def has_committed(checkpoint: str, files: CheckpointFiles) -> bool:
    """Whether Spark has committed a batch of the main query, whose checkpoint is *checkpoint*."""
    return any(name.isdigit() for name in files.names(f"{checkpoint.rpartition('/')[2]}/commits"))


def files_of_checkpoint(spark: SparkSession, settings: Settings) -> CheckpointFiles:
    """The checkpoint's own files, wherever they lie.  SettingsError where Spark cannot reach them."""
    return checkpoint_files(spark, settings.checkpoint.path)


def session(settings: Settings) -> SparkSession:
    """The Spark session that *settings* want; fetches Spark's Kafka connector where it is needed and missing."""
    connector = jars.fetch(_CONNECTOR) if isinstance(settings.log, LogInKafka) else ()
    return start_session(
        settings.spark.master,
        settings.spark.shuffle_partitions,
        settings.spark.conf,
        connector,
    )


def records(spark: SparkSession, settings: Settings, max_offsets: int | None = None) -> DataFrame:
    """The log's records as a stream; *max_offsets* of a batch, where the settings allow too many just now."""
    log, max_offsets = settings.log, max_offsets or settings.spark.max_offsets_per_trigger
    if isinstance(log, LogInKafka):
        return kafka_records(spark, log.kafka, max_offsets=max_offsets, now_ms=now_ms())
    folder, most = Path(log.folder.path), min(FILES_PER_TRIGGER, max_offsets)
    enough = files_of(folder, settings.intervals.close_at_most)
    return folder_records(spark, folder, files_per_trigger=most if enough is None else min(most, enough))


def query_options(settings: Settings) -> QueryOptions:
    """What the queries need, from the settings and the split thresholds of broker.conf."""
    intervals, in_folder = settings.intervals, isinstance(settings.log, LogInFolder)
    detail = _detail_limits(read_policy(settings).split_policy.thresholds, intervals.detail_share)
    return QueryOptions(
        decode=DecodeOptions(
            cluster=settings.cluster.name,
            period_ms=intervals.period_ms,
            max_record_bytes=intervals.max_record_bytes,
            shards=intervals.shards,
            detail=detail,
        ),
        fold=FoldOptions(
            bundle_ttl_ms=intervals.bundle_ttl_intervals * intervals.period_ms,
            detail=detail,
            # Nobody may ever tick a folder again: what it holds is closed when it is read.
            close_at_most=None if in_folder else intervals.close_at_most,
            waiting=WaitLimits(
                intervals=intervals.waiting_intervals, size=(intervals.waiting_mbytes << 20) // intervals.shards
            ),
            state_ttl=intervals.state_ttl_intervals,
        ),
        files=in_folder,
    )


def decision_sink(
    settings: Settings, leader: Leadership, store: ControlStore, *, has_begun: bool = False
) -> DecisionSink:
    """The sink of a leadership that begins now: fences earlier writers, claims an epoch, reads the memory.

    *has_begun*: Spark has committed batches, before which a leadership was journalled.  Raises JournalLostError where
    nothing is in the journal all the same, LeadershipLostError where another leads by now.
    """
    kept, journal = settings.journal, transport.journal(settings)
    engine = take_over(
        policy=read_policy(settings),
        seed=settings.decisions.seed,
        journal=journal,
        leadership=leader,
        controls=ControlsInForce(settings, store, now_ms).at,
        now_ms=now_ms,
        checkpoint=settings.checkpoint.path if has_begun else None,
    )
    return DecisionSink(
        engine,
        journal=journal,
        now_ms=now_ms,
        verdicts=VerdictStore(
            Path(settings.verdicts_folder), keep=kept.verdicts_intervals, keep_bytes=kept.verdicts_megabytes << 20
        ),
        retention_ms=kept.retention_days * _DAY_MS,
    )


def dead_letter_sink(settings: Settings, options: QueryOptions) -> DeadLetterSink:
    """The sink of what cannot be used."""
    kafka = settings.log.kafka if isinstance(settings.log, LogInKafka) else None
    topics = {} if kafka is None else {METRICS: kafka.metrics_topic, RESULTS: kafka.results_topic}
    return DeadLetterSink(transport.dead_letter_log(settings), options.decode, topics)


def now_ms() -> int:
    """The wall clock, epoch ms: for envelopes and the age of data, never for a decision."""
    return time.time_ns() // 1_000_000


def _detail_limits(thresholds: SplitThresholds, share: float) -> DetailLimits:
    return DetailLimits(
        topics=share * thresholds.topics,
        sessions=share * thresholds.sessions,
        msg_rate=share * thresholds.msg_rate,
        throughput=share * thresholds.throughput,
    )
