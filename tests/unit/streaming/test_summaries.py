"""Summaries beside decisions: written by the leader, never in the way."""

import threading
import weakref
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from controller.adapters.metrics.controller import ControllerMetrics
from controller.audit.moves import AuditedMove, AuditedSide, MoveOutcome
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import Out
from controller.log.summaries import SummaryLog
from controller.model.errors import TrimtabError
from controller.model.journal import DecidedInterval
from controller.model.summary import MOST_OUTCOMES
from controller.wire.summary import decode_summary
from streaming.summaries import SummaryQueue
from tests.batches import batch, sink, snapshots
from tests.cluster import broker, view
from tests.folders import entries_in
from tests.journal_entries import entry
from tests.logs import Shape, located, log
from tests.pure_controller import POLICY
from tests.records import LEFT, PERIOD, T

CLOSED = snapshots([*located(log(Shape(calm=True)))])
INTERVALS = [each.interval for each in CLOSED]
#: Seconds after which a test gives up.
_PATIENCE = 20.0


class SlowLog(SummaryLog):
    """Stores nothing before ``go`` is set."""

    def __init__(self, server: MemoryServer) -> None:
        super().__init__(MemoryLog(server))
        self.go, self.entered = threading.Event(), threading.Event()
        #: Raised in place of writing.
        self.error: TrimtabError | None = None

    def write(self, summary: Any) -> int:
        self.entered.set()
        assert self.go.wait(_PATIENCE)
        if self.error is not None:
            raise self.error
        return super().write(summary)


def decided_at(interval: int) -> DecidedInterval:
    return DecidedInterval(
        entry=entry(interval),
        journalled=True,
        too_large=None,
        dropped_rows=0,
        dropped_states=0,
        bundles=1,
        settled=(),
        view=view(broker("a:8080", usage=0.5)),
    )


def moved(number: int) -> AuditedMove:
    return AuditedMove(
        id=f"c-{number}",
        interval=T,
        bundle=LEFT,
        namespace="tenant/ns",
        strategy="PeakShedder",
        reason="overloaded",
        source=AuditedSide(broker="a:8080"),
        destination=AuditedSide(broker="b:8080"),
        result="done",
        outcome=MoveOutcome.ARRIVED,
        came_to="b:8080",
        came_at=T,
        carried=None,
        clients=None,
        producers_back_at=None,
        drift=None,
        later=0,
        undone=None,
        undone_at=None,
        undone_by="",
        shorter=False,
    )


def queue(summaries: Any, metrics: ControllerMetrics | None = None) -> SummaryQueue:
    return SummaryQueue(
        lambda: summaries,
        POLICY.limits,
        period_ms=POLICY.period_ms,
        epoch=7,
        metrics=metrics or ControllerMetrics(),
    )


def written(server: MemoryServer) -> list[Any]:
    records = MemoryLog(server).read("summaries").read_to_end()
    return [decode_summary(record.value, cluster=POLICY.cluster) for record in records]


def count(metrics: ControllerMetrics, outcome: str) -> int:
    line = next(
        line
        for line in metrics.page().decode().splitlines()
        if line.startswith(f'trimtab_summaries_total{{outcome="{outcome}"}}')
    )
    return int(float(line.split()[-1]))


def test_each_decision_has_a_summary_of_what_it_was_decided_on(tmp_path: Path) -> None:
    server = MemoryServer()
    summaries = queue(SummaryLog(MemoryLog(server)))
    decide = sink(tmp_path, summaries=summaries, now_ms=lambda: INTERVALS[-1] + 5_000)
    for number, closed in enumerate(CLOSED):
        decide(batch([closed]), number)
        assert summaries.wait(_PATIENCE)
    found = written(server)
    assert [each.interval for each in found] == INTERVALS
    assert {each.epoch for each in found} == {7}
    assert [each.summary for each in found] == [entry.decision.summary for entry in entries_in(tmp_path)]
    assert found[-1].totals.bundles == len(CLOSED[-1].names)


def test_a_log_that_hangs_delays_no_decision_and_the_newest_summary_follows(tmp_path: Path) -> None:
    server, metrics = MemoryServer(), ControllerMetrics()
    slow = SlowLog(server)
    summaries = queue(slow, metrics)
    decide = sink(tmp_path, summaries=summaries)
    decide(batch(CLOSED[:1]), 0)
    assert slow.entered.wait(_PATIENCE)
    decide(batch(CLOSED[1:]), 1)
    assert [entry.interval for entry in entries_in(tmp_path)] == INTERVALS
    slow.go.set()
    assert summaries.wait(_PATIENCE)
    assert [each.interval for each in written(server)] == [INTERVALS[0], INTERVALS[-1]]
    assert count(metrics, "written") == 2
    assert count(metrics, "dropped") == len(INTERVALS) - 2


