"""The sink: one decision for every closed interval, exactly once, by the leader alone.

foreachBatch may run a batch again, and a leader may be one no longer; the journal knows what was decided, and
leadership is checked before each decision and again before its transaction commits.  Whatever goes wrong is raised,
so that Spark does not commit the batch.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from controller.adapters.failpoints import failpoint
from controller.adapters.verdicts import VerdictStore
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import check_complete
from controller.cycle import Policy, decide, view_of
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.errors import EntryTooLargeError, JournalError
from controller.model.memory import Memory
from controller.ports.journal import Journal
from controller.ports.leadership import Leadership
from controller.wire.journal import JournalEntry

log = logging.getLogger(__name__)

_PRUNE_EVERY_MS = 3_600_000


class DecisionSink:
    """Decides the intervals of each batch, oldest first; ``memory`` is the journal's last."""

    def __init__(
        self,
        *,
        policy: Policy,
        memory: Memory,
        journal: Journal,
        leadership: Leadership,
        epoch: int,
        controls: Callable[[int], Controls],
        now_ms: Callable[[], int],
        verdicts: VerdictStore,
        retention_ms: int,
    ) -> None:
        """*retention_ms*: how long entries stay in the journal at least."""
        self._policy, self._memory = policy, memory
        self._journal, self._leadership, self.epoch = journal, leadership, epoch
        self._controls, self._now_ms, self._verdicts = controls, now_ms, verdicts
        self._retention_ms, self._pruned_ms = retention_ms, 0
        #: Rows dropped by the shards, as far as it was told.
        self._dropped = 0
        self._verdicts_failed = self._prune_failed = False
        #: The last interval decided by the end of the last batch.
        self._at_rest: int | None = None
        #: What the last call raised: Spark keeps only its text.
        self.failure: Exception | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Decide what closed in this batch."""
        try:
            # Spark begins a batch when it has committed the one before.
            committed = self._at_rest
            # One action, on every path: none leaves state uncommitted under a committed batch, two fold twice.
            self._decide_all(_intervals(batch.toArrow()))
            self._at_rest = self._memory.last_interval
            self._prune(committed)
            failpoint("before-spark-commit")
        except Exception as error:
            log.error("batch %d: %s", batch_id, error)
            self.failure = error
            raise

    def _decide_all(self, intervals: Sequence[list[Snapshot]]) -> None:
        """Decide *intervals*, oldest first.

        Of intervals that are too old to act on only the last is journalled: the others issue nothing, and what they
        did to the memory is in its entry.  After a crash they are decided again, from the journal's last entry.
        """
        last = self._memory.last_interval
        waiting = [each for each in intervals if last is None or each[0].interval > last]
        if len(waiting) < len(intervals):
            log.info("%d intervals up to %s are in the journal already", len(intervals) - len(waiting), last)
        skipped = 0
        controls = self._controls(waiting[0][0].interval) if waiting else None
        for number, snapshots in enumerate(waiting):
            assert controls is not None
            now, controls = controls, None
            if number + 1 < len(waiting):
                controls = self._controls(waiting[number + 1][0].interval)
            if now.stale and now == controls:
                skipped += 1
                _, self._memory = self._decision(snapshots, now)
                continue
            self._decide(snapshots, now)
        if skipped:
            log.info("%d intervals are too old to act on: they changed the memory and are not journalled", skipped)

    def _decide(self, snapshots: list[Snapshot], controls: Controls) -> None:
        self._leadership.check()
        decision, memory = self._decision(snapshots, controls)
        failpoint("after-decide")
        try:
            self._append(decision, memory, controls)
        except EntryTooLargeError as error:
            log.error("%s: its commands are held back; lower the budgets in [guardrails]", error)
            controls = replace(controls, mode="observe")
            decision, memory = self._decision(snapshots, controls)
            self._append(decision, memory, controls)
        self._memory = memory
        self._keep_verdicts(decision)
        if memory.breaker.tripped_at == decision.interval:
            log.error("the breaker tripped: %s; see `trimtab status`, then run `trimtab resume`", memory.breaker.why)
        log.info("interval %d: %s", decision.interval, decision.summary)

    def _decision(self, snapshots: list[Snapshot], controls: Controls) -> tuple[Decision, Memory]:
        check_complete(snapshots)
        self._tell_dropped(snapshots)
        results = [result for snapshot in snapshots for result in snapshot.results]
        view = view_of(snapshots, self._memory, self._policy)
        return decide(view, results, self._memory, controls, self._policy)

    def _tell_dropped(self, snapshots: list[Snapshot]) -> None:
        dropped = sum(snapshot.dropped for snapshot in snapshots)
        if dropped > self._dropped:
            log.warning(
                "interval %d: %d rows dropped since the checkpoint began, as more waited for a tick than"
                " intervals.waiting_intervals and intervals.waiting_mbytes allow; brokers whose sweeps lost a part have"
                " no data: see whether collectors write ticks, and who else writes to the metrics topic",
                snapshots[0].interval,
                dropped,
            )
        self._dropped = max(self._dropped, dropped)

    def _append(self, decision: Decision, memory: Memory, controls: Controls) -> None:
        entry = JournalEntry(cluster=self._policy.cluster, decision=decision, memory=memory, controls=controls)
        self._journal.append(entry, epoch=self.epoch, issued_at_ms=self._now_ms(), before_commit=self._leadership.check)

    def _prune(self, committed: int | None) -> None:
        """Let old entries go, now and then, once Spark has committed them; deciding never waits for it to succeed."""
        now = self._now_ms()
        if committed is None or now - self._pruned_ms < _PRUNE_EVERY_MS:
            return
        self._pruned_ms = now
        try:
            self._journal.prune(committed=committed, before=now - self._retention_ms)
            self._prune_failed = False
        except JournalError as error:
            if not self._prune_failed:
                log.warning("%s; it grows until trimtab may delete its records (Kafka: DELETE on the topic)", error)
            self._prune_failed = True

    def _keep_verdicts(self, decision: Decision) -> None:
        """Keep the verdicts where there is room: they are for people, and no decision waits for them."""
        try:
            self._verdicts.write(decision)
            self._verdicts_failed = False
        except OSError as error:
            if not self._verdicts_failed:
                log.warning("verdicts are not kept, decisions go on: %s; make room, or allow writing there", error)
            self._verdicts_failed = True


def _intervals(table: pa.Table) -> Sequence[list[Snapshot]]:
    """The snapshots of each interval, oldest interval first."""
    found: dict[int, list[Snapshot]] = {}
    for interval, blob in zip(table["interval"].to_pylist(), table["snapshot"].to_pylist(), strict=True):
        found.setdefault(int(interval or 0), []).append(Snapshot.from_blob(bytes(blob or b"")))
    return [snapshots for _, snapshots in sorted(found.items())]
