"""The controls from the settings: mode, pause, staleness and maintenance windows.  Those that an operator set win."""

from dataclasses import dataclass

from controller.settings.guardrails import maintenance_of
from controller.settings.maintenance import Maintenance
from controller.settings.trimtab_toml import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingControls:
    """The controls in the settings."""

    #: One of MODES in controller/model/controls.py.
    mode: str
    paused: bool
    #: An interval that ended longer ago than this is too old to act on.
    stale_after_ms: int
    maintenance: Maintenance


def standing_controls(settings: Settings) -> StandingControls:
    """The controls of *settings*."""
    decisions = settings.decisions
    return StandingControls(
        mode=decisions.mode,
        paused=decisions.paused,
        stale_after_ms=settings.intervals.stale_after_seconds * 1000,
        maintenance=maintenance_of(settings.guardrails),
    )
