"""Compares strategies on a recording: what happened, and what each would have made of the same load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.offline.counterfactual.answer import what_would_have_happened
from controller.offline.counterfactual.opened import OpenedRecording
from controller.offline.counterfactual.survey import ReplaySpan
from controller.offline.scenarios.compare import Comparison, FigureOverSeeds
from controller.wire.readable import utc

#: Stands beside the strategies; no strategy has this name.
HAPPENED: Final = "what happened"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOnRecording:
    """Strategies on one recording."""

    title: str
    intervals: int
    #: With one run each: there is no chance in a replay.
    compared: Comparison
    notes: tuple[str, ...]


def compare_on_recording(
    opened: OpenedRecording, strategies: Sequence[str], done: Callable[[int], None] = lambda _: None
) -> ComparedOnRecording:
    """Replay what was *opened* with each of *strategies*, beside what happened; *done* takes the number of intervals.

    Raises SettingsError where a strategy cannot be used, TrimtabError where there is nothing to replay.
    """
    found = what_would_have_happened(opened, strategies, ReplaySpan(), reproduce=False, done=done)
    intervals = found.surveyed.intervals
    span = f"{utc(intervals[0])} to {utc(intervals[-1])}"
    return ComparedOnRecording(
        title=f"Recorded load of cluster {opened.log.cluster}, {span}",
        intervals=len(intervals),
        compared=Comparison(
            seeds=(opened.settings.decisions.seed,),
            figures={name: _as_one_run(of) for name, of in {HAPPENED: found.happened, **found.figures}.items()},
        ),
        notes=found.notes,
    )


def _as_one_run(figures: Mapping[str, float]) -> dict[str, FigureOverSeeds]:
    return {name: FigureOverSeeds(values=(value,)) for name, value in figures.items()}
