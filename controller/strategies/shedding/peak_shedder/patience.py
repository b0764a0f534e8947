"""When to act: not at the first sight of something, not while brokers come and go, not again where it was of no use."""

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from typing import Final

from controller.model.load import ClusterView
from controller.strategies.shedding.peak_shedder.memory import PeakHistory

#: In ``over``, in place of a broker's name: some broker is nearly idle, so that the others are to give.
IDLE_BROKER: Final = ""
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000
#: Brokers that came or went longer ago have nothing to do with those that do now.
_FORGOTTEN_MS: Final = 3_600_000
#: Of so many brokers it is known that they are gone, as many as a cluster can have; of those that went last.
MOST_GONE: Final = 10_000
#: The next one goes within so many times the longest time between two.
_APART: Final = 2
#: After plans that were not worth it, so many rounds go by without one at most.
_LONGEST_REST: Final = 10
#: A rest ends where the highest utilisation has risen by this.
_WORSE: Final = 0.02


def with_roster(memory: PeakHistory, view: ClusterView) -> PeakHistory:
    """*memory* with the active brokers of *view*, and how far apart the rounds are in which brokers come or go.

    With other brokers, what moves promised no longer holds, and a plan that was of no use may be of use.  What was to
    be undone is forgotten.
    """
    active, at = {*view.brokers.names, *view.missing}, view.as_of_ms
    now = tuple(sorted(active))
    if now == memory.brokers:
        return memory
    if not memory.brokers:
        return replace(memory, brokers=now)
    apart = at - memory.changed_ms
    recent = memory.changed_ms >= 0 and 0 <= apart <= _FORGOTTEN_MS
    apart_ms = max(memory.apart_ms, apart) if recent else 0
    helped = {name: since for name, since in memory.helped.items() if name in active}
    memory = replace(memory, promises={}, undo={}, rest=0, rested=0, plan=(), helped=helped, relieved={})
    memory = _with_returns(memory, active, at)
    return replace(memory, brokers=now, changed_ms=at, apart_ms=apart_ms)


def _with_returns(memory: PeakHistory, now: Set[str], at_ms: int) -> PeakHistory:
    """*memory*, which still has the brokers of the round before, with those of *now* that are back, and those gone."""
    away = {name: since for name, since in memory.gone.items() if 0 <= at_ms - since <= _FORGOTTEN_MS}
    came = {name for name in away if name in now}
    gone = {**away, **{name: at_ms for name in memory.brokers if name not in now}}
    still = [(name, since) for name, since in sorted(gone.items()) if name not in now]
    if len(still) > MOST_GONE:
        still = sorted(sorted(still, key=lambda each: -each[1])[:MOST_GONE])
    back = {name: since for name, since in _kept(memory.returned, at_ms).items() if name in now}
    return replace(
        memory,
        gone=dict(still),
        returned=dict(sorted({**back, **dict.fromkeys(came, at_ms)}.items())),
    )


def returned(memory: PeakHistory, at_ms: int) -> Collection[str]:
    """The brokers that came back within the last day, an hour after they had gone at most."""
    return _of_a_day(memory.returned, at_ms)


def unsettled_ms(memory: PeakHistory, at_ms: int, settle_minutes: float) -> int:
    """How long, from *at_ms* on, no more than urgent moves are made because brokers came or went; 0: it is not so."""
    if memory.changed_ms < 0 or settle_minutes <= 0:
        return 0
    wait = max(int(settle_minutes * _MINUTE_MS), min(_APART * memory.apart_ms, _FORGOTTEN_MS))
    return max(0, memory.changed_ms + wait - at_ms)


def came_or_went(memory: PeakHistory, at_ms: int) -> bool:
    """Whether brokers came or went within the last hour."""
    return memory.changed_ms >= 0 and at_ms - memory.changed_ms <= _FORGOTTEN_MS


def unproven_ms(memory: PeakHistory, at_ms: int, settle_minutes: float) -> int:
    """How long, from *at_ms* on, no more than urgent moves are made because load jumped; 0: it is not so."""
    if memory.jumped_ms < 0:
        return 0
    return max(0, memory.jumped_ms + int(settle_minutes * _MINUTE_MS) - at_ms)


def with_splits(memory: PeakHistory, view: ClusterView) -> PeakHistory:
    """*memory* after a round in which the bundles of ``view.splitting`` are split."""
    return replace(memory, splits=(memory.splits << 1 | bool(view.splitting)) & 0b11)


def with_help(memory: PeakHistory, at_ms: int, brokers: Collection[str]) -> PeakHistory:
    """*memory* after a round in which *brokers* are to get bundles by urgent moves."""
    return replace(memory, helped=_with(memory.helped, at_ms, brokers))


def helpers(memory: PeakHistory, at_ms: int) -> Collection[str]:
    """The brokers that were to get bundles by urgent moves within the last day."""
    return _of_a_day(memory.helped, at_ms)


def with_relief(memory: PeakHistory, at_ms: int, brokers: Collection[str]) -> PeakHistory:
    """*memory* after a round in which *brokers* are to give bundles by urgent moves, shortly after load jumped."""
    return replace(memory, relieved=_with(memory.relieved, at_ms, brokers))


def relieved(memory: PeakHistory, at_ms: int) -> Collection[str]:
    """The brokers that were to give bundles by urgent moves after load jumped, within the last day."""
    return _of_a_day(memory.relieved, at_ms)


def _with(since: Mapping[str, int], at_ms: int, brokers: Collection[str]) -> Mapping[str, int]:
    return dict(sorted({**_kept(since, at_ms), **dict.fromkeys(brokers, at_ms)}.items()))


def _kept(since: Mapping[str, int], at_ms: int) -> Mapping[str, int]:
    return {name: since[name] for name in _of_a_day(since, at_ms)}


def _of_a_day(since: Mapping[str, int], at_ms: int) -> Collection[str]:
    return [name for name, then in since.items() if 0 <= at_ms - then < _DAY_MS]


def with_round(memory: PeakHistory, over: Collection[str], of: int) -> PeakHistory:
    """*memory* after a round in which the brokers *over* were above their limit; the last *of* rounds are kept."""
    kept = (1 << max(of, 1)) - 1
    found = {name: ((memory.over.get(name, 0) << 1) | (name in over)) & kept for name in {*memory.over, *over}}
    return replace(memory, over={name: bits for name, bits in sorted(found.items()) if bits})


def held(memory: PeakHistory, name: str, hold: int, of: int) -> bool:
    """Whether *name* was over its limit in *hold* of the last *of* rounds."""
    return memory.over.get(name, 0).bit_count() >= max(1, min(hold, of))


def is_resting(memory: PeakHistory, peak: float) -> bool:
    """Whether no plan is made in this round; *peak*: the highest utilisation."""
    return memory.rest > 0 and peak <= memory.rested_at + _WORSE


def after_rest(memory: PeakHistory) -> PeakHistory:
    """*memory* after a round without a plan."""
    return replace(memory, rest=max(0, memory.rest - 1))


def after_plan(memory: PeakHistory, peak: float, *, moved: bool) -> PeakHistory:
    """*memory* after a plan: where nothing was worth it, longer and longer rests follow."""
    if moved:
        return replace(memory, rest=0, rested=0, rested_at=0.0)
    rest = min(2 * memory.rested + 1, _LONGEST_REST)
    return replace(memory, rest=rest, rested=rest, rested_at=peak)
