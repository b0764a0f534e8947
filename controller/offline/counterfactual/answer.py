"""The question of ``trimtab what-if``, from the recording to its answer; no printing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from controller.model.decision import Command
from controller.model.load import CPU, RESOURCE_WORDS
from controller.offline.counterfactual.replay import ReplayedDecision, ReplayedRun, moved, replay
from controller.offline.counterfactual.replay_source import ReplaySource
from controller.offline.counterfactual.reproduction import (
    Reproduction,
    reproduction_of_journal,
    reproduction_of_moves,
)
from controller.offline.counterfactual.survey import ReplaySpan, Survey, survey
from controller.offline.scenarios.figures import figures_of
from controller.offline.scenarios.simulate import SimulatedRun
from controller.settings.scenario_parts import Burst, HotTopics, Lag


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
        interval = _of_interval(one, other)
        same += len(one.commands) - len(interval.only_first)
        if interval.only_first or interval.only_second:
            different.append(interval)
    return Difference(intervals=len(first.decisions), same=same, different=tuple(different))


def _of_interval(one: ReplayedDecision, other: ReplayedDecision) -> DifferentInterval:
    ones, others = set(map(moved, one.commands)), set(map(moved, other.commands))
    return DifferentInterval(
        interval=one.interval,
        only_first=tuple(command for command in one.commands if moved(command) not in others),
        only_second=tuple(command for command in other.commands if moved(command) not in ones),
        uncertain=one.uncertain or other.uncertain,
    )


#: The replay with the recorded settings, beside those of the strategies; no strategy has this name.
_RECORDED = "(recorded)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingTerms:
    """FigureTerms of a recording."""

    intervals: int
    period_seconds: int
    limit_percent: float
    balanced_percent: float = 20.0
    bursts: tuple[Burst, ...] = ()
    hot_topics: tuple[HotTopics, ...] = ()
    lags: tuple[Lag, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counterfactual:
    """What happened, and what would have happened."""

    surveyed: Survey
    #: The limit of usage.
    limit_percent: float
    #: Its run and its figures.
    happened_run: SimulatedRun
    happened: Mapping[str, float]
    #: None: the settings of the recording are not known.
    reproduction: Reproduction | None
    #: Strategy -> its replay, and its figures.
    runs: Mapping[str, ReplayedRun]
    figures: Mapping[str, Mapping[str, float]]
    difference: Difference | None
    notes: tuple[str, ...]


def what_would_have_happened(
    source: ReplaySource,
    strategies: Sequence[str],
    span: ReplaySpan,
    *,
    limit_percent: float = 85.0,
    compared: tuple[str, str] | None = None,
    reproduce: bool = True,
    done: Callable[[int], None] = lambda _: None,
) -> Counterfactual:
    """Replay the recording with each of *strategies*, and, if *reproduce*, with the settings that it was made with.

    *compared*: two of *strategies*, whose decisions are compared one by one.  *done* takes the number of intervals.
    """
    # All at once, so that a wrong option of the last one is reported before the recording is read.
    policies = {strategy: source.policy(strategy) for strategy in strategies}
    if reproduce and source.known:
        policies[_RECORDED] = source.policy(as_recorded=True)
    surveyed = survey(source.log, span)
    replayed = replay(source.log, span, surveyed, policies, done)
    terms = RecordingTerms(
        intervals=len(surveyed.intervals), period_seconds=surveyed.period_ms // 1000, limit_percent=limit_percent
    )
    runs = {name: run for name, run in replayed.runs.items() if name != _RECORDED}
    reproduction = None
    if _RECORDED in replayed.runs:
        again = replayed.runs[_RECORDED]
        reproduction = (
            reproduction_of_journal(surveyed.recorded, again)
            if surveyed.commands.known
            else reproduction_of_moves(replayed.happened, again.run, surveyed.intervals)
        )
    return Counterfactual(
        surveyed=surveyed,
        limit_percent=limit_percent,
        happened_run=replayed.happened,
        happened=figures_of(terms, replayed.happened),
        reproduction=reproduction,
        runs=runs,
        figures={name: figures_of(terms, run.run) for name, run in runs.items()},
        difference=None if compared is None else difference(*(runs[name] for name in compared)),
        notes=tuple(_notes(source, surveyed)),
    )


def _notes(source: ReplaySource, surveyed: Survey) -> list[str]:
    n, notes = len(surveyed.intervals), []
    if not source.known:
        notes.append(
            "the settings of the recorded controller are not known (--conf names them): what a strategy does not set"
            " has its default"
        )
    if not any(fit.follows_load for fit in surveyed.model.fits if fit.resource == RESOURCE_WORDS[CPU]):
        notes.append(
            "how CPU follows load is not known here, so it is the recorded one in every replay: moves can be compared,"
            " but figures of usage and thrash say little"
        )
    if not surveyed.commands.known:
        notes.append(
            "the recording has no journal: every move from a broker that was still there counts as one of the recorded"
            " load balancer, and none of them happens in the replays"
        )
    quiet = {mode: number for mode, number in surveyed.modes.items() if mode != "active"}
    if quiet:
        spans = ", ".join(f"{number} in mode {mode}" for mode, number in sorted(quiet.items()))
        notes.append(
            f"of {n} recorded intervals {spans}: there, too, the replays of strategies are active and wait for nobody;"
            " what is reproduced has the recorded mode and approvals"
        )
    if surveyed.commands.known and surveyed.decided < n:
        notes.append(
            f"the recorded controller decided {surveyed.decided} of {n} intervals; the replays decide the same ones"
        )
    return notes
