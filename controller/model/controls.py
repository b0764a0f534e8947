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
