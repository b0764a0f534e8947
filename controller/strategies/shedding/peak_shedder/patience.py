"""When to act: not at the first sight of something, not while brokers come and go, not again where it was of no use."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from controller.model.load import ClusterView, Floats
from controller.strategies.shedding.peak_shedder.memory import Absence, PeakHistory, Rest

#: In ``over``, in place of a broker's name: some broker is idle, so that the others are to give.
IDLE_BROKER: Final = ""
#: A broker gives once it was above its limit in some of so many last rounds.
HOLD_OF: Final = 3
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000
#: Brokers that came or went longer ago have nothing to do with those that do now.
_FORGOTTEN_MS: Final = 3_600_000
#: A broker that was away for so long is new.
_NEW_MS: Final = 4 * 3_600_000
#: Of so many brokers it is known that they were away, as many as a cluster can have; of those that went last.
MOST_AWAY: Final = 10_000
#: The next one goes within so many times the longest time between two.
_APART: Final = 2
#: After plans that were not worth it, so many rounds go by without one at most.
_LONGEST_REST: Final = 10
#: A rest ends where the highest utilisation has risen by this above the mean.
_WORSE: Final = 0.02


def with_roster(memory: PeakHistory, view: ClusterView) -> PeakHistory:
    """*memory* with the active brokers of *view*, and how far apart the rounds are in which brokers come or go.

    With other brokers, what moves promised no longer holds, and a plan that was of no use may be of use.
    """
    active, at = {*view.brokers.names, *view.missing}, view.as_of_ms
    now = tuple(sorted(active))
    if now == memory.brokers:
        return memory
    if not memory.brokers:
        return replace(memory, brokers=now)
    apart = at - memory.changed_ms
    recent = memory.changed_ms >= 0 and 0 <= apart <= _FORGOTTEN_MS
    away = _absences(memory, active, at)
    apart_ms = max(memory.apart_ms, apart) if recent else 0
    return replace(memory, brokers=now, changed_ms=at, apart_ms=apart_ms, away=away, promises={}, rest=Rest())


def _absences(memory: PeakHistory, active: Collection[str], at_ms: int) -> Mapping[str, Absence]:
    """Who is away, or was within the last day, after a round at *at_ms* in which other brokers are *active*."""
    found = {name: each for name, each in memory.away.items() if (each.back_ms < 0) == (name not in active)}
    found |= {name: Absence(gone_ms=at_ms) for name in memory.brokers if name not in active and name not in found}
    for name, each in memory.away.items():
        if each.back_ms < 0 and name in active:
            found[name] = replace(each, back_ms=at_ms)
    kept = [(name, each) for name, each in sorted(found.items()) if _counts(each, at_ms)]
    if len(kept) > MOST_AWAY:
        kept = sorted(sorted(kept, key=lambda each: -each[1].gone_ms)[:MOST_AWAY])
    return dict(kept)


def _counts(each: Absence, at_ms: int) -> bool:
    until = at_ms if each.back_ms < 0 else each.back_ms
    return 0 <= until - each.gone_ms < _NEW_MS and 0 <= at_ms - until < _DAY_MS


def just_away(memory: PeakHistory, view: ClusterView) -> Floats:
    """(n,) 1 for a broker that came back just now after a moment, less the longer it was away, and is back; else 0."""
    found = np.zeros(len(view.brokers))
    for name, each in memory.away.items():
        row = view.brokers.code_of.get(name)
        if row is not None and each.back_ms >= 0 and _counts(each, view.as_of_ms):
            away, back = (each.back_ms - each.gone_ms) / _NEW_MS, (view.as_of_ms - each.back_ms) / _DAY_MS
            found[row] = (1 - away) * (1 - back)
    return found


def unsettled_ms(memory: PeakHistory, at_ms: int, settle_minutes: float) -> int:
    """How long, from *at_ms* on, no more than urgent moves are made because brokers came or went; 0: it is not so."""
    if memory.changed_ms < 0 or settle_minutes <= 0:
        return 0
    wait = max(int(settle_minutes * _MINUTE_MS), min(_APART * memory.apart_ms, _FORGOTTEN_MS))
    return max(0, memory.changed_ms + wait - at_ms)


def unproven_ms(memory: PeakHistory, at_ms: int, settle_minutes: float) -> int:
    """How long, from *at_ms* on, no more than urgent moves are made because load jumped; 0: it is not so."""
    if memory.jumped_ms < 0:
        return 0
    return max(0, memory.jumped_ms + int(settle_minutes * _MINUTE_MS) - at_ms)


def with_round(memory: PeakHistory, over: Collection[str]) -> PeakHistory:
    """*memory* after a round in which the brokers *over* were above their limit."""
    kept = (1 << HOLD_OF) - 1
    found = {name: ((memory.over.get(name, 0) << 1) | (name in over)) & kept for name in {*memory.over, *over}}
    return replace(memory, over={name: bits for name, bits in sorted(found.items()) if bits})


def held(memory: PeakHistory, name: str, hold: int) -> bool:
    """Whether *name* was over its limit in *hold* of the last few rounds."""
    return memory.over.get(name, 0).bit_count() >= max(1, min(hold, HOLD_OF))


def is_resting(memory: PeakHistory, excess: float, over: int, movable: int) -> bool:
    """Whether no plan is made in this round.

    *excess*: how far the highest utilisation is above the mean; *over*: how many brokers are above their limit;
    *movable*: how many bundles may move.  Where any of them has risen since the rest began, a plan may be of use.
    """
    rest = memory.rest
    return rest.left > 0 and excess <= rest.excess + _WORSE and over <= rest.over and movable <= rest.movable


def after_rest(memory: PeakHistory) -> PeakHistory:
    """*memory* after a round without a plan."""
    rest = memory.rest
    return replace(memory, rest=replace(rest, left=rest.left - 1)) if rest.left else memory


def after_plan(memory: PeakHistory, excess: float, over: int, movable: int, *, moved: bool) -> PeakHistory:
    """*memory* after a plan: where nothing was worth it, longer and longer rests follow."""
    rounds = min(2 * memory.rest.rounds + 1, _LONGEST_REST)
    rest = Rest() if moved else Rest(left=rounds, rounds=rounds, excess=excess, over=over, movable=movable)
    return replace(memory, rest=rest)
