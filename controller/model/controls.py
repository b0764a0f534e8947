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
