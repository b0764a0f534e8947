"""Checks the moves of a strategy's decision by what brokers carry.  It shares no code with what chooses them.

A strategy proves nothing, as a plan does.  So nothing here depends on how it weighs load: a move is refused where its
destination would be fuller than its source is now, or above what it can carry.

What bundles take: bandwidth by their own bytes/s, CPU by their share of the source's messages or bytes, whichever is
greater.  Memory stays where it is: it follows no bundle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    RATE_IN,
    RATE_OUT,
    RESOURCE_WORDS,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Bools,
    ClusterView,
    Floats,
)

#: What moves with bundles.
_MOVING: Final = (CPU, BANDWIDTH_IN, BANDWIDTH_OUT)
_COUNTED: Final = (CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT)
_BANDWIDTH: Final = ((BANDWIDTH_IN, THROUGHPUT_IN), (BANDWIDTH_OUT, THROUGHPUT_OUT))
#: What a bundle's share of its broker's CPU may follow.
_TRAFFIC: Final = ([RATE_IN, RATE_OUT], [THROUGHPUT_IN, THROUGHPUT_OUT])
#: The limit of every resource of a broker that reports its usage in percent.
_PERCENT: Final = 100.0
#: bytes/s in kbit/s.
_KBIT: Final = 8 / 1000
#: Differences below this come from rounding.
_ROUNDING: Final = 1e-9


class CheckedMove(NamedTuple):
    """A move, as rows of the view."""

    bundle: int
    source: int
    destination: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictedUsage:
    """(brokers, 5) usage as a share of what each broker can carry; 0 where its limit is not known."""

    before: Floats
    after: Floats

    def flaw(self, move: CheckedMove, names: Sequence[str]) -> str:
        """Why *move* makes a broker too full; "": it does not.  *names*: of the brokers."""
        usage, source = self.after[move.destination, _MOVING], self.fullest(self.before, move.source)
        share, resource = float(usage.max()), RESOURCE_WORDS[_MOVING[int(usage.argmax())]]
        if share <= min(source, 1.0) + _ROUNDING:
            return ""
        against = "more than it can carry" if share > 1.0 else f"fuller than {names[move.source]} is now ({source:.0%})"
        return f"{names[move.destination]} would be at {share:.0%} of its {resource}, {against}"

    @staticmethod
    def fullest(usage: Floats, broker: int) -> float:
        """The *usage*, (brokers, 5), of the fullest resource of *broker*; heap memory says little, so it does not."""
        return float(usage[broker, _COUNTED].max())


class CheckedMoves(NamedTuple):
    """What was found about moves."""

    #: With all moves but the refused ones.
    usage: PredictedUsage
    #: Bundle (a row) -> why its move is refused.
    refused: Mapping[int, str]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def check_moves(view: ClusterView, moves: Sequence[CheckedMove]) -> CheckedMoves:
    """Which of *moves*, one for each bundle, make a broker too full once all of them have arrived.

    Bundles on their way count where they were sent.  Of several moves that make one broker too full, the last ones are
    refused, until the others fit.  O(bundles + moves squared).
    """
    bundles, names = view.bundles, view.brokers.names
    load = np.maximum(np.maximum(bundles.load, bundles.short_term), 0.0)
    carried = _Carried.of(view, load)
    after = carried.usage.copy()

    def move(bundle: int, destination: int, sign: int = 1) -> None:
        source = int(bundles.broker[bundle])
        amount = sign * carried.amount_of(load[bundle], source)
        after[source] -= amount
        after[destination] += amount * carried.scale(source, destination)

    for bundle, destination in view.preallocated.pairs():
        if bundles.owned[bundle]:
            move(bundle, destination)
    for each in moves:
        move(each.bundle, each.destination)
    usage, remaining, refused = PredictedUsage(before=carried.usage, after=after), list(moves), dict[int, str]()
    while (last := next((each for each in reversed(remaining) if usage.flaw(each, names)), None)) is not None:
        refused[last.bundle] = usage.flaw(last, names)
        remaining.remove(last)
        move(last.bundle, last.destination, -1)
    return CheckedMoves(PredictedUsage(before=carried.usage, after=np.maximum(after, 0.0)), refused)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Carried:
    """What brokers carry."""

    #: (brokers, 5) usage as a share of the limit, and the limit; 0 where that is not known.
    usage: Floats
    limit: Floats
    #: (brokers,) whether each reports all in percent, so that its limits cannot be compared with those of others.
    in_percent: Bools
    #: (brokers, 4) the load of its bundles.
    load: Floats

    @classmethod
    def of(cls, view: ClusterView, load: Floats) -> "_Carried":
        """Those of the brokers of *view*, whose bundles have *load*, (bundles, 4)."""
        owned, of_broker = np.flatnonzero(view.bundles.owned), np.zeros((len(view.brokers), 4))
        np.add.at(of_broker, view.bundles.broker[owned], load[owned])
        usage, limit = (np.nan_to_num(each.astype(np.float64)) for each in (view.brokers.usage, view.brokers.limit))
        in_percent: Bools = (limit == _PERCENT).all(axis=1)
        for resource, column in _BANDWIDTH:
            kbits = np.where(in_percent, 0.0, _KBIT * of_broker[:, column])
            usage[:, resource] = np.maximum(usage[:, resource], kbits)
        share = np.divide(usage, limit, out=np.zeros_like(usage), where=limit > 0)
        return cls(usage=share, limit=limit, in_percent=in_percent, load=of_broker)

    def amount_of(self, load: Floats, source: int) -> Floats:
        """(5,) what a bundle with *load*, (4,), takes of the usage of its broker *source*."""
        amount, whole = np.zeros(5), self.load[source]
        both = [load[columns].sum() / total for columns in _TRAFFIC if (total := whole[columns].sum()) > 0]
        amount[CPU] = self.usage[source, CPU] * max(both, default=0.0)
        for resource, column in _BANDWIDTH:
            if whole[column] > 0 and self.limit[source, resource] > 0:
                by_share = self.usage[source, resource] * load[column] / whole[column]
                in_kbits = _KBIT * load[column] / self.limit[source, resource]
                amount[resource] = by_share if self.in_percent[source] else in_kbits
        return amount

    def scale(self, source: int, destination: int) -> Floats:
        """(5,) how a share of *source* counts at *destination*; 1 where their limits cannot be compared."""
        ends = [source, destination]
        comparable = (self.limit[ends] > 0).all(axis=0) & ~self.in_percent[ends].any()
        scale: Floats = np.divide(self.limit[source], self.limit[destination], out=np.ones(5), where=comparable)
        return scale
