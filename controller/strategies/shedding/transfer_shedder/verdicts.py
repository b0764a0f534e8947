"""What came of a round of TransferShedder, as a decision: the unloads, and a verdict on everything looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controller.model.decision import CLUSTER, LazyVerdicts, Reason, Unload, UnloadDecision, Verdict
from controller.strategies.shedding.transfer_shedder.load_stats import BrokerLoads, ImbalanceCause
from controller.strategies.shedding.transfer_shedder.rounds import Attempt, LoadStore, Round

_BY: Final = "TransferShedder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrator:
    """Writes the decision of a round, with the limits that the round was compared with."""

    target_std: float
    hit_count_threshold: int
    delay_ms: int

    def decision(self, store: LoadStore, this_round: Round) -> UnloadDecision:
        """The unloads of *this_round*, and a verdict on every broker in ``store.order`` and every bundle refused."""
        # Pulsar's reason is HitCount for even load, too.
        even = this_round.reason is Reason.HIT_COUNT and this_round.hit_count == 0
        reason = Reason.BALANCED if even else this_round.reason
        verdicts = self._on_cluster(this_round, reason)
        unloads: list[Unload] = []
        looked_at = {broker.subject for broker in verdicts}
        for attempt in this_round.attempts:
            planned, more = self._attempt(store.loads, attempt, this_round.average)
            unloads += planned
            verdicts += more
            looked_at |= {verdict.subject for verdict in more}
        rest = Reason.BALANCED if this_round.attempts else reason

        def tell() -> Iterator[Verdict]:
            yield from verdicts
            for row in sorted(store.order.tolist()):
                if store.loads.names[row] not in looked_at:
                    yield self._on_broker(store.loads, row, rest, this_round.average)

        return UnloadDecision(unloads=tuple(unloads), verdicts=LazyVerdicts(tell), reason=reason)

    def _on_cluster(self, this_round: Round, reason: Reason) -> list[Verdict]:
        """Verdicts on the cluster as a whole."""
        if reason is Reason.COOL_DOWN:
            return [
                Verdict(
                    subject=this_round.ready.broker,
                    reason=reason,
                    observed=round(this_round.ready.elapsed_ms / 1000),
                    limit=self.delay_ms / 1000,
                    unit="s",
                    by=_BY,
                    detail="bundles were taken off it",
                )
            ]
        if this_round.average is None:
            return [Verdict(subject=this_round.ready.broker or CLUSTER, reason=reason, by=_BY)]
        if reason is Reason.HIT_COUNT and not this_round.attempts:
            hits, limit = float(this_round.hit_count), float(self.hit_count_threshold)
            detail = f"load was uneven; its standard deviation is {this_round.std:.3g}, the target {self.target_std:g}"
            return [
                Verdict(
                    subject=CLUSTER, reason=reason, observed=hits, limit=limit, unit="rounds", by=_BY, detail=detail
                )
            ]
        why = next((each.why for each in this_round.attempts if each.why.reason is reason), None)
        if why is None:
            why = ImbalanceCause(reason, this_round.std or 0.0, self.target_std, "standard deviation of the load")
        return [_compared(CLUSTER, why, why.what)]

    def _attempt(
        self, loads: BrokerLoads, attempt: Attempt, average: float | None
    ) -> tuple[list[Unload], list[Verdict]]:
        giver, taker, outcome = loads.names[attempt.giver], loads.names[attempt.taker], attempt.outcome
        if isinstance(outcome, Reason):
            why_few = (
                "it reports no bundle that may move" if outcome is Reason.NO_LOAD_DATA else "it reports one bundle"
            )
            return [], [self._on_broker(loads, attempt.giver, outcome, average, why_few)]
        if outcome.moves:
            load = float(loads.load[attempt.giver])
            detail = f"{attempt.why.what}; this broker is at {load:.3g} usage, the emptiest is {taker}"
            why = _compared(giver, attempt.why, detail)
        else:
            why = self._on_broker(loads, attempt.giver, Reason.NO_BUNDLES, average, f"the emptiest broker is {taker}")
        verdicts = [why]
        back = self._on_broker(loads, attempt.taker, attempt.why.reason, None, f"in exchange with {giver}")
        if any(move.source == taker for move in outcome.moves):
            verdicts.append(back)
        unloads = [
            Unload(
                bundle=move.bundle,
                source=move.source,
                destination=move.destination,
                final=bool(move.destination),
                ignores_grace=move.source == taker,
                why=why if move.source == giver else back,
            )
            for move in outcome.moves
        ]
        verdicts += [
            Verdict(
                subject=one.bundle,
                reason=one.reason,
                observed=one.observed,
                limit=one.limit,
                unit="" if one.observed is None else "bytes/s",
                by=_BY,
            )
            for one in outcome.refused
        ]
        return unloads, verdicts

    def _on_broker(
        self, loads: BrokerLoads, row: int, reason: Reason, average: float | None, detail: str = ""
    ) -> Verdict:
        return Verdict(
            subject=loads.names[row],
            reason=reason,
            observed=float(loads.load[row]),
            # Where the load is even, or not uneven for long enough, the distance from the average decided nothing.
            limit=None if reason in (Reason.BALANCED, Reason.HIT_COUNT) else average,
            unit="usage",
            by=_BY,
            detail=detail,
        )


def _compared(subject: str, why: ImbalanceCause, detail: str) -> Verdict:
    """The verdict on *subject* with the comparison that decided."""
    return Verdict(
        subject=subject, reason=why.reason, observed=why.observed, limit=why.limit, unit=why.unit, by=_BY, detail=detail
    )
