"""Compares strategies on a recording: what happened, and what each would have done with the same load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.decision import Command, Decision
from controller.offline.counterfactual.answer import Counterfactual, RecordingTerms, what_would_have_happened
from controller.offline.counterfactual.replay import ReplayedRun, replay
from controller.offline.counterfactual.replay_source import ReplaySource
from controller.offline.counterfactual.survey import ReplaySpan, Survey, survey
from controller.offline.scenarios.compare import Comparison, FigureOverSeeds
from controller.offline.scenarios.expectations import JudgedExpectation, JudgedScenario
from controller.offline.scenarios.figures import figures_of, value_of
from controller.offline.scenarios.report.page import Report, ReportedRecording
from controller.settings.expectation import Expectation
from controller.wire.readable import counted, utc

#: The limit of usage, as in scenarios that do not set another.
_LIMIT_PERCENT: Final = 85.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedIncident:
    """An incident that was run."""

    judged: JudgedScenario
    intervals: int
    brokers: int
    bundles: int


def judge_recording(
    source: ReplaySource,
    strategy: str,
    expected: Sequence[Expectation],
    *,
    done: Callable[[int], None] = lambda _: None,
) -> JudgedIncident:
    """Run what was *source* with *strategy*, "" for the recorded settings, and judge what is *expected*.

    There is no chance in it, so there is one run.  SettingsError where the strategy cannot be used.
    """
    policy, span = source.policy(strategy), ReplaySpan()
    surveyed = survey(source.log, span)
    run = replay(source.log, span, surveyed, {strategy: policy}, done).runs[strategy].run
    terms = RecordingTerms(
        intervals=len(surveyed.intervals), period_seconds=surveyed.period_ms // 1000, limit_percent=_LIMIT_PERCENT
    )
    judged = tuple(
        JudgedExpectation(expectation=each, of_cure=False, without_cure=(value_of(each, terms, run),), with_cure=())
        for each in expected
    )
    figures: dict[str, tuple[float, ...]] = {name: (value,) for name, value in figures_of(terms, run).items()}
    return JudgedIncident(
        judged=JudgedScenario(seeds=(policy.seed,), expectations=judged, without_cure=figures, with_cure={}),
        intervals=len(surveyed.intervals),
        brokers=len(surveyed.brokers),
        bundles=surveyed.bundles,
    )


#: The column of what was recorded; no strategy has this name.
HAPPENED: Final = "what happened"
_UNCOMMANDED: Final = "no command moved it: a lookup did, a split, or somebody by hand"
_NOT_DECIDED: Final = "the recorded controller did not decide this interval, so the replay does not"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedOnRecording:
    """Strategies on one recording."""

    title: str
    intervals: int
    #: With one run each: there is no chance in a replay.
    compared: Comparison
    notes: tuple[str, ...]
    result: Counterfactual


def compare_on_recording(
    source: ReplaySource,
    strategies: Sequence[str],
    done: Callable[[int], None] = lambda _: None,
) -> ComparedOnRecording:
    """Replay what was *source* with each of *strategies*, beside what happened; *done* takes the number of intervals.

    Raises SettingsError where a strategy cannot be used, TrimtabError where there is nothing to replay.
    """
    result = what_would_have_happened(source, strategies, ReplaySpan(), reproduce=False, done=done)
    intervals = result.surveyed.intervals
    span = f"{utc(intervals[0])} to {utc(intervals[-1])}"
    return ComparedOnRecording(
        title=f"Recorded load of cluster {source.log.cluster}, {span}",
        intervals=len(intervals),
        compared=Comparison(
            seeds=(source.settings.decisions.seed,),
            figures={name: _as_one_run(of) for name, of in {HAPPENED: result.happened, **result.figures}.items()},
        ),
        notes=result.notes,
        result=result,
    )


def add_recording(report: Report, name: str, compared: ComparedOnRecording) -> None:
    """Show in *report* what happened and every replay of the recording *name*."""
    result, times = compared.result, compared.result.surveyed.intervals
    report.take(HAPPENED, result.happened_run, _recorded_decisions(result.surveyed), _UNCOMMANDED)
    for strategy, run in result.runs.items():
        report.take(strategy, run.run, _replayed_decisions(times, run), _UNCOMMANDED)
    reported = ReportedRecording(
        title=compared.title,
        text=" ".join(f"Note: {note}." for note in compared.notes),
        period_seconds=result.surveyed.period_ms // 1000,
        limit_percent=result.limit_percent,
        times=times,
    )
    report.add(name, reported, compared.compared)


def _recorded_decisions(surveyed: Survey) -> list[Decision]:
    """What was decided in each interval, as far as it was commanded."""
    issued: dict[int, list[Command]] = {}
    for command in surveyed.recorded:
        issued.setdefault(command.interval, []).append(command)
    return [
        Decision(interval=each, commands=tuple(issued.get(each, ())), summary=_summary(len(issued.get(each, ()))))
        for each in surveyed.intervals
    ]


def _replayed_decisions(times: Sequence[int], run: ReplayedRun) -> list[Decision]:
    made = {each.interval: each for each in run.decisions}
    return [
        Decision(interval=each, commands=made[each].commands, verdicts=made[each].verdicts, summary=made[each].summary)
        if each in made
        else Decision(interval=each, summary=_NOT_DECIDED)
        for each in times
    ]


def _summary(commands: int) -> str:
    return counted(commands, "command") if commands else "no command"


def _as_one_run(figures: Mapping[str, float]) -> dict[str, FigureOverSeeds]:
    return {name: FigureOverSeeds(values=(value,)) for name, value in figures.items()}
