"""Runs the controller: lead, start the query, and stop it as soon as this process loses leadership."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controller.adapters.election.controls import ControlStore
from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.network.calls import side_by_side
from controller.adapters.network.deadline import Deadline
from controller.adapters.process import signals
from controller.adapters.process.failpoints import watch_state_commits
from controller.model.errors import LeadershipLostError, StalledError, TrimtabError
from controller.model.leadership import Leadership, no_preparation
from controller.settings.trimtab_toml import Settings
from controller.wire.controls_text import change_text
from streaming.assembly import Assembly
from streaming.batches import catching_up
from streaming.batches.progress import ProgressWatch

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
#: Seconds that a micro-batch may go on where a caller says stop.  A signal ends the process sooner.
_FINISH_SECONDS = 20.0
#: Seconds for the release of leadership where a signal ends this process.
_RELEASE_SECONDS = 0.5
#: Seconds that a query may take to stop; stopping interrupts its micro-batch.
_STOP_SECONDS = 15.0
#: A batch begins when the one before has ended, the log has grown, and streaming.batches.gate allows it.
_AT_ONCE = "0 seconds"


def run(settings: Settings, stop: Callable[[], bool], metrics: ControllerMetrics | None = None) -> None:
    """Stand for election and decide while leading, until *stop* is set.  Updates *metrics*.

    Raises SettingsError for invalid settings, LeadershipLostError if this process cannot lead again and has to be
    restarted, StalledError if a query makes no progress, and the error of a failed query.  If a query cannot be
    stopped, this process exits with the exit code of that error.
    """
    # Report a mistake in broker.conf at once, not only when this process becomes the leader.
    balance(Assembly(settings, metrics), stop)


def balance(
    assembly: Assembly,
    stop: Callable[[], bool],
    *,
    poll_seconds: float = _POLL_SECONDS,
) -> None:
    """See ``run``; looks every *poll_seconds* whether everything runs."""
    metrics = assembly.metrics
    store = assembly.control_store()
    # Starting Spark is the longest part of a takeover, so a standby starts it early and rehearses a batch.
    spark = assembly.session()
    assembly.warm_up(spark)
    assembly.files(spark).try_to_write()  # who stands by would only find out when it takes over
    leadership = assembly.leadership()
    # By then Spark's JVM has ended, so another process can lead at once and need not wait for the session to time out.
    signals.clean_up_at_end(lambda: side_by_side({"release": leadership.release}, _RELEASE_SECONDS))
    prepare: Callable[[], None] = partial(assembly.stand_by, spark)
    try:
        while leadership.acquire(stop, partial(metrics.stands_by, prepare)):
            prepare = no_preparation  # a process that has led needs no rehearsal
            metrics.takes_over()
            stopped_ms = _stopped_ms(store)
            try:
                _lead(assembly, spark, leadership, store, stop, poll_seconds)
            except LeadershipLostError as error:
                if leadership.session_lost():
                    raise
                log.warning("%s; this controller stands for election again", _why_lost(store, stopped_ms, error))
            finally:
                metrics.leads_no_more()
            if stop():
                break
    finally:
        leadership.release()
        store.close()
    spark.stop()


def _lead(
    assembly: Assembly,
    spark: SparkSession,
    leadership: Leadership,
    store: ControlStore,
    stop: Callable[[], bool],
    poll_seconds: float,
) -> None:
    """Decide as the leader until told to stop, or until leadership is lost."""
    files = assembly.files(spark)
    assembly.refuse_another_cluster(files)
    assembly.check_shared_checkpoint(leadership, files)
    assembly.refuse_other_version(files)
    letters = assembly.dead_letters(spark)
    decisions = assembly.decision_sink(leadership, store, letters, has_begun=assembly.has_committed(files), files=files)
    assembly.refuse_producers_clocks()
    watch = ProgressWatch(assembly.last_tick, after_seconds=assembly.stalled_after_seconds)
    log.info("this controller leads, epoch %d", decisions.epoch, extra={"epoch": decisions.epoch})
    watch_state_commits(Path(assembly.checkpoint))

    def decide(max_offsets: int | None, **trigger: Any) -> StreamingQuery:
        return assembly.decision_query(spark, decisions, max_offsets).trigger(**trigger).start()

    # The lock gates the start: two drivers never share a checkpoint.
    leadership.check()
    log.info("this controller reads the log")
    metrics = assembly.metrics
    metrics.leads(decisions.epoch, decisions.waits_for_brokers)
    looks = partial(
        _watch, leadership=leadership, watch=watch, stop=stop, poll_seconds=poll_seconds, tell=metrics.batch_finished
    )
    try:
        for turn in assembly.catching_up(spark):
            period_ms = assembly.options.decode.period_ms
            progress = catching_up.report_progress(turn, lambda: decisions.last_interval, period_ms)
            with running(decide(turn.offsets, availableNow=True)) as query, progress:
                looks(query, ends=True)
            if stop():
                return
        with assembly.gate(spark, decisions) as wait, running(decide(None, processingTime=_AT_ONCE)) as query:
            looks(query, wait=wait)
    except Exception as error:
        failure = _failure(error, decisions.failure, leadership, assembly)
        if failure is error:
            raise
        raise failure from error
    finally:
        decisions.close()


def _failure(error: Exception, in_batch: Exception | None, leadership: Leadership, assembly: Assembly) -> Exception:
    """The error to report for *error*, which ended a leadership; *in_batch*: an earlier error of a batch.

    LeadershipLostError if leadership is lost: a driver that resumes after its successor has started can fail anywhere.
    """
    if isinstance(in_batch, LeadershipLostError):
        return in_batch  # it knows why; the flag only says that leadership is in doubt
    if isinstance(error, TrimtabError):
        return error
    leadership.check()
    return in_batch if isinstance(in_batch, TrimtabError) else assembly.why_it_ended(in_batch or error)


def _stopped_ms(store: ControlStore) -> int | None:
    """When `trimtab stop-all` ran last, epoch ms; None where that cannot be read."""
    try:
        return store.read()[0].stopped_ms
    except TrimtabError:
        return None


def _why_lost(store: ControlStore, stopped_ms: int | None, error: LeadershipLostError) -> str:
    """Why a leadership ended: by *error*, or by a `trimtab stop-all` later than *stopped_ms*."""
    try:
        controls, _ = store.read()
    except TrimtabError:
        return f"lost leadership: {error}"
    if stopped_ms is None or controls.stopped_ms == stopped_ms:
        return f"lost leadership: {error}"
    stopped = next((each for each in reversed(controls.history) if each.action == "stop-all"), None)
    return f"this leadership ended: {'stop-all' if stopped is None else change_text(stopped)}"


@contextmanager
def running(
    query: StreamingQuery, *, stop_seconds: float = _STOP_SECONDS, exit_now: Callable[[int], object] = os._exit
) -> Iterator[StreamingQuery]:
    """Stop *query* at the end of the block.

    If that takes longer than *stop_seconds*, *exit_now* ends this process, since a successor needs the checkpoint.
    """
    try:
        yield query
    finally:
        _stop(query, stop_seconds, exit_now)


def _stop(query: StreamingQuery, stop_seconds: float, exit_now: Callable[[int], object]) -> None:
    stopped = side_by_side({"stop": query.stop}, stop_seconds)["stop"]
    if stopped.late:
        error = sys.exception()
        log.critical("a query did not stop within %g s: exiting (%s)", stop_seconds, error)
        # Spark's JVM ends when its standard input closes.
        exit_now(error.exit_code if isinstance(error, TrimtabError) else StalledError.exit_code)
    else:
        stopped.result()


def _watch(
    query: StreamingQuery,
    *,
    leadership: Leadership,
    watch: ProgressWatch,
    stop: Callable[[], bool],
    poll_seconds: float,
    tell: Callable[[Mapping[str, Any]], None],
    wait: Callable[[float], None] = time.sleep,
    ends: bool = False,
) -> None:
    """Watch *query* until *stop* is set, or, if it *ends* by itself, until it has read all records.

    *wait* is called between two checks.  *tell* receives Spark's progress reports.
    """
    while not stop():
        wait(poll_seconds)
        if leadership.lost():
            raise LeadershipLostError(
                "this process made no progress, or could not reach the election's servers, for longer than"
                " [election] allows (session_timeout_seconds, or seconds of its Lease); another controller may lead now"
            )
        if not query.isActive:
            query.awaitTermination()  # raises what ended it
            if ends:
                return
            raise TrimtabError(f"query {query.name} ended unexpectedly")
        watch.check(partial(_last_batch, query, tell))
    _finish(query)


def _last_batch(query: StreamingQuery, tell: Callable[[Mapping[str, Any]], None]) -> int:
    """The number of the last finished batch, whose report *tell* takes; -1 before the first."""
    progress = query.lastProgress
    if progress is None:
        return -1
    tell(progress)
    return int(progress["batchId"])


def _finish(query: StreamingQuery) -> None:
    """Let the micro-batch finish: an interrupted one logs pages of stack traces.

    After a signal this process ends before the deadline here, without traces.
    """
    deadline = Deadline.after(_FINISH_SECONDS)
    while _is_busy(query) and not deadline.passed:
        time.sleep(_POLL_SECONDS)


def _is_busy(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])
