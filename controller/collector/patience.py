"""How long a silent broker may occupy a worker before another one is added.  Pure."""

from typing import Final

#: Seconds.  A busy collector may need the shortest time to notice the beginning of an answer.
_SHORTEST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 2.0
#: All brokers should be queried by this share of the remaining time, which leaves time for the last answers.
ASKED_BY: Final = 0.5


def patience(waiting: int, at_once: int, seconds: float) -> float:
    """The seconds for which a silent broker may occupy a worker.

    *waiting* brokers have to be queried within *seconds* by *at_once* workers.
    """
    return min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, seconds * at_once / max(1, waiting)))
