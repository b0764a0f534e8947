"""Waiting, and what time it is."""

import time
from collections.abc import Callable

from controller.adapters.network.waiting import wait_for

_POLL_SECONDS = 0.1


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def eventually(
    condition: Callable[[], bool], what: str, timeout_seconds: float = 180.0, *, every: float = _POLL_SECONDS
) -> None:
    """Wait until *condition* holds, and look *every* so many seconds; fails, saying *what*, where it takes too long."""
    try:
        wait_for(condition, timeout_seconds, every=every)
    except TimeoutError as error:
        raise AssertionError(f"for {timeout_seconds:g} s in vain: {what}") from error
