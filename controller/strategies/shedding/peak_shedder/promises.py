"""Looks at moves two rounds later: whether their destinations are as full as promised, and who owns the bundles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.model.load import UNOWNED, ClusterView, Floats
from controller.planning.problem import PlannedMove
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory, Proven

#: A move is looked at in this round after it was decided; one that is still under way, up to the second number.
_LOOKED_AT: Final = 2
_LAST: Final = 6
#: Parts by which the typical error moves towards that of a round, and what is left of it where nothing was looked at.
_MOVES: Final = 0.3
_STAYS: Final = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersNow:
    """The brokers of a round."""

    view: ClusterView
    #: (n,) utilisation of each one's fullest resource, and the mean of the scarcest one; no time to come counts.
    full: Floats
    mean: float

    def owner(self, bundle: str) -> str | None:
        """The broker that owns *bundle*, "" if none does; None where the bundle is not there, or is on its way."""
        row = self.view.bundles.code_of.get(bundle)
        if row is None or row in self.view.preallocated.bundle:
            return None
        code = int(self.view.bundles.broker[row])
        return "" if code == UNOWNED else self.view.brokers.names[code]

    def usage(self, broker: str) -> float | None:
        """The utilisation of *broker*; None where it has no data."""
        row = self.view.brokers.code_of.get(broker)
        return None if row is None else float(self.full[row])


def verified(memory: PeakHistory, now: BrokersNow, tolerated: float) -> PeakHistory:
    """*memory* with the promises that are due looked at; a destination may be above its promise by *tolerated*."""
    waiting: dict[str, MovePromise] = {}
    errors, broken, proven = dict[str, float](), list[str](), memory.proven
    for bundle, promise in memory.promises.items():
        promise = replace(promise, rounds=promise.rounds + 1)
        owner = now.owner(bundle)
        if promise.rounds < _LOOKED_AT or (owner is None and promise.rounds < _LAST):
            waiting[bundle] = promise
        elif owner == promise.destination:
            proven = replace(proven, verified=proven.verified + 1)
            seen, scale = now.usage(owner), now.mean / promise.mean if promise.mean > 0 else 1.0
            if seen is None:
                continue
            # What the whole cluster has more or less is no fault of the plan.
            errors[owner] = seen - promise.promised * scale
            if errors[owner] > tolerated:
                broken.append(bundle)
        elif owner not in (None, "", promise.source):
            proven = replace(proven, verified=proven.verified + 1, strayed=proven.strayed + 1)
            broken.append(bundle)
    proven = replace(proven, broken=proven.broken + len(broken), error=_error_after(proven, errors))
    return replace(memory, promises=waiting, proven=proven, broken=tuple(broken))


def _error_after(proven: Proven, errors: Mapping[str, float]) -> float:
    if not errors:
        return proven.error * _STAYS
    mean = sum(abs(error) for error in errors.values()) / len(errors)
    return proven.error + _MOVES * (mean - proven.error)


def promised(
    memory: PeakHistory, now: BrokersNow, moves: Sequence[tuple[str, PlannedMove]], after: Floats, gap: float
) -> PeakHistory:
    """*memory* with the promises of *moves*, by bundle; *after*: (n,) the brokers' utilisation after them all.

    Promises of earlier rounds about brokers of this plan are those of this plan from now on.
    """
    names, code_of = now.view.brokers.names, now.view.brokers.code_of
    earlier = {
        bundle: replace(promise, promised=float(after[code_of[promise.destination]]), mean=now.mean)
        if promise.destination in code_of
        else promise
        for bundle, promise in memory.promises.items()
    }
    made = {
        bundle: MovePromise(
            source=names[move.source],
            destination=names[move.destination],
            promised=float(after[move.destination]),
            mean=now.mean,
        )
        for bundle, move in moves
    }
    return replace(memory, promises={**earlier, **made}, proven=replace(memory.proven, gap=gap))
