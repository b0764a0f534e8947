"""Runs the controller: lead, start the queries, and stop them as soon as this process leads no longer."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controller.adapters.controls_in_force import mode_in_force
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
from streaming.progress import ProgressWatch
from streaming.query import dead_letter_query, decision_checkpoint, decision_query
from streaming.rehearsal import rehearse

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
#: So long a micro-batch, and the end of Spark, may still take when this process is told to stop.
_FINISH_SECONDS = 10.0
#: So long a query may take to stop, which breaks its micro-batch off.
_STOP_SECONDS = 15.0
_TRIGGER = "0 seconds"


def run(settings: Settings, stop: Callable[[], bool], may_take: MayTake = without_limit) -> None:
    """Lead whenever possible, and decide while leading, until *stop* says so.

    *may_take* is told how long a micro-batch may go on when this process is told to stop.

    Raises SettingsError for what cannot be run, LeadershipLostError when this process cannot lead again and has to be
    started anew, StalledError when a query stands still, and what a query failed with.  A query that cannot even be
    stopped ends this process, with the exit code of what was to be raised.
    """
    read_policy(settings)  # a mistake in broker.conf is told at once, not when this process comes to lead
    store = control_store(settings)
    refuse_rivals(settings, mode=mode_in_force(settings, store))
    # Spark takes longer to start than all the rest of a takeover: whoever stands by has it running, and has rehearsed.
    spark = assembly.session(settings)
    leadership = assembly.leadership(settings)
    stand_by: Callable[[], None] = partial(rehearse, spark, settings)
    try:
        while leadership.acquire(stop, stand_by):
            stand_by = no_preparation  # a process that has led needs no rehearsal
            try:
                with may_take(_FINISH_SECONDS):
                    _lead(settings, spark, leadership, store, stop)
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
    settings: Settings, spark: SparkSession, leadership: Leadership, store: ControlStore, stop: Callable[[], bool]
) -> None:
    """Decide as the leader until told to stop, or until leadership is lost."""
    files = assembly.files_of_checkpoint(spark, settings)
    assembly.check_shared_checkpoint(settings, leadership, files)
    # They may have been switched on since this process stood by.
    refuse_rivals(settings, mode=mode_in_force(settings, store), must_know=False)
    options, checkpoint = assembly.query_options(settings), settings.checkpoint.path
    has_begun = assembly.has_committed(decision_checkpoint(checkpoint, options), files)
    decisions = assembly.decision_sink(settings, leadership, store, has_begun=has_begun)
    letters = assembly.dead_letter_sink(settings, options)
    refuse_producers_clocks(settings)
    watch = ProgressWatch(partial(last_tick, settings), after_seconds=settings.intervals.stalled_after_seconds)
    log.info("leads, epoch %d", decisions.epoch)
    watch_state_commits(Path(decision_checkpoint(checkpoint, options)))

    def decide(max_offsets: int | None, **trigger: Any) -> StreamingQuery:
        records = assembly.records(spark, settings, max_offsets)
        return decision_query(records, options, decisions, checkpoint=checkpoint).trigger(**trigger).start()

    # The lock gates the start: two drivers never share a checkpoint.
    leadership.check()
    suspects = dead_letter_query(assembly.records(spark, settings), options, letters, checkpoint=checkpoint)
    with _running(suspects.trigger(processingTime=_TRIGGER).start()) as suspects_query:
        log.info("reads the log")
        try:
            for most in catching_up.offsets_a_batch(spark, settings, decision_checkpoint(checkpoint, options)):
                with _running(decide(most, availableNow=True)) as query:
                    _watch([suspects_query, query], leadership, watch, stop, until=query)
                if stop():
                    return
            with _running(decide(None, processingTime=_TRIGGER)) as query:
                _watch([suspects_query, query], leadership, watch, stop)
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
def _running(query: StreamingQuery) -> Iterator[StreamingQuery]:
    try:
        yield query
    finally:
        _stop(query)


def _stop(query: StreamingQuery) -> None:
    """Stop *query*; where it hangs, this process ends at once: nobody else can take over what it holds."""
    failures: list[Exception] = []

    def stop() -> None:
        try:
            query.stop()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=stop, name="stop", daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)
    if failures:
        raise failures[0]
    if thread.is_alive():
        error = sys.exception()
        log.critical("a query has not stopped for %g s: this process ends now (%s)", _STOP_SECONDS, error)
        # Spark's JVM sees its input end, and ends too.
        os._exit(error.exit_code if isinstance(error, TrimtabError) else StalledError.exit_code)


def _watch(
    queries: list[StreamingQuery],
    leadership: Leadership,
    watch: ProgressWatch,
    stop: Callable[[], bool],
    until: StreamingQuery | None = None,
) -> None:
    """Wait until told to stop, or until the query *until* has read what there was."""
    while not stop():
        time.sleep(_POLL_SECONDS)
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
    deadline = time.monotonic() + 2 * _FINISH_SECONDS
    while any(map(_is_busy, queries)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _is_busy(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])
