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
    " alone; `undone`: moves that went back.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePromise:
    """What a move was to bring about, until that is looked at."""

    source: str
    destination: str
    #: In so many rounds the decision was made again since then.
    rounds: int = 0
    #: Utilisation of the destination after the plan, of the source before it, and the mean of all brokers then.
    promised: float = 0.0
    source_before: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUndo:
    """A move that made things worse: its bundle goes back once it may, if that still pays."""

    #: Where it goes back to, and the broker that owns it; with any other owner nothing is undone.
    source: str
    destination: str
    #: T of the round in which that was found, epoch ms.
    noted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """How well the promises were kept so far."""

    #: Typical difference between what brokers were to have and what they had, as a utilisation.
    error: float = 0.0
    #: Moves that were looked at; of these, those whose destination is fuller than promised, and those that another
    #: broker owns; and moves that were undone because they made things worse.
    verified: int = 0
    broken: int = 0
    strayed: int = 0
    undone: int = 0
    #: Gap between the last plan and its bound, as a share of the bound.
    gap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakHistory(PackedHistory, StrategyMemory):
    """See the module docstring."""

    kind: ClassVar[str] = "peak_history"
    metric_meanings: ClassVar[Mapping[str, str]] = METRICS

    #: A bit for each of the last two rounds: 1 if bundles were split whose parts went to other brokers.
    splits: int = field(default=0, metadata=OMIT_DEFAULT)
    #: Broker, or "" for the cluster -> a bit for each of the last rounds: 1 if it was to act.
    over: Mapping[str, int] = field(default_factory=dict)
    #: The active brokers, sorted; T of the last round in which some came or went; and the longest time, ms, between two
    #: such rounds that followed each other within an hour.
    brokers: tuple[str, ...] = ()
    changed_ms: int = -1
    apart_ms: int = 0
    #: Broker -> T of the last round in which it was to get bundles by an urgent move.
    helped: Mapping[str, int] = field(default_factory=dict, metadata=OMIT_DEFAULT)
    #: Broker -> T of the last round in which it was to give bundles by an urgent move after load jumped; empty once
    #: brokers came or went.
    relieved: Mapping[str, int] = field(default_factory=dict, metadata=OMIT_DEFAULT)
    #: Broker -> T of the round since which it is gone, for an hour; and, of one that came back within that time, T of
    #: the round in which it was back, for a day.
    gone: Mapping[str, int] = field(default_factory=dict, metadata=OMIT_DEFAULT)
    returned: Mapping[str, int] = field(default_factory=dict, metadata=OMIT_DEFAULT)
    #: Rounds in which nothing is planned, as the last plans were not worth it; how many there were last time; and the
    #: highest utilisation then.
    rest: int = 0
    rested: int = 0
    rested_at: float = 0.0
    #: The rest of a plan of which the last rounds carried out a part, bundle -> destination, in the order of the plan;
    #: and the highest utilisation that it leads to.
    plan: tuple[tuple[str, str], ...] = ()
    plan_end: float = 0.0
    #: Bundle -> what its move was to bring about.
    promises: Mapping[str, MovePromise] = field(default_factory=dict)
    #: Bundle -> its move, which is to be undone.
    undo: Mapping[str, PendingUndo] = field(default_factory=dict)
    #: Bundles whose move was found out in the last round to have broken its promise.
    broken: tuple[str, ...] = ()
    proven: Proven = field(default_factory=Proven)

    def revert_unissued(self, before: Self, held: Collection[Unload], issued: Collection[Unload]) -> Self:  # noqa: ARG002
        """Moves that were held back promise nothing; they are the first of the rest of the plan, if there is one."""
        bundles = {unload.bundle for unload in held}
        return replace(
            self,
            promises={name: each for name, each in self.promises.items() if name not in bundles},
            plan=(*((unload.bundle, unload.destination) for unload in held), *self.plan) if self.plan else (),
        )

    def invalidate_predictions(self, bundles: Set[str], brokers: Set[str]) -> Self:
        """Without promises, moves to undo and the rest of a plan that moves of others made void.

        A broker that they send bundles to is fuller than was planned, and one that they take bundles from is emptier;
        neither says anything about the shedder's moves.
        """

        def holds(bundle: str, each: MovePromise | PendingUndo) -> bool:
            return bundle not in bundles and brokers.isdisjoint((each.source, each.destination))

        promises = {name: each for name, each in self.promises.items() if holds(name, each)}
        undo = {name: each for name, each in self.undo.items() if holds(name, each)}
        return replace(self, promises=promises, undo=undo, plan=(), plan_end=0.0)

    def forget_dry_run(self, moves: DryRunMoves) -> Self:
        """Without promises of moves that nobody made, and without the rest of a plan."""
        promises = {
            bundle: each
            for bundle, each in self.promises.items()
            if bundle not in moves.bundles and (each.source, each.destination) not in moves.ends
        }
        return replace(self, promises=promises, plan=(), plan_end=0.0)

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
        outcomes = {"all": proven.verified, "broken": proven.broken, "strayed": proven.strayed, "undone": proven.undone}
        moves = {f"{MOVES}{{outcome={outcome}}}": float(number) for outcome, number in outcomes.items()}
        return {PLAN_GAP: proven.gap, ERROR: proven.error, **moves}

    def with_names(self, names: Renaming) -> Self:  # noqa: ARG002
        """A new memory: its columns are hashes of names."""
        return type(self)()
