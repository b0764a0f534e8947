"""Runs the controller: lead, start the queries, and stop them as soon as this process leads no longer."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from controller.adapters.folder import FolderDeadLetterLog, FolderJournal
from controller.adapters.folder_leadership import FileLeadership
from controller.adapters.leadership import Leadership
from controller.adapters.verdicts import VerdictStore
from controller.aggregate.shard import DetailLimits, FoldOptions
from controller.model.controls import Controls
from controller.model.errors import LeadershipLostError, SettingsError, TrimtabError
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from streaming.dead_letters import DeadLetterSink
from streaming.decode import DecodeOptions
from streaming.query import QueryOptions, dead_letter_query, decision_query
from streaming.session import start_session
from streaming.sink import DecisionSink
from streaming.sources import folder_records

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_TRIGGER = "0 seconds"


def run(settings: Settings, stop: Callable[[], bool]) -> None:
    """Lead whenever possible, and decide while leading, until *stop* says so.

    Raises SettingsError for what cannot be run, and what a query failed with.
    """
    folder = _folder(settings)
    leadership = FileLeadership(Path(settings.election.path))
    while leadership.acquire(stop):
        try:
            _lead(settings, folder, leadership, stop)
        except LeadershipLostError as error:
            log.warning("leads no longer: %s", error)
        finally:
            leadership.release()
        if stop():
            return


def query_options(settings: Settings, *, files: bool) -> QueryOptions:
    """What the queries need, from the settings and the split thresholds of broker.conf."""
    split_policy, intervals = read_policy(settings).split_policy, settings.intervals
    if not isinstance(split_policy, BundleSplitterTask):
        raise SettingsError(f"split policy {type(split_policy).__name__} states no thresholds for topic detail")
    detail = _detail_limits(split_policy, intervals.detail_share)
    return QueryOptions(
        decode=DecodeOptions(
            cluster=settings.cluster.name,
            period_ms=intervals.period_ms,
            max_record_bytes=intervals.max_record_bytes,
            shards=intervals.shards,
            detail=detail,
        ),
        fold=FoldOptions(bundle_ttl_ms=intervals.bundle_ttl_intervals * intervals.period_ms, detail=detail),
        files=files,
    )


def _detail_limits(policy: BundleSplitterTask, share: float) -> DetailLimits:
    sessions = policy.max_sessions if policy.max_sessions > 0 else float("inf")
    return DetailLimits(
        topics=share * policy.max_topics,
        sessions=share * sessions,
        msg_rate=share * policy.max_msg_rate,
        throughput=share * policy.max_bandwidth_mbytes * (1 << 20),
    )


def _folder(settings: Settings) -> Path:
    if settings.log.kind != "folder" or settings.log.folder is None or settings.election.kind != "file":
        raise SettingsError(
            f"log.kind = {settings.log.kind!r} with election.kind = {settings.election.kind!r}: "
            "this release runs 'folder' with 'file' only"
        )
    return Path(settings.log.folder.path)


def _lead(settings: Settings, folder: Path, leadership: Leadership, stop: Callable[[], bool]) -> None:
    """Decide as the leader until told to stop, or until leadership is lost."""
    policy, options = read_policy(settings), query_options(settings, files=True)
    journal = FolderJournal(folder, cluster=settings.cluster.name)
    head = journal.open()
    epoch = leadership.claim(head.epoch)
    journal.begin_epoch(epoch)
    memory = head.last.memory if head.last is not None else policy.initial_memory(settings.decisions.seed)

    def controls(interval: int) -> Controls:
        stale = _now_ms() - interval > settings.intervals.stale_after_seconds * 1000
        return Controls(mode=settings.decisions.mode, paused=settings.decisions.paused, stale=stale)

    sink = DecisionSink(
        policy=policy,
        memory=memory,
        journal=journal,
        leadership=leadership,
        epoch=epoch,
        controls=controls,
        now_ms=_now_ms,
        verdicts=VerdictStore(Path(settings.checkpoint.path) / "verdicts"),
    )
    letters = DeadLetterSink(FolderDeadLetterLog(folder), options.decode)
    for name in ("metrics", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    spark = start_session(settings.spark.master, settings.spark.shuffle_partitions, settings.spark.conf)
    records: DataFrame = folder_records(spark, folder)
    checkpoint = settings.checkpoint.path
    queries = [
        query.trigger(processingTime=_TRIGGER).start()
        for query in (
            decision_query(records, options, sink, checkpoint=checkpoint),
            dead_letter_query(records, options, letters, checkpoint=checkpoint),
        )
    ]
    try:
        _watch(queries, leadership, stop)
    except TrimtabError:
        raise
    except Exception as error:
        raise sink.failure or letters.failure or TrimtabError(f"a query ended: {error}") from error
    finally:
        for query in queries:
            query.stop()


def _watch(queries: list[StreamingQuery], leadership: Leadership, stop: Callable[[], bool]) -> None:
    while not stop():
        time.sleep(_POLL_SECONDS)
        if leadership.lost():
            raise LeadershipLostError("another may lead by now")
        for query in queries:
            if not query.isActive:
                query.awaitTermination()  # raises what ended it
                raise TrimtabError(f"query {query.name} ended by itself")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
