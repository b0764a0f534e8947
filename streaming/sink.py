"""The sink: hands the snapshots of each batch to the engine, logs the decisions, and has dead letters kept.

Spark may run a batch again; the engine decides each interval once all the same.  Every error is raised, so that Spark
does not commit the batch.
"""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame

from controller.adapters.disk.verdicts import VerdictStore
from controller.adapters.folder.retention import FolderRetention
from controller.adapters.metrics.audits import AuditWatch
from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.process.failpoints import failpoint
from controller.aggregate.places import Span, joined
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state.states import LARGEST
from controller.engine import Engine
from controller.model.decision import Decision
from controller.model.errors import JournalError, LeadershipLostError, TrimtabError
from controller.model.journal import DecidedInterval, Journal, JournalEntry
from controller.wire.readable import counted, in_number, utc
from streaming.dead_letters import DeadLetters
from streaming.own_errors import with_cause
from streaming.summaries import SummaryQueue

log = logging.getLogger(__name__)

_PRUNE_EVERY_MS = 3_600_000


class DecisionSink:
    """Decides the intervals that each batch closes; keeps their verdicts, and prunes the journal and the log."""

    def __init__(
        self,
        engine: Engine,
        *,
        journal: Journal,
        verdicts: VerdictStore | None,
        letters: DeadLetters,
        now_ms: Callable[[], int],
        retention_ms: int,
        retention: FolderRetention | None = None,
        metrics: ControllerMetrics | None = None,
        audits: AuditWatch | None = None,
        note: Callable[[int], None] = lambda _: None,
        summaries: SummaryQueue | None = None,
    ) -> None:
        """*journal*: the engine's.  *retention_ms*: entries stay in it for at least so long.  *audits* the moves.

        *verdicts*: None keeps none.  *retention* deletes old records, where the log does not.  *note* is called with
        the last interval that each batch journalled; it may raise OSError or TrimtabError.  *summaries*: None writes
        none.
        """
        self._engine, self._journal, self._verdicts, self._letters = engine, journal, verdicts, letters
        self._now_ms, self._retention_ms, self._pruned_ms = now_ms, retention_ms, 0
        self._metrics, self._audits = metrics or ControllerMetrics(), audits
        #: The intervals that the batch decided.
        self._entries: dict[int, JournalEntry] = {}
        self._journalled: int | None = None
        #: Rows and states dropped by the shards, as far as that was logged.
        self._dropped = self._dropped_states = 0
        self._retention, self._note, self._summaries = retention, note, summaries
        self._verdicts_failed = self._prune_failed = self._retention_failed = self._note_failed = False
        #: The last interval decided by the end of the last batch.
        self._at_rest: int | None = None
        #: The last interval that the query has closed since this leadership began.  With a new checkpoint the journal
        #: may know of much later ones, whose records have yet to be read.
        self._closed: int | None = None
        #: What the last call raised: Spark keeps only its text.
        self.failure: Exception | None = None

    @property
    def epoch(self) -> int:
        """The number of this leadership."""
        return self._engine.epoch

    @property
    def waits_for_brokers(self) -> str:
        """Why the leadership before issued nothing at last; see ``JournalEntry.waits_for_brokers``."""
        return self._engine.waits_for_brokers

    @property
    def last_interval(self) -> int | None:
        """The last interval that is decided, epoch ms; None before the first."""
        return self._engine.memory.last_interval

    def close(self) -> None:
        """This leadership is over."""
        if self._summaries is not None:
            self._summaries.close()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Decide what closed in this batch; then keep its dead letters, for which nobody waits."""
        with _uncollected():
            self._take(batch, batch_id)

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        try:
            # Spark begins a batch when it has committed the one before.
            committed, read = self._at_rest, self._closed
            # One action, on every path: none leaves state uncommitted under a committed batch, two fold twice.
            with self._metrics.stage("query"):
                table = batch.toArrow()
            snapshots, self._entries = list(snapshots_in(table)), {}
            with self._metrics.stage("decide"):
                self._decide(snapshots)
                self._note_journalled()
            with self._metrics.stage("audit"):
                moves = [] if self._audits is None else self._audits.take(snapshots, self._entries)
                if self._summaries is not None:
                    self._summaries.audited(moves)
            self._entries = {}
            with self._metrics.stage("dead_letters"):
                self._letters.store_suspects(_refused(table), batch_id)
            self._at_rest = self._engine.memory.last_interval
            self._closed = max((each.interval for each in snapshots), default=read)
            with self._metrics.stage("prune"):
                self._prune(committed)
                self._prune_records(read)
            failpoint("before-spark-commit")
        except Exception as error:
            # Whoever stops the query interrupts its batch, and says why; a lost leadership is said once, by run.
            stopped = "InterruptedException" in str(error) or isinstance(error, LeadershipLostError)
            log.log(logging.DEBUG if stopped else logging.ERROR, "batch %d: %s", batch_id, with_cause(str(error)))
            self.failure = error
            raise

    def _decide(self, snapshots: Sequence[Snapshot]) -> None:
        decided = self._engine.decide(snapshots, self._tell)
        if decided.known:
            log.info(
                "Spark repeated the batch: the journal already contains %s of it", counted(decided.known, "interval")
            )
        if decided.too_old:
            log.info(
                "too old to act on: the memory is updated, but the decision is not journalled: %s",
                counted(decided.too_old, "interval"),
            )

    def _tell(self, decided: DecidedInterval) -> None:
        self._entries[decided.entry.interval] = decided.entry
        now_ms = self._now_ms()
        tick_seconds = self._metrics.decided(decided, now_ms)
        if self._summaries is not None:
            self._summaries.offer(decided, decided_at_ms=now_ms, tick_seconds=tick_seconds)
        self._tell_dropped(decided)
        if not decided.journalled:
            return
        entry = decided.entry
        self._journalled = entry.interval
        fields = {"interval": utc(entry.interval), "epoch": self.epoch}
        if decided.too_large is not None:
            why = "%s: its commands are not issued; lower the budgets in [guardrails]"
            log.error(why, decided.too_large, extra=fields)
        self._keep_verdicts(entry.decision)
        if decided.breaker_tripped:
            tripped = "the breaker tripped: %s; see `trimtab status`, then run `trimtab resume`"
            log.error(tripped, entry.memory.breaker.why, extra=fields)
        run = "dry run: " if entry.controls.mode == "dry_run" else ""
        log.info("interval %s: %s%s", fields["interval"], run, in_number(entry.decision.summary), extra=fields)

    def _tell_dropped(self, decided: DecidedInterval) -> None:
        if decided.dropped_rows > self._dropped:
            log.warning(
                "interval %s: %d rows dropped since the checkpoint was created, because more rows "
                "waited for a tick than"
                " intervals.waiting_intervals and intervals.waiting_mbytes allow; brokers whose sweeps "
                "lost a part have no data: check that collectors write ticks, and who else writes to the metrics topic",
                utc(decided.entry.interval),
                decided.dropped_rows,
                extra={"interval": utc(decided.entry.interval), "epoch": self.epoch},
            )
        self._dropped = max(self._dropped, decided.dropped_rows)
        if decided.dropped_states > self._dropped_states:
            log.warning(
                "interval %s: %d states of namespaces or brokers of cluster %s dropped since the "
                "checkpoint was created: together they are longer than %d characters, and only the most "
                "recently written ones are retained. Bundles of namespaces without a state stay where "
                "they are, and policies that only dropped states contain are unknown: use regular "
                "expressions instead of long lists in isolation policies, and check who else writes to the "
                "metrics topic",
                utc(decided.entry.interval),
                decided.dropped_states,
                decided.entry.cluster,
                LARGEST,
                extra={"interval": utc(decided.entry.interval), "epoch": self.epoch},
            )
        self._dropped_states = max(self._dropped_states, decided.dropped_states)

    def _note_journalled(self) -> None:
        """Note the last interval that is journalled; a failure is only logged: the note only shows a later loss."""
        interval, self._journalled = self._journalled, None
        if interval is None:
            return
        try:
            self._note(interval)
            self._note_failed = False
        except (OSError, TrimtabError) as error:
            if not self._note_failed:
                log.warning("cannot record in the checkpoint what is journalled; decisions continue: %s", error)
            self._note_failed = True

    def _prune(self, committed: int | None) -> None:
        """Prune old entries from time to time, once Spark has committed them; a failure never stops decisions.

        Age counts back from the last interval: this host's clock may be wrong, and what is deleted is gone.
        """
        now = self._now_ms()
        if committed is None or 0 <= now - self._pruned_ms < _PRUNE_EVERY_MS:
            return
        self._pruned_ms = now
        try:
            self._journal.prune(committed=committed, before=committed - self._retention_ms)
            self._prune_failed = False
        except JournalError as error:
            if not self._prune_failed:
                log.warning("%s; it grows until trimtab may delete its records (Kafka: DELETE on the topic)", error)
            self._prune_failed = True

    def _prune_records(self, read: int | None) -> None:
        """Have old records deleted, up to the interval *read* that Spark has committed; as ``_prune``."""
        if self._retention is None or read is None:
            return
        try:
            self._retention.prune(read=read)
            self._retention_failed = False
        except TrimtabError as error:
            if not self._retention_failed:
                log.warning("%s; the log grows until trimtab may delete its old files; decisions continue", error)
            self._retention_failed = True

    def _keep_verdicts(self, decision: Decision) -> None:
        """Write the verdicts; a failure is only logged, since no decision depends on them."""
        if self._verdicts is None:
            return
        try:
            self._verdicts.write(decision)
            self._verdicts_failed = False
        except OSError as error:
            if not self._verdicts_failed:
                log.warning("cannot store verdicts; decisions continue: %s; make room, or allow writing there", error)
            self._verdicts_failed = True


@contextmanager
def _uncollected() -> Iterator[None]:
    """Have Python look for cyclic garbage after the block, not in it.

    A decision makes tens of thousands of verdicts and no cycles, and looking takes as long as deciding.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def snapshots_in(table: pa.Table) -> Iterator[Snapshot]:
    """The snapshots in *table*, SHARD_OUTPUT."""
    return (Snapshot.from_blob(bytes(blob)) for blob in table["snapshot"].drop_null().to_pylist())


def _refused(table: pa.Table) -> list[Span]:
    """Where the refused records lie that *table* names."""
    rows = table.select(Span._fields).filter(table["source"].is_valid())
    return joined(Span(*row.values()) for row in rows.to_pylist())
