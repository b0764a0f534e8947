"""A monotonic clock."""

import time
from typing import Final

#: Linux's, which goes on while the machine sleeps; other systems' stands still then.
_CLOCK_ID: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def seconds_awake_or_not() -> float:
    """Seconds since some moment, the time in which the machine slept included where it has such a clock."""
    return time.clock_gettime(_CLOCK_ID)
