"""Runs the controller: lead, start the queries, and stop them as soon as this process leads no longer."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from controller.adapters.calls import side_by_side
from controller.adapters.controls_in_force import mode_in_force
from controller.adapters.deadline import Deadline
from controller.adapters.failpoints import watch_state_commits
from controller.adapters.kafka import java_options as java_kafka
from controller.adapters.opened import control_store
from controller.adapters.recent import last_tick
from controller.adapters.signals import MayTake, without_limit
from controller.doctor.before_acting import refuse_producers_clocks, refuse_rivals
from controller.model.errors import LeadershipLostError, StalledError, TrimtabError
from controller.ports.controls import ControlStore
from controller.ports.leadership import Leadership, no_preparation
from controller.settings.log import LogInKafka
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from streaming import assembly, catching_up
from streaming.checkpoint import CheckpointFiles
from streaming.dead_letters import DeadLetterSink
from streaming.progress import ProgressWatch
from streaming.query import QueryOptions, dead_letter_query, decision_checkpoint, decision_query
from streaming.rehearsal import rehearse
from streaming.sink import DecisionSink

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
#: So long a micro-batch, and the end of Spark, may still take when this process is told to stop.
_FINISH_SECONDS = 10.0
#: So long a query may take to stop, which breaks its micro-batch off.
_STOP_SECONDS = 15.0
_TRIGGER = "0 seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a controller is put together from; a test gives its own."""

    session: Callable[[Settings], SparkSession] = assembly.session
    leadership: Callable[[Settings], Leadership] = assembly.leadership
    rehearse: Callable[[SparkSession, Settings], None] = rehearse
    files_of_checkpoint: Callable[[SparkSession, Settings], CheckpointFiles] = assembly.files_of_checkpoint
    has_committed: Callable[[str, CheckpointFiles], bool] = assembly.has_committed
    decision_sink: Callable[..., DecisionSink] = assembly.decision_sink
    dead_letter_sink: Callable[[Settings, QueryOptions], DeadLetterSink] = assembly.dead_letter_sink
    records: Callable[..., DataFrame] = assembly.records
    decision_query: Callable[..., DataStreamWriter] = decision_query
    dead_letter_query: Callable[..., DataStreamWriter] = dead_letter_query
    poll_seconds: float = _POLL_SECONDS


def run(
    settings: Settings, stop: Callable[[], bool], may_take: MayTake = without_limit, parts: Parts | None = None
) -> None:
    """Lead whenever possible, and decide while leading, until *stop* says so.

    *may_take* is told how long a micro-batch may go on when this process is told to stop.

    Raises SettingsError for what cannot be run, LeadershipLostError when this process cannot lead again and has to be
    started anew, StalledError when a query stands still, and what a query failed with.  A query that cannot even be
    stopped ends this process, with the exit code of what was to be raised.
    """
    parts = parts or Parts()
    read_policy(settings)  # a mistake in broker.conf is told at once, not when this process comes to lead
    store = control_store(settings)
    refuse_rivals(settings, mode=mode_in_force(settings, store))
    # Spark takes longer to start than all the rest of a takeover: whoever stands by has it running, and has rehearsed.
    spark = parts.session(settings)
    leadership = parts.leadership(settings)
    stand_by: Callable[[], None] = partial(parts.rehearse, spark, settings)
    try:
        while leadership.acquire(stop, stand_by):
            stand_by = no_preparation  # a process that has led needs no rehearsal
            try:
                with may_take(_FINISH_SECONDS):
                    _lead(settings, parts, spark, leadership, store, stop)
            except LeadershipLostError as error:
                if leadership.session_lost():
                    raise
                log.warning("leads no longer: %s", error)
            if stop():
                break
    finally:
        leadership.release()
        store.close()
    with may_take(_FINISH_SECONDS):
        spark.stop()