@pytest.mark.parametrize("error", [TrimtabError("no right to write"), RuntimeError("a fault"), MemoryError()])
def test_a_summary_that_cannot_be_written_is_counted_and_decisions_go_on(tmp_path: Path, error: Exception) -> None:
    metrics, broken = ControllerMetrics(), Mock()
    broken.write.side_effect = error
    summaries = queue(broken, metrics)
    sink(tmp_path, summaries=summaries)(batch(CLOSED), 0)
    assert summaries.wait(_PATIENCE)
    assert [entry.interval for entry in entries_in(tmp_path)] == INTERVALS
    assert count(metrics, "failed") >= 1
    assert count(metrics, "written") == 0


def test_a_log_that_cannot_be_opened_is_opened_anew_with_the_next_summary(tmp_path: Path) -> None:
    server, calls = MemoryServer(), list[int]()

    def connect() -> SummaryLog:
        calls.append(1)
        if len(calls) == 1:
            raise TrimtabError("away")
        return SummaryLog(MemoryLog(server))

    summaries = SummaryQueue(connect, POLICY.limits, period_ms=POLICY.period_ms, epoch=7, metrics=ControllerMetrics())
    decide = sink(tmp_path, summaries=summaries)
    for number, closed in enumerate(CLOSED[:2]):
        decide(batch([closed]), number)
        assert summaries.wait(_PATIENCE)
    assert [each.interval for each in written(server)] == [INTERVALS[1]]


def test_a_leadership_that_is_over_writes_none(tmp_path: Path) -> None:
    server = MemoryServer()
    MemoryLog(server).append([Out("summaries", b"")], within_seconds=1)
    slow = SlowLog(server)
    summaries = queue(slow)
    decide = sink(tmp_path, summaries=summaries)
    decide(batch(CLOSED[:1]), 0)
    assert slow.entered.wait(_PATIENCE)
    decide(batch(CLOSED[1:2]), 1)
    decide.close()
    slow.go.set()
    assert summaries.wait(_PATIENCE)
    assert len([*MemoryLog(server).read("summaries").read_to_end()]) == 2  # the empty one, and what was being written


def test_an_interval_does_not_stay_in_memory_once_its_summary_is_written() -> None:
    summaries, decided = queue(SummaryLog(MemoryLog(MemoryServer()))), decided_at(T)
    gone = threading.Event()
    assert decided.view is not None
    weakref.finalize(decided.view.bundles.load, gone.set)
    summaries.offer(decided, decided_at_ms=T, tick_seconds=None)
    del decided
    assert gone.wait(_PATIENCE)


def test_of_more_outcomes_than_a_summary_holds_the_newest_stay_while_the_log_is_away() -> None:
    server, metrics = MemoryServer(), ControllerMetrics()
    slow = SlowLog(server)
    summaries = queue(slow, metrics)
    summaries.audited(moved(each) for each in range(MOST_OUTCOMES))
    summaries.offer(decided_at(T), decided_at_ms=T, tick_seconds=None)
    assert slow.entered.wait(_PATIENCE)
    summaries.audited([moved(MOST_OUTCOMES)])  # meanwhile
    slow.error = TrimtabError("away")
    slow.go.set()
    assert summaries.wait(_PATIENCE)
    slow.error = None
    summaries.offer(decided_at(T + PERIOD), decided_at_ms=T + PERIOD, tick_seconds=None)
    assert summaries.wait(_PATIENCE)
    assert [each.id for each in written(server)[0].outcomes] == [f"c-{each}" for each in range(1, MOST_OUTCOMES + 1)]


def test_what_is_decided_after_the_end_of_a_leadership_is_not_written() -> None:
    server = MemoryServer()
    summaries = queue(SummaryLog(MemoryLog(server)))
    summaries.close()
    summaries.offer(decided_at(T), decided_at_ms=T, tick_seconds=None)
    assert summaries.wait(_PATIENCE)
    assert not server.exists("summaries")


def test_a_decision_that_is_repeated_is_not_summarized_again(tmp_path: Path) -> None:
    server = MemoryServer()
    summaries = queue(SummaryLog(MemoryLog(server)))
    decide = sink(tmp_path, summaries=summaries)
    for _ in range(2):
        decide(batch(CLOSED[:1]), 0)
        assert summaries.wait(_PATIENCE)
    assert len(written(server)) == 1
