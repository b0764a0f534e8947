"""Since when a mode or a pause of the settings holds: they do not say, so a process notes what it sees."""

import math
from typing import NamedTuple


class Starts(NamedTuple):
    """T of the first interval in a row with the mode, and with the pause, epoch ms; 0: it is not paused."""

    mode: int
    paused: int


class FirstSeen:
    """Follows the intervals that one process decides."""

    def __init__(self) -> None:
        self._mode, self._starts = "", Starts(0, 0)

    def since(self, interval: int, *, mode: str, paused: bool) -> Starts:
        """When *mode* and the pause began, as of *interval*, epoch ms."""
        starts = self._starts
        self._starts = Starts(
            mode=starts.mode if mode == self._mode else interval, paused=(starts.paused or interval) if paused else 0
        )
        self._mode = mode
        return self._starts


def seconds(at_ms: int) -> float:
    """*at_ms* as seconds; NaN for 0."""
    return at_ms / 1000 if at_ms else math.nan
