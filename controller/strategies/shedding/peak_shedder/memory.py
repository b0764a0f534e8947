"""What PeakShedder remembers: how the load of each bundle went, what it has waited for, and what its moves promised.

The load of bundles is a ``PackedHistory``.
"""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

from controller.model.decision import Unload
from controller.model.strategy_memory import OMIT_DEFAULT, DryRunMoves, Renaming, StrategyMemory
from controller.planning.foresight.bundle_history import PackedHistory

PLAN_GAP: Final = "trimtab_plan_gap"
ERROR: Final = "trimtab_prediction_error"
MOVES: Final = "trimtab_verified_moves"
METRICS: Final[Mapping[str, str]] = {
    PLAN_GAP: "PeakShedder: how far the last plan with moves ends above the bound that is proved of it, as a share of"
    " the bound.",
    ERROR: "PeakShedder: typical difference between the usage of brokers two rounds after moves and what the plan said,"
    " as a share of the capacity.",
    f"{MOVES}{{outcome}}": "PeakShedder: moves that were looked at two rounds later, since its memory began. `all`;"
    " `broken`: the destination is fuller than promised, or another broker owns the bundle; `strayed`: the latter"
    " alone.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePromise:
    """What a move was to bring about, until that is looked at."""

    source: str
    destination: str
    #: In so many rounds the decision was made again since then.
    rounds: int = 0
    #: Utilisation of the destination after the plan, and the mean of all brokers then.
    promised: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A broker that is away, or was."""

    #: T of the round since which it is gone, and of that in which it was back; -1: it is not back.
    gone_ms: int
    back_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Rounds in which nothing is planned, as the last plans were not worth it."""

    #: How many are left, and how many there were.
    left: int = 0
    rounds: int = 0
    #: When it began: how far the highest utilisation was above the mean, how many brokers were above their limit, and
    #: how many bundles might move.
    excess: float = 0.0
    over: int = 0
    movable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """How well the promises were kept so far."""

    #: Typical difference between what brokers were to have and what they had, as a utilisation.
    error: float = 0.0
    #: Moves that were looked at; of these, those whose destination is fuller than promised, and those that another
    #: broker owns.
    verified: int = 0
    broken: int = 0
    strayed: int = 0
    #: Gap between the last plan and its bound, as a share of the bound.
    gap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakHistory(PackedHistory, StrategyMemory):
    """See the module docstring."""

    kind: ClassVar[str] = "peak_history_2"
    metric_meanings: ClassVar[Mapping[str, str]] = METRICS

    #: Broker, or "" for the cluster -> a bit for each of the last rounds: 1 if it was to act.
    over: Mapping[str, int] = field(default_factory=dict)
    #: The active brokers, sorted; T of the last round in which some came or went; and the longest time, ms, between two
    #: such rounds that followed each other within an hour.
    brokers: tuple[str, ...] = ()
    changed_ms: int = -1
    apart_ms: int = 0
    #: Broker -> when it went, for some hours, and when it came back, for a day.
    away: Mapping[str, Absence] = field(default_factory=dict, metadata=OMIT_DEFAULT)
    rest: Rest = field(default_factory=Rest, metadata=OMIT_DEFAULT)
    #: Bundle -> what its move was to bring about.
    promises: Mapping[str, MovePromise] = field(default_factory=dict)
    #: Bundles whose move was found out in the last round to have broken its promise.
    broken: tuple[str, ...] = ()
    proven: Proven = field(default_factory=Proven)

    def revert_unissued(self, before: Self, held: Collection[Unload], issued: Collection[Unload]) -> Self:  # noqa: ARG002
        """Moves that were held back promise nothing."""
        bundles = {unload.bundle for unload in held}
        return replace(self, promises={name: each for name, each in self.promises.items() if name not in bundles})

    def invalidate_predictions(self, bundles: Set[str], brokers: Set[str]) -> Self:
        """Without promises that moves of others made void.

        A broker that they send bundles to is fuller than was planned, and one that they take bundles from is emptier;
        neither says anything about the shedder's moves.
        """
        promises = {
            name: each
            for name, each in self.promises.items()
            if name not in bundles and brokers.isdisjoint((each.source, each.destination))
        }
        return replace(self, promises=promises)

    def forget_dry_run(self, moves: DryRunMoves) -> Self:
        """Without promises of moves that nobody made."""
        promises = {
            bundle: each
            for bundle, each in self.promises.items()
            if bundle not in moves.bundles and (each.source, each.destination) not in moves.ends
        }
        return replace(self, promises=promises)

    def predicted_usage(self, bundle: str, source: str, destination: str) -> float | None:
        """What the move promises, if it was decided in this round."""
        promise = self.promises.get(bundle)
        if promise is None or promise.rounds or (promise.source, promise.destination) != (source, destination):
            return None
        return promise.promised

    def failed_predictions(self, interval: int) -> Collection[str]:
        """The moves that broke their promise."""
        return self.broken if self.as_of_ms == interval else ()

    def metrics(self) -> Mapping[str, float]:
        """What came of plans and promises."""
        proven = self.proven
        outcomes = {"all": proven.verified, "broken": proven.broken, "strayed": proven.strayed}
        moves = {f"{MOVES}{{outcome={outcome}}}": float(number) for outcome, number in outcomes.items()}
        return {PLAN_GAP: proven.gap, ERROR: proven.error, **moves}

    def with_names(self, names: Renaming) -> Self:  # noqa: ARG002
        """A new memory: its columns are hashes of names."""
        return type(self)()