def _lead(
    settings: Settings,
    parts: Parts,
    spark: SparkSession,
    leadership: Leadership,
    store: ControlStore,
    stop: Callable[[], bool],
) -> None:
    """Decide as the leader until told to stop, or until leadership is lost."""
    files = parts.files_of_checkpoint(spark, settings)
    assembly.check_shared_checkpoint(settings, leadership, files)
    # They may have been switched on since this process stood by.
    refuse_rivals(settings, mode=mode_in_force(settings, store), must_know=False)
    options, checkpoint = assembly.query_options(settings), settings.checkpoint.path
    has_begun = parts.has_committed(decision_checkpoint(checkpoint, options), files)
    decisions = parts.decision_sink(settings, leadership, store, has_begun=has_begun)
    letters = parts.dead_letter_sink(settings, options)
    refuse_producers_clocks(settings)
    watch = ProgressWatch(partial(last_tick, settings), after_seconds=settings.intervals.stalled_after_seconds)
    log.info("leads, epoch %d", decisions.epoch)
    watch_state_commits(Path(decision_checkpoint(checkpoint, options)))

    def decide(max_offsets: int | None, **trigger: Any) -> StreamingQuery:
        records = parts.records(spark, settings, max_offsets)
        return parts.decision_query(records, options, decisions, checkpoint=checkpoint).trigger(**trigger).start()

    # The lock gates the start: two drivers never share a checkpoint.
    leadership.check()
    suspects = parts.dead_letter_query(parts.records(spark, settings), options, letters, checkpoint=checkpoint)
    with running(suspects.trigger(processingTime=_TRIGGER).start()) as suspects_query:
        log.info("reads the log")
        try:
            for most in catching_up.offsets_a_batch(spark, settings, decision_checkpoint(checkpoint, options)):
                with running(decide(most, availableNow=True)) as query:
                    _watch([suspects_query, query], leadership, watch, stop, parts.poll_seconds, until=query)
                if stop():
                    return
            with running(decide(None, processingTime=_TRIGGER)) as query:
                _watch([suspects_query, query], leadership, watch, stop, parts.poll_seconds)
        except TrimtabError:
            raise
        except Exception as error:
            leadership.check()  # a driver that wakes up behind its successor may meet anything: lost leadership is why
            raise decisions.failure or letters.failure or _failure(settings, error) from error


def _failure(settings: Settings, error: Exception) -> TrimtabError:
    """Why a query ended, when it was not a sink's doing."""
    kafka = settings.log.kafka if isinstance(settings.log, LogInKafka) else None
    denied = None if kafka is None else java_kafka.refusal(kafka.bootstrap, kafka.client, str(error))
    return denied or TrimtabError(f"a query ended: {error}")


@contextmanager
def running(
    query: StreamingQuery, *, stop_seconds: float = _STOP_SECONDS, exit_now: Callable[[int], object] = os._exit
) -> Iterator[StreamingQuery]:
    """Stop *query* at the end of the block.

    Where that takes longer than *stop_seconds*, *exit_now* ends this process: nobody else can take over what the query
    holds.
    """
    try:
        yield query
    finally:
        _stop(query, stop_seconds, exit_now)


def _stop(query: StreamingQuery, stop_seconds: float, exit_now: Callable[[int], object]) -> None:
    stopped = side_by_side({"stop": query.stop}, stop_seconds)["stop"]
    if stopped.late:
        error = sys.exception()
        log.critical("a query has not stopped for %g s: this process ends now (%s)", stop_seconds, error)
        # Spark's JVM sees its input end, and ends too.
        exit_now(error.exit_code if isinstance(error, TrimtabError) else StalledError.exit_code)
    else:
        stopped.result()


def _watch(
    queries: list[StreamingQuery],
    leadership: Leadership,
    watch: ProgressWatch,
    stop: Callable[[], bool],
    poll_seconds: float,
    until: StreamingQuery | None = None,
) -> None:
    """Wait until told to stop, or until the query *until* has read what there was."""
    while not stop():
        time.sleep(poll_seconds)
        if leadership.lost():
            raise LeadershipLostError("another may lead by now")
        for query in queries:
            if not query.isActive:
                query.awaitTermination()  # raises what ended it
                if query is until:
                    return
                raise TrimtabError(f"query {query.name} ended by itself")
        watch.check(partial(_batches, queries))
    _finish(queries)


def _batches(queries: list[StreamingQuery]) -> dict[str, int]:
    """Query -> its last finished batch; -1 before the first."""
    found = {}
    for query in queries:
        progress = query.lastProgress
        found[str(query.name)] = -1 if progress is None else int(progress["batchId"])
    return found


def _finish(queries: list[StreamingQuery]) -> None:
    """Let micro-batches come to their end: one that is broken off leaves pages of traces in the output.

    Where a signal stops this process it is ended before the deadline here, without traces.
    """
    deadline = Deadline.after(2 * _FINISH_SECONDS)
    while any(map(_is_busy, queries)) and not deadline.passed:
        time.sleep(_POLL_SECONDS)


def _is_busy(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])
