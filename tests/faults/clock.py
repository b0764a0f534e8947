"""Waiting, and what time it is."""

import time
from collections.abc import Callable

_POLL_SECONDS = 0.1


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def eventually(condition: Callable[[], bool], what: str, timeout_seconds: float = 180.0) -> None:
    """Wait until *condition* holds; fails, saying *what*, where it takes too long."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, f"for {timeout_seconds:g} s in vain: {what}"
        time.sleep(_POLL_SECONDS)
