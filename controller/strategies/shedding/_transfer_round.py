"""What a round of TransferShedder looks at, what it comes to, and that in the words of a decision."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.decision import Reason, Told, Unload, UnloadDecision, Verdict
from controller.model.load import Ints
from controller.strategies.shedding._transfer_pair import Exchange, Gate, TopBundle
from controller.strategies.shedding._transfer_stats import BrokerLoads, Readiness

_BY: Final = "TransferShedder"
_CLUSTER: Final = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadStore:
    """What one round looks at, apart from what is remembered."""

    now_ms: int
    loads: BrokerLoads
    #: Rows of ``loads`` that may give and take, in ascending order of their load, not empty.
    order: Ints
    #: All active brokers, also those without data.
    available: Collection[str]
    #: A broker's report of its bundles, lightest first; empty if there is none.
    bundles_of: Callable[[str], Sequence[TopBundle]]
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A pair of brokers that was looked at: rows, why, and what came of it or why nothing could."""

    giver: int
    taker: int
    why: Reason
    outcome: Exchange | Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round came to."""

    #: Pulsar's word for why nothing moves, or for why the first of what moves does.
    reason: Reason
    ready: Readiness
    #: Rounds in a row, this one included, in which load was uneven; 0 again once something moves.
    hit_count: int
    #: Of the load, fractions, before anything moves; None if the data did not allow a round.
    average: float | None = None
    std: float | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrator:
    """Puts rounds into words, with the limits that they were held against."""

    target_std: float
    hit_count_threshold: int
    delay_ms: int

    def decision(self, store: LoadStore, found: Round) -> UnloadDecision:
        """The unloads of *found*, and a verdict on every broker in ``store.order`` and every bundle refused."""
        # Pulsar says HitCount of even load, too.
        even = found.reason is Reason.HIT_COUNT and found.hit_count == 0
        reason = Reason.BALANCED if even else found.reason
        verdicts = self._on_cluster(found, reason)
        unloads: list[Unload] = []
        looked_at = {broker.subject for broker in verdicts}
        for attempt in found.attempts:
            planned, more = self._attempt(store.loads, attempt, found.average)
            unloads += planned
            verdicts += more
            looked_at |= {verdict.subject for verdict in more}
        rest = Reason.BALANCED if found.attempts else reason

        def tell() -> Iterator[Verdict]:
            yield from verdicts
            for row in sorted(store.order.tolist()):
                if store.loads.names[row] not in looked_at:
                    yield self._on_broker(store.loads, row, rest, found.average)

        return UnloadDecision(unloads=tuple(unloads), verdicts=Told(tell), reason=reason)

    def _on_cluster(self, found: Round, reason: Reason) -> list[Verdict]:
        """What the round was held against as a whole."""
        if reason is Reason.COOL_DOWN:
            return [
                Verdict(
                    subject=found.ready.broker,
                    reason=reason,
                    observed=found.ready.elapsed_ms / 1000,
                    limit=self.delay_ms / 1000,
                    unit="s",
                    by=_BY,
                    detail="bundles were taken off it",
                )
            ]
        if found.average is None:
            return [Verdict(subject=found.ready.broker or _CLUSTER, reason=reason, by=_BY)]
        spread = Verdict(
            subject=_CLUSTER,
            reason=reason,
            observed=found.std,
            limit=self.target_std,
            unit="usage",
            by=_BY,
            detail="standard deviation of the load",
        )
        if reason is not Reason.HIT_COUNT or found.attempts:
            return [spread]
        hits, limit = float(found.hit_count), float(self.hit_count_threshold)
        return [
            spread,
            Verdict(subject=_CLUSTER, reason=reason, observed=hits, limit=limit, unit="rounds", by=_BY),
        ]

    def _attempt(
        self, loads: BrokerLoads, attempt: Attempt, average: float | None
    ) -> tuple[list[Unload], list[Verdict]]:
        giver, taker, outcome = loads.names[attempt.giver], loads.names[attempt.taker], attempt.outcome
        if isinstance(outcome, Reason):
            few = "it reports no bundle that may move" if outcome is Reason.NO_LOAD_DATA else "it reports one bundle"
            return [], [self._on_broker(loads, attempt.giver, outcome, average, few)]
        reason = attempt.why if outcome.moves else Reason.NO_BUNDLES
        why = self._on_broker(loads, attempt.giver, reason, average, f"the emptiest broker is {taker}")
        verdicts = [why]
        back = self._on_broker(loads, attempt.taker, attempt.why, average, f"in exchange with {giver}")
        if any(move.source == taker for move in outcome.moves):
            verdicts.append(back)
        unloads = [
            Unload(
                bundle=move.bundle,
                source=move.source,
                destination=move.destination,
                final=bool(move.destination),
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
            limit=average,
            unit="usage",
            by=_BY,
            detail=detail,
        )
