"""A shedder that somebody wrote, in one file, with a memory of its own."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from controller.strategies.api import (
    ClusterView,
    DryRunMoves,
    Reason,
    ResourceWeights,
    StrategyMemory,
    Unload,
    UnloadDecision,
    Verdict,
    broker_own,
    busiest_first,
    mean_usage,
    movable,
    option,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """What a broker gave."""

    bundle: str
    source: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience(StrategyMemory):
    """How long brokers have been full, and what was given last."""

    mood: Literal["calm", "busy"] = "calm"
    #: Broker -> rounds in which it was full.
    rounds: Mapping[str, int] = field(default_factory=dict)
    gifts: tuple[Gift, ...] = ()
    #: The highest usage so far.
    peak: float | None = None

    def __post_init__(self) -> None:
        if any(rounds < 0 for rounds in self.rounds.values()):
            raise ValueError("rounds are counted from 0")

    def keep_brokers(self, brokers: Sequence[str]) -> Self:
        here = set(brokers)
        return replace(self, rounds={name: number for name, number in self.rounds.items() if name in here})

    def revert_unissued(self, before: Self, held: Collection[Unload], issued: Collection[Unload]) -> Self:
        gave = {unload.bundle for unload in issued}
        rounds = {unload.source: before.rounds.get(unload.source, 0) for unload in held}
        return replace(
            self, gifts=tuple(gift for gift in self.gifts if gift.bundle in gave), rounds={**self.rounds, **rounds}
        )

    def forget_dry_run(self, moves: DryRunMoves) -> Self:
        return replace(self, gifts=tuple(gift for gift in self.gifts if gift.bundle not in moves.bundles))

    def invalidate_predictions(self, bundles: AbstractSet[str], brokers: AbstractSet[str]) -> Self:
        return replace(self, gifts=tuple(gift for gift in self.gifts if gift.source not in brokers))

    def metrics(self) -> dict[str, float]:
        return {"longest_wait": max(self.rounds.values(), default=0), "gifts": len(self.gifts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatientShedder(ResourceWeights):
    """Takes the busiest bundle off the fullest broker once it was full for some rounds."""

    patience: int = option("acmePatience", default=2, unit="rounds", meaning="for how long a broker must be full")

    def initial_memory(self) -> Patience:
        return Patience()

    def decide(self, view: ClusterView, memory: Patience) -> tuple[UnloadDecision, Patience]:
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        usage = self.weighted_usage(view.brokers.usage, view.brokers.limit)
        limit, peak = float(mean_usage(usage)) + 0.2, float(usage.max())
        full = {name: bool(each > limit) for name, each in zip(view.brokers.names, usage.tolist(), strict=True)}
        verdicts = tuple(
            Verdict(
                subject=name,
                reason=Reason.OVERLOADED if full[name] else Reason.BALANCED,
                observed=each,
                limit=limit,
                unit="usage",
                by="PatientShedder",
            )
            for name, each in zip(view.brokers.names, usage.tolist(), strict=True)
        )
        rounds = {name: memory.rounds.get(name, 0) + 1 for name in view.brokers.names if full[name]}
        memory = replace(
            memory, rounds=rounds, mood="busy" if rounds else "calm", peak=max(memory.peak or 0.0, peak), gifts=()
        )
        fullest = int(usage.argmax())
        why = verdicts[fullest]
        if rounds.get(why.subject, 0) < self.patience:
            return UnloadDecision(verdicts=verdicts, reason=Reason.BALANCED), memory
        rows, refused = movable(view, broker_own(view), fullest, "PatientShedder")
        if not len(rows):
            return UnloadDecision(verdicts=(*verdicts, *refused), reason=Reason.NO_BUNDLES), memory
        bundle = view.bundles.names[busiest_first(view.bundles.short_term_throughput, rows)[0]]
        unload = Unload(bundle=bundle, source=why.subject, why=why)
        gift = Gift(bundle=bundle, source=why.subject, at_ms=view.as_of_ms)
        left = {name: number for name, number in rounds.items() if name != why.subject}
        decision = UnloadDecision(unloads=(unload,), verdicts=(*verdicts, *refused), reason=Reason.OVERLOADED)
        return decision, replace(memory, gifts=(gift,), rounds=left)
