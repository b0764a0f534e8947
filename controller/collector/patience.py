"""How long a silent broker is waited for before others are asked beside it, so that all are asked in time.  Pure."""

from typing import Final

#: Seconds.  The least is what a busy collector may need to see that an answer has begun.
_LEAST: Final = 0.2
_MOST: Final = 2.0
#: By this share of the time that is left all brokers are to be asked.  The rest is for the answers of the last ones.
ASKED_BY: Final = 0.5


def patience(waiting: int, at_once: int, seconds: float) -> float:
    """For so many seconds a silent broker keeps others from being asked.

    *waiting* brokers are still to be asked within *seconds*, *at_once* so many while all of them are silent.
    """
    return min(_MOST, max(_LEAST, seconds * at_once / max(1, waiting)))
