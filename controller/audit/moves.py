"""The nouns of an audit: a move, its predictions for both brokers, and its outcome."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from controller.audit.seen_load import BrokerFigures, CarriedLoad

#: Where a prediction comes from: "promise", the decision's own record; "computed", the load that the decision saw.
PredictedBy: TypeAlias = Literal["promise", "computed", ""]
#: Whether a broker had data two intervals later; "": it was not checked.
Presence: TypeAlias = Literal["there", "no_data", "left", ""]
#: Who undid a move; "broker_left": its broker was no longer active; "": it was not undone.
Undoer: TypeAlias = Literal["trimtab", "others", "broker_left", ""]


class MoveOutcome(StrEnum):
    """Where the bundle of a move was two intervals later."""

    ARRIVED = "arrived"
    #: On another broker than its destination.
    ELSEWHERE = "elsewhere"
    #: On its source.
    STAYED = "stayed"
    SPLIT = "split"
    MERGED = "merged"
    #: No broker listed it.
    UNLISTED = "unlisted"
    #: That interval is missing.
    NOT_RECORDED = "not_recorded"
    #: The log ends before.
    NOT_YET = "not_yet"
    #: More moves at once than an audit follows.
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSide:
    """The source or the destination of a move; None where a figure is not known."""

    broker: str
    #: In the interval that was decided on.
    before: BrokerFigures | None = None
    #: Once all that was decided by then is done.
    predicted: BrokerFigures | None = None
    #: Of its usage; messages and bytes are always computed.
    predicted_by: PredictedBy = ""
    #: Two intervals later.
    actual: BrokerFigures | None = None
    presence: Presence = ""

    @property
    def unpredictable(self) -> bool:
        """Nothing could be predicted of its usage, which is known: see SeenLoad.after."""
        known = self.before is not None and self.before.usage is not None
        return known and self.predicted is not None and self.predicted.usage is None

    @property
    def error(self) -> float | None:
        """The actual usage less the predicted one."""
        if self.predicted is None or self.actual is None or None in (self.predicted.usage, self.actual.usage):
            return None
        assert self.actual.usage is not None
        assert self.predicted.usage is not None
        return self.actual.usage - self.predicted.usage

    def error_without(self, drift: float | None) -> float | None:
        """The same, if the prediction had known how the traffic of the whole cluster was to change."""
        error = self.error
        if error is None or self.predicted is None or self.predicted.usage is None:
            return None
        return error - self.predicted.usage * ((1.0 if drift is None else drift) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedMove:
    """One commanded unload, and its outcome."""

    id: str
    #: T of its decision, epoch ms.
    interval: int
    bundle: str
    namespace: str
    #: Who requested it: a strategy, "membership", or "plan".
    strategy: str
    reason: str
    source: AuditedSide
    #: Its broker is "" where the brokers were to choose.
    destination: AuditedSide
    #: The executor's status; "": no result came.
    result: str
    outcome: MoveOutcome
    #: The first other broker that listed the bundle after the decision, and when, epoch ms; "" and None: none did.
    came_to: str
    came_at: int | None
    #: None: no broker with data listed the bundle when it was decided.
    carried: CarriedLoad | None
    #: Producers and consumers that had to reconnect; None where nobody knows whether it was unloaded.
    clients: int | None
    #: The first interval in which another broker listed the bundle with as many producers as when it was decided, epoch
    #: ms; None: that was not seen within the hour, or is not known.
    producers_back_at: int | None
    #: Traffic of the cluster two intervals later over that before.
    drift: float | None
    #: Moves from or to its brokers that were decided before that, and after it: no prediction knows of them.
    later: int
    #: The bundle was back on its source within an hour; None: that hour is not over.
    undone: bool | None
    #: When, epoch ms, and by whom.
    undone_at: int | None
    undone_by: Undoer
    #: A shorter sequence of moves would have led to the same end; None: that cannot be known yet.
    shorter: bool | None

    @property
    def had_producers(self) -> bool:
        """Whether it is known that the bundle came to another broker, and had producers before."""
        return bool(self.came_to) and self.carried is not None and self.carried.producers > 0

    @property
    def producers_back_ms(self) -> int | None:
        """From the interval that first showed the bundle elsewhere to the one with all producers; None: not seen."""
        if self.producers_back_at is None or self.came_at is None or not self.had_producers:
            return None
        return self.producers_back_at - self.came_at

    @property
    def helped(self) -> bool | None:
        """Whether the fuller of its two brokers became emptier, beside the traffic of the cluster; None: unknown."""
        sides = (self.source, self.destination)
        before, after = _fullest(each.before for each in sides), _fullest(each.actual for each in sides)
        if self.outcome is not MoveOutcome.ARRIVED or self.drift is None or before is None or after is None:
            return None
        return after < before * self.drift


def _fullest(brokers: Iterable[BrokerFigures | None]) -> float | None:
    """The highest usage of *brokers*; None where that of one is not known."""
    usages = [None if each is None else each.usage for each in brokers]
    known = [usage for usage in usages if usage is not None]
    return max(known) if known == usages else None


@dataclass(slots=True)
class MoveSums:
    """Figures of several moves."""

    moves: int = 0
    arrived: int = 0
    elsewhere: int = 0
    stayed: int = 0
    #: Those of them that were done later.
    late: int = 0
    #: Split, merged or not listed any more.
    gone: int = 0
    #: The interval two intervals later is missing.
    unknown: int = 0
    helped: int = 0
    #: Moves of which it is known whether they helped.
    judged: int = 0
    undone: int = 0
    #: Moves of which it is not known yet whether they are undone.
    undone_unknown: int = 0
    shorter: int = 0
    clients: int = 0
    #: Moves of which it is not known whether clients had to reconnect.
    clients_unknown: int = 0
    #: Moves of bundles that had producers and came to another broker; those of them where as many producers were seen
    #: there, and those where it was in the interval that first showed the bundle there.
    had_producers: int = 0
    producers_back: int = 0
    producers_back_at_once: int = 0
    #: msg/s that they took along.
    rate: float = 0.0
    #: Brokers of moves whose usage was predicted and seen; how many of them by a promise.
    predictions: int = 0
    promises: int = 0
    #: Brokers of moves of whose usage nothing could be predicted.
    unpredicted: int = 0
    #: Sums of the errors, without their sign; and without what the whole cluster had more or less.
    error: float = 0.0
    error_without_drift: float = 0.0

    def add(self, move: AuditedMove) -> None:
        """Count *move*, too."""
        self.moves += 1
        match move.outcome:
            case MoveOutcome.ARRIVED:
                self.arrived += 1
            case MoveOutcome.ELSEWHERE:
                self.elsewhere += 1
            case MoveOutcome.STAYED:
                self.stayed += 1
                self.late += move.result == "done" and bool(move.came_to)
            case MoveOutcome.SPLIT | MoveOutcome.MERGED | MoveOutcome.UNLISTED:
                self.gone += 1
            case _:
                self.unknown += 1
        self.judged += move.helped is not None
        self.helped += bool(move.helped)
        self.undone += bool(move.undone)
        self.undone_unknown += move.undone is None
        self.shorter += bool(move.shorter)
        self.clients += move.clients or 0
        self.clients_unknown += move.clients is None
        self.had_producers += move.had_producers
        self.producers_back += move.producers_back_ms is not None
        self.producers_back_at_once += move.producers_back_ms == 0
        self.rate += 0.0 if move.carried is None or not move.came_to else move.carried.rate
        self._add_errors(move)

    def _add_errors(self, move: AuditedMove) -> None:
        if move.outcome is not MoveOutcome.ARRIVED:
            return  # what was predicted of a move that was not done says nothing
        for side in (move.source, move.destination):
            self.unpredicted += side.unpredictable
            error, without = side.error, side.error_without(move.drift)
            if error is not None and without is not None:
                self.predictions += 1
                self.promises += side.predicted_by == "promise"
                self.error += abs(error)
                self.error_without_drift += abs(without)


class StraightPlan:
    """How many moves a plan needs that takes each bundle straight from its first broker to its last one.

    TiKV PD: pd-analysis, which removes the circles from the graph of moves.
    """

    def __init__(self) -> None:
        self._moves = 0
        #: Bundle -> its first broker and its last one.
        self._ends: dict[str, tuple[str, str]] = {}

    def add(self, bundle: str, source: str, destination: str) -> None:
        """The next move."""
        first, _ = self._ends.get(bundle, (source, source))
        self._ends[bundle] = first, destination
        self._moves += 1

    @property
    def not_needed(self) -> int:
        """Of the moves so far, how many that plan does not need."""
        return self._moves - sum(first != last for first, last in self._ends.values())
