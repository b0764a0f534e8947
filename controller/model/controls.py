"""What an operator, and the age of the data, allow; an input of every decision, journalled with it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The switches as they stood when an interval was decided."""

    #: "active" moves load, "dry_run" issues commands that change nothing, "observe" issues none.
    mode: str
    paused: bool = False
    #: The interval was decided too long after its end to act on it; memory still moves on.
    stale: bool = False
    #: Why a person set mode or pause, who, and when (epoch ms, wall clock); "" and 0 where nobody has.
    reason: str = ""
    by: str = ""
    since_ms: int = 0
    #: When a person last resumed, epoch ms, wall clock; 0: never.  A later one closes the breaker.
    resumed_ms: int = 0
    #: Why maintenance windows forbid to issue anything at this T; "" where they allow it.
    maintenance: str = ""
    #: Why it is not known what a person has set; "" where it is.  Nothing is issued until it is known.
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing that a person chose."""

    value: str
    reason: str
    by: str
    #: Epoch ms, wall clock.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorControls:
    """What persons have set with `trimtab pause`, `resume`, `mode`; it outlives every process.

    None: nobody has chosen, so the settings hold.
    """

    #: "active", "dry_run" or "observe".
    mode: Choice | None = None
    #: "paused" or "running".
    pause: Choice | None = None
    #: When somebody resumed last, epoch ms, wall clock; 0: never.
    resumed_ms: int = 0

    def in_force(self, *, mode: str, paused: bool) -> tuple[str, bool, Choice | None]:
        """Mode, whether it is paused, and the choice that shows why; *mode* and *paused* hold where nobody chose."""
        is_paused = paused if self.pause is None else self.pause.value == PAUSED
        return (
            mode if self.mode is None else self.mode.value,
            is_paused,
            self.pause if is_paused and self.pause is not None else self.mode,
        )


PAUSED = "paused"
RUNNING = "running"
