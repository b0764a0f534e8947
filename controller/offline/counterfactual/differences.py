"""In which intervals two replays decide differently, and what only one of them does."""

from dataclasses import dataclass

from controller.model.decision import Command
from controller.offline.counterfactual.replay import ReplayedDecision, ReplayedRun, moved


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentInterval:
    """An interval in which two replays do not do the same."""

    #: T, epoch ms.
    interval: int
    only_first: tuple[Command, ...]
    only_second: tuple[Command, ...]
    #: One of the two decisions is uncertain.
    uncertain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """All of them."""

    #: Intervals that both decided.
    intervals: int
    #: Moves and splits that both do, in the same interval.
    same: int
    different: tuple[DifferentInterval, ...]

    @property
    def only_first(self) -> int:
        """Moves and splits of the first alone."""
        return sum(len(each.only_first) for each in self.different)

    @property
    def only_second(self) -> int:
        """Moves and splits of the second alone."""
        return sum(len(each.only_second) for each in self.different)


def difference(first: ReplayedRun, second: ReplayedRun) -> Difference:
    """Compare the decisions of *first* and *second*, replays of one recording."""
    same, different = 0, []
    for one, other in zip(first.decisions, second.decisions, strict=True):
        found = _of_interval(one, other)
        same += len(one.commands) - len(found.only_first)
        if found.only_first or found.only_second:
            different.append(found)
    return Difference(intervals=len(first.decisions), same=same, different=tuple(different))


def _of_interval(one: ReplayedDecision, other: ReplayedDecision) -> DifferentInterval:
    ones, others = set(map(moved, one.commands)), set(map(moved, other.commands))
    return DifferentInterval(
        interval=one.interval,
        only_first=tuple(command for command in one.commands if moved(command) not in others),
        only_second=tuple(command for command in other.commands if moved(command) not in ones),
        uncertain=one.uncertain or other.uncertain,
    )
