"""Outcomes of the controller's moves, as metrics of ``trimtab run``."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from controller.adapters.metrics.declared import DeclaredMetrics
from controller.aggregate.snapshot import Snapshot
from controller.audit.auditor import AuditStep, MoveAuditor
from controller.audit.moves import AuditedMove, MoveOutcome
from controller.cycle.ordered import BY_PLAN
from controller.cycle.policy import Policy
from controller.model.journal import JournalEntry
from controller.strategies.catalogue import SHEDDERS
from controller.strategies.rebalance.membership import BY_MEMBERSHIP

log = logging.getLogger(__name__)

#: Upper bounds of the difference between predicted and actual usage, as shares of a broker's limit.
_ERRORS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
#: Values of the label ``strategy``; a strategy of a user's own is "other".
_STRATEGIES: Final = frozenset({*SHEDDERS, BY_MEMBERSHIP, BY_PLAN})
_OTHER: Final = "other"


class AuditMetrics:
    """Declares the metrics, and counts what an auditor finds."""

    def __init__(self, declared: DeclaredMetrics) -> None:
        self._moves = declared.counter(
            "trimtab_audited_moves_total",
            "Moves by where the bundle was two intervals after the decision's interval. This metric and "
            "the others of audits"
            " know the moves that this process decided: after a takeover, those of the leader before are missing."
            " `outcome`: arrived, elsewhere,"
            " stayed, split, merged, unlisted, not_recorded, too_many (docs/audit.md). `strategy`: who asked for the"
            " move; other: one of your own.",
            "strategy",
            "outcome",
        )
        self._helped = declared.counter(
            "trimtab_audited_moves_helped_total",
            "Moves that arrived, by whether the fuller broker lost more load than the cluster as a whole."
            " `helped`: yes, no.",
            "strategy",
            "helped",
        )
        self._error = declared.histogram(
            "trimtab_audited_usage_error",
            "Moves that arrived: difference, without sign, between the predicted and the actual usage of source and"
            " destination, as a share of the limit. `predicted_by`: promise (the decision's own), computed.",
            "predicted_by",
            buckets=_ERRORS,
        )
        self._undone = declared.counter(
            "trimtab_audited_moves_undone_total",
            "Moves whose bundle was back on its source within an hour; counted when the hour is over. `by`: trimtab,"
            " broker_left, others.",
            "strategy",
            "by",
        )
        self._shorter = declared.counter(
            "trimtab_audited_moves_not_needed_total",
            "Moves that a shorter sequence of moves within an hour would have avoided; counted when the hour is over.",
            "strategy",
        )
        self._clients = declared.counter(
            "trimtab_audited_clients_total",
            "Producers and consumers that had to reconnect, as far as known; counted an hour after the move.",
            "strategy",
        )
        self._changes = declared.counter(
            "trimtab_owner_changes_total",
            "Bundles that came to another broker without a command. `why`: broker_left, others.",
            "why",
        )
        for why in ("broker_left", "others"):
            self._changes.labels(why)

    def expect(self, policy: Policy) -> None:
        """Show the strategies of *policy* with zeros: what begins at 1 would look as if nothing had been added."""
        names = {type(each).__name__ for each in (policy.shedder, policy.membership) if each is not None}
        for strategy in sorted({*map(_label, names), BY_PLAN}):
            for outcome in set(MoveOutcome) - {MoveOutcome.NOT_YET}:
                self._moves.labels(strategy, str(outcome))
            for helped in ("yes", "no"):
                self._helped.labels(strategy, helped)
            for by in ("trimtab", "broker_left", "others"):
                self._undone.labels(strategy, by)
            self._shorter.labels(strategy)
            self._clients.labels(strategy)

    def take(self, step: AuditStep) -> None:
        """Count the findings of an interval."""
        for move in step.looked_at:
            self._looked_at(move)
        for move in step.settled:
            self._settled(move)
        for change in step.changes:
            self._changes.labels(change.why).inc()

    def _looked_at(self, move: AuditedMove) -> None:
        strategy = _label(move.strategy)
        self._moves.labels(strategy, str(move.outcome)).inc()
        if move.helped is not None:
            self._helped.labels(strategy, "yes" if move.helped else "no").inc()
        for side in (move.source, move.destination):
            if move.outcome is MoveOutcome.ARRIVED and side.error is not None:
                self._error.labels(side.predicted_by).observe(abs(side.error))

    def _settled(self, move: AuditedMove) -> None:
        strategy = _label(move.strategy)
        if move.outcome is MoveOutcome.TOO_MANY:
            self._moves.labels(strategy, str(move.outcome)).inc()
        if move.undone:
            self._undone.labels(strategy, move.undone_by).inc()
        self._shorter.labels(strategy).inc(bool(move.shorter))
        self._clients.labels(strategy).inc(move.clients or 0)


class AuditWatch:
    """Audits a running controller.  No decision depends on it: where it fails, it ends, and nothing else does."""

    def __init__(self, auditor: MoveAuditor, metrics: AuditMetrics) -> None:
        self._auditor: MoveAuditor | None = auditor
        self._metrics = metrics

    def take(self, snapshots: Sequence[Snapshot], entries: Mapping[int, JournalEntry]) -> list[AuditedMove]:
        """Go on with the intervals of *entries*, which were decided on *snapshots*.

        Returns the moves of which more is known now.
        """
        moves: list[AuditedMove] = []
        if self._auditor is None:
            return moves
        try:
            for interval in sorted(entries):
                entry = entries[interval]
                parts = [each for each in snapshots if each.interval == interval]
                step = self._auditor.take(parts, entry.decision, entry.memory)
                self._metrics.take(step)
                moves += (*step.looked_at, *step.settled)
        except Exception:
            self._auditor = None
            log.exception("moves are not audited until the next leadership; decisions continue; please report this")
        return moves


def _label(strategy: str) -> str:
    return strategy if strategy in _STRATEGIES else _OTHER
