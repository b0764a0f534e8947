"""What the leader summarizes is what the page shows, on whatever log it lies."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from controller.adapters.metrics.controller import ControllerMetrics
from controller.log.journal import LogJournal
from controller.log.port import Log
from controller.log.summaries import SummaryLog
from controller.model.controls import ControlChange, OperatorControls
from controller.web.store.feed import Feed
from controller.web.store.store import Store
from controller.web.store.values import NO_DATA, DecisionQuery
from streaming.summaries import SummaryQueue
from tests.batches import batch, sink, snapshots
from tests.logs import Shape, located, log
from tests.pure_controller import POLICY

_PATIENCE = 60.0
_PAUSED = ControlChange(at_ms=1, by="ada", action="pause", reason="upgrade")


def the_page_shows_what_the_leader_decided(connect: Callable[[], Log], folder: Path) -> None:
    """Decide intervals with journal and summaries in the log that *connect* opens, then fill a store from it."""
    closed = snapshots([*located(log(Shape(calm=True)))])
    intervals = [each.interval for each in closed]
    with closing(LogJournal(connect(), cluster=POLICY.cluster)) as journal:
        journal.open()
        journal.begin_epoch(1)
        summaries = SummaryQueue(
            lambda: SummaryLog(connect()),
            POLICY.limits,
            period_ms=POLICY.period_ms,
            epoch=1,
            metrics=ControllerMetrics(),
        )
        decide = sink(folder / "unused", journal=journal, summaries=summaries)
        for number, each in enumerate(closed):
            decide(batch([each]), number)
            assert summaries.wait(_PATIENCE)
        decide.close()
    for _ in range(2):  # once more: a process that goes on where the one before stopped
        store = Store(folder / "store", cluster=POLICY.cluster)
        Feed(store, connect, lambda: OperatorControls(history=(_PAUSED,))).catch_up()
        progress, latest = store.progress(), store.latest()
        assert progress.complete
        assert [each.error for each in progress.sources] == [""] * 4
        assert (progress.oldest, progress.newest, progress.missing) == (intervals[0], intervals[-1], 0)
        assert latest is not None
        assert (latest.interval, latest.epoch, latest.bundles) == (intervals[-1], 1, len(closed[-1].names))
        assert [row.interval for row in store.decisions(DecisionQuery()).rows] == intervals[::-1]
        tile = store.broker_tile("rate", intervals[0], intervals[-1] + 1, width=100, height=100)
        assert (tile.cells != NO_DATA).any(axis=0).tolist() == [True] * len(intervals)
        store.close()
