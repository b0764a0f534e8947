"""The sink: one decision for every closed interval, exactly once, by the leader alone.

foreachBatch may run a batch again, and a leader may be one no longer; the journal knows what was decided, and
leadership is checked before each decision and again before its transaction commits.  Whatever goes wrong is raised,
so that Spark does not commit the batch.
"""

import logging
from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from controller.adapters.failpoints import failpoint
from controller.adapters.journal import Journal
from controller.adapters.leadership import Leadership
from controller.adapters.verdicts import VerdictStore
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import check_complete
from controller.cycle import Policy, decide, view_of
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.memory import Memory
from controller.wire.journal import JournalEntry

log = logging.getLogger(__name__)


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
    ) -> None:
        self._policy, self._memory = policy, memory
        self._journal, self._leadership, self.epoch = journal, leadership, epoch
        self._controls, self._now_ms, self._verdicts = controls, now_ms, verdicts
        self._verdicts_failed = False
        #: What the last call raised: Spark keeps only its text.
        self.failure: Exception | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Decide what closed in this batch."""
        try:
            # One action, on every path: none leaves state uncommitted under a committed batch, two fold twice.
            table = batch.toArrow()
            for snapshots in _intervals(table):
                self._decide(snapshots)
            failpoint("before-spark-commit")
        except Exception as error:
            log.error("batch %d: %s", batch_id, error)
            self.failure = error
            raise

    def _decide(self, snapshots: list[Snapshot]) -> None:
        interval = check_complete(snapshots).interval
        last = self._memory.last_interval
        if last is not None and interval <= last:
            log.info("interval %d is in the journal already", interval)
            return
        self._leadership.check()
        controls = self._controls(interval)
        results = [result for snapshot in snapshots for result in snapshot.results]
        view = view_of(snapshots, self._memory, self._policy)
        decision, memory = decide(view, results, self._memory, controls, self._policy)
        failpoint("after-decide")
        entry = JournalEntry(cluster=self._policy.cluster, decision=decision, memory=memory, controls=controls)
        self._journal.append(entry, epoch=self.epoch, issued_at_ms=self._now_ms(), before_commit=self._leadership.check)
        self._memory = memory
        self._keep_verdicts(decision)
        log.info("interval %d: %s", interval, decision.summary)

    def _keep_verdicts(self, decision: Decision) -> None:
        """Keep the verdicts where there is room: they are for people, and no decision waits for them."""
        try:
            self._verdicts.write(decision)
            self._verdicts_failed = False
        except OSError as error:
            if not self._verdicts_failed:
                log.warning("verdicts are not kept, decisions go on: %s; make room, or allow writing there", error)
            self._verdicts_failed = True


def _intervals(table: pa.Table) -> Iterable[list[Snapshot]]:
    """The snapshots of each interval, oldest interval first."""
    found: dict[int, list[Snapshot]] = {}
    for interval, blob in zip(table["interval"].to_pylist(), table["snapshot"].to_pylist(), strict=True):
        found.setdefault(int(interval or 0), []).append(Snapshot.from_blob(bytes(blob or b"")))
    return [snapshots for _, snapshots in sorted(found.items())]
