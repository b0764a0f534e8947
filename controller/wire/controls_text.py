"""Pauses and changes of the controls as people read them."""

from collections.abc import Sequence

from controller.model.controls import ControlChange, Pause
from controller.wire.answers.status import ControlChangeAnswer, PauseAnswer
from controller.wire.readable import utc


def pause_text(pause: Pause | PauseAnswer) -> str:
    """Who paused, until when, and why."""
    until = f" until {utc(pause.until_ms)}" if pause.until_ms else ""
    return f"{pause.by}{until}{f': {pause.reason}' if pause.reason else ''}"


def pauses_text(pauses: Sequence[Pause | PauseAnswer]) -> str:
    """The same of all *pauses*; "" without one."""
    return "; ".join(map(pause_text, pauses))


def change_text(change: ControlChange | ControlChangeAnswer) -> str:
    """Who did what, and why; without the time."""
    detail = f" {change.detail}" if change.detail else ""
    return f"{change.action}{detail}, by {change.by}{f': {change.reason}' if change.reason else ''}"
