"""Runs an incident, or any recording, as a scenario: its load is the world, and expectations are judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from controller.offline.counterfactual.answer import RecordingTerms
from controller.offline.counterfactual.opened import OpenedRecording
from controller.offline.counterfactual.replay import replay
from controller.offline.counterfactual.survey import ReplaySpan, survey
from controller.offline.scenarios.expectations import JudgedExpectation, JudgedScenario
from controller.offline.scenarios.figures import figures_of, value_of
from controller.settings.expectation import Expectation

#: Usage above it is too much, as in scenarios that do not say otherwise.
_LIMIT_PERCENT: Final = 85.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedIncident:
    """An incident that was run."""

    judged: JudgedScenario
    intervals: int
    brokers: int
    bundles: int


def judge_recording(
    opened: OpenedRecording,
    strategy: str,
    expected: Sequence[Expectation],
    *,
    done: Callable[[int], None] = lambda _: None,
) -> JudgedIncident:
    """Run what was *opened* with *strategy*, "" for the recorded settings, and judge what is *expected*.

    There is no chance in it, so there is one run.  SettingsError where the strategy cannot be used.
    """
    policy, span = opened.policy(strategy), ReplaySpan()
    surveyed = survey(opened.log, span)
    run = replay(opened.log, span, surveyed, {strategy: policy}, done).runs[strategy].run
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
