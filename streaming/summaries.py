"""Summaries of decided intervals, written beside the decisions: no decision waits for one, or fails with one.

A thread of its own makes and writes them.  While it is busy one interval waits; a newer one takes its place, and the
older one has no summary.  Summaries are for people who look: what is lost are pictures.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from typing import NamedTuple

from controller.adapters.metrics.controller import ControllerMetrics
from controller.audit.moves import AuditedMove, AuditedSide
from controller.audit.seen_load import BrokerFigures
from controller.cycle.limits import Limits
from controller.cycle.summary import summary_of
from controller.log.summaries import SummaryLog
from controller.model.errors import TrimtabError
from controller.model.journal import DecidedInterval
from controller.model.summary import MOST_OUTCOMES, MoveSide, OutcomeOfMove

log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    """An interval whose summary is to be written."""

    decided: DecidedInterval
    decided_at_ms: int
    tick_to_decision_ms: int | None


class SummaryQueue:
    """Writes the summaries of one leadership, to a log that is opened with the first one."""

    def __init__(
        self,
        connect: Callable[[], SummaryLog],
        limits: Limits,
        *,
        period_ms: int,
        epoch: int,
        metrics: ControllerMetrics,
    ) -> None:
        self._connect, self._limits = connect, limits
        self._period_ms, self._epoch, self._metrics = period_ms, epoch, metrics
        self._changed = threading.Condition()
        self._waiting: _Waiting | None = None
        #: Of earlier moves: what became known since the last summary.
        self._outcomes: deque[OutcomeOfMove] = deque(maxlen=MOST_OUTCOMES)
        self._closed = self._failed = self._busy = False
        self._thread: threading.Thread | None = None

    def offer(self, decided: DecidedInterval, *, decided_at_ms: int, tick_seconds: float | None) -> None:
        """Have the summary of *decided* written, unless a newer one comes first.  Returns at once."""
        tick_ms = None if tick_seconds is None else max(0, round(1000 * tick_seconds))
        with self._changed:
            if self._closed:
                return
            if self._waiting is not None:
                self._metrics.summary_ended("dropped")
            self._waiting = _Waiting(decided, decided_at_ms, tick_ms)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="summaries", daemon=True)
                self._thread.start()

    def audited(self, moves: Iterable[AuditedMove]) -> None:
        """Have the next summary say what became of *moves*."""
        with self._changed:
            self._outcomes.extend(map(_outcome, moves))

    def wait(self, seconds: float) -> bool:
        """Wait until nothing waits to be written, for *seconds* at most; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting is None and not self._busy, seconds)

    def close(self) -> None:
        """Write no more: this leadership is over."""
        with self._changed:
            self._closed, self._waiting = True, None
            self._changed.notify_all()

    def _run(self) -> None:
        summaries: SummaryLog | None = None
        while (waiting := self._next()) is not None:
            try:
                summaries = summaries or self._connect()
                self._write(summaries, waiting)
                self._failed = False
            except Exception as error:  # whatever it is: decisions go on
                self._metrics.summary_ended("failed")
                level = logging.DEBUG if self._failed else logging.WARNING
                log.log(
                    level, "cannot write summaries, so intervals are missing on the page; decisions continue: %s", error
                )
                self._failed = True
                if summaries is not None:
                    _close(summaries)
                    summaries = None
            del waiting  # else a whole view stays in memory until the next interval
        if summaries is not None:
            _close(summaries)

    def _next(self) -> _Waiting | None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._waiting is not None)
            waiting, self._waiting = self._waiting, None
            self._busy = waiting is not None
            return waiting

    def _write(self, summaries: SummaryLog, waiting: _Waiting) -> None:
        decided = waiting.decided
        if decided.view is None:
            return
        with self._changed:
            outcomes = tuple(self._outcomes)
            self._outcomes.clear()
        try:
            summary = summary_of(
                decided.view,
                decided.entry,
                self._limits,
                period_ms=self._period_ms,
                epoch=self._epoch,
                decided_at_ms=waiting.decided_at_ms,
                tick_to_decision_ms=waiting.tick_to_decision_ms,
                outcomes=outcomes,
            )
            self._metrics.summary_written(summaries.write(summary))
        except BaseException:
            with self._changed:  # where there are too many, the oldest go
                self._outcomes = deque((*outcomes, *self._outcomes), MOST_OUTCOMES)
            raise


def _close(summaries: SummaryLog) -> None:
    with suppress(TrimtabError), closing(summaries):
        pass


def _outcome(move: AuditedMove) -> OutcomeOfMove:
    return OutcomeOfMove(
        id=move.id,
        outcome=str(move.outcome),
        source=_side(move.source),
        destination=_side(move.destination),
        came_to=move.came_to,
        undone=move.undone,
        undone_by=move.undone_by,
    )


def _side(side: AuditedSide) -> MoveSide:
    return MoveSide(
        broker=side.broker,
        before=_percent(side.before),
        promised=_percent(side.predicted),
        measured=_percent(side.actual),
    )


def _percent(figures: BrokerFigures | None) -> float | None:
    return None if figures is None or figures.usage is None else 100.0 * figures.usage
