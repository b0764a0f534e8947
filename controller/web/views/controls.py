"""Controls and their history in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.controls import ExcludedName, OperatorControls, Pause
from controller.web.store.values import ControlEvent, LatestState
from controller.web.views.bridge import mode_word
from controller.web.views.formats import clock
from controller.web.views.now import Heading

#: Each mode and what it does.
MODES: Final[Mapping[str, str]] = {
    "observe": "Decides and explains. Issues no command.",
    "dry_run": "Issues commands that change nothing.",
    "approve": "Issues what people approve.",
    "active": "Issues what it decides, within the budgets.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLine:
    """A pause that stands."""

    by: str
    reason: str
    at_ms: int
    #: "until 15:00", or "until a person resumes".
    until: str


def heading(state: LatestState | None, now_ms: int) -> Heading:
    """What is in force, in one sentence."""
    if state is None:
        return Heading(title="No controls are known yet", text="They come with the first summary of an interval.")
    controls = state.controls
    mode = mode_word(controls.mode)
    by = f", set by {controls.by}" if controls.by and not controls.paused else ""
    halted = "paused" if controls.paused else ""
    if state.breaker.tripped_at is not None:
        halted = f"stopped by its breaker since {clock(state.breaker.tripped_at, now_ms)}"
    title = f"The mode is {mode}{f', and it is {halted}' if halted else ''}"
    text = f"As of {clock(state.interval, now_ms)}{by}. What people set has priority over the settings."
    return Heading(title=title, text=text)


def excluded(controls: OperatorControls | None, state: LatestState | None) -> Sequence[ExcludedName]:
    """What people excluded; None: the controls are not known, so what the last decision was made with, by name."""
    if controls is not None:
        return controls.excluded
    names = () if state is None else state.controls.excluded
    return [ExcludedName(name=name, by="", reason="", at_ms=0) for name in names]


def pauses(standing: Sequence[Pause] | None, now_ms: int) -> tuple[PauseLine, ...]:
    """All pauses that stand, the oldest first; None: they are not known."""
    return tuple(
        PauseLine(
            by=pause.by,
            reason=pause.reason,
            at_ms=pause.at_ms,
            until=f"until {clock(pause.until_ms, now_ms)}" if pause.until_ms else "until a person resumes",
        )
        for pause in standing or ()
    )


def history_title(events: Sequence[ControlEvent], now_ms: int) -> str:
    """The last thing that somebody did."""
    if not events:
        return "Nobody has used the controls yet"
    last = events[0]
    return f"Last: {last.action} by {last.by}, {clock(last.at_ms, now_ms)}"
