"""Controls: what the operator and the age of the data allow.  An input of every decision, journalled with it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The controls that an interval was decided with."""

    #: "active" moves load, "dry_run" issues commands that change nothing, "observe" issues none.
    mode: str
    paused: bool = False
    #: The interval is too old to act on; the memory is still updated.
    stale: bool = False
    #: Why an operator set the mode or the pause, who, and when (epoch ms, wall clock); "" and 0 if nobody did.
    reason: str = ""
    by: str = ""
    since_ms: int = 0
    #: Time of the last `trimtab resume`, epoch ms, wall clock; 0: never.  A later resume closes the breaker.
    resumed_ms: int = 0
    #: Why the maintenance windows forbid commands at this T; "" if they allow them.
    maintenance: str = ""
    #: Why the operator's controls could not be read; "" if they were.  No commands are issued until they are read.
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One setting that an operator made."""

    value: str
    reason: str
    by: str
    #: Epoch ms, wall clock.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorControls:
    """What operators set with `trimtab pause`, `resume` and `mode`.  It is stored, so it survives every restart.

    None: no operator has set it, so the settings in trimtab.toml apply.
    """

    #: "active", "dry_run" or "observe".
    mode: Choice | None = None
    #: "paused" or "running".
    pause: Choice | None = None
    #: Time of the last `trimtab resume`, epoch ms, wall clock; 0: never.
    resumed_ms: int = 0

    def in_force(self, *, mode: str, paused: bool) -> tuple[str, bool, Choice | None]:
        """The mode and the pause that apply, and the operator's choice that explains them.

        *mode* and *paused* come from the settings; they apply where no operator has set anything.
        """
        is_paused = paused if self.pause is None else self.pause.value == PAUSED
        return (
            mode if self.mode is None else self.mode.value,
            is_paused,
            self.pause if is_paused and self.pause is not None else self.mode,
        )


PAUSED = "paused"
RUNNING = "running"
