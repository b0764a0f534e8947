"""Waiting for something to come true, and trying again what may succeed the next time.

Where only the time counts, and not the attempts, a ``Deadline`` is enough.
"""

import time
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import tenacity

T = TypeVar("T")
Sleep: TypeAlias = Callable[[float], None]


def wait_for(look: Callable[[], T], seconds: float, *, every: float, sleep: Sleep = time.sleep) -> T:
    """What *look* returns, once that is true; it is called again *every* so many seconds.

    Raises TimeoutError when *seconds* are over, and what *look* raises.
    """
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_not_result(bool),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_fixed(every),
        sleep=sleep,
    )
    try:
        return attempts(look)
    except tenacity.RetryError:
        raise TimeoutError(f"not done within {seconds:g} s") from None


def retry(
    call: Callable[[], T],
    seconds: float,
    *,
    again_after: Callable[[BaseException], bool],
    every: float,
    sleep: Sleep = time.sleep,
) -> T:
    """What *call* returns; it is called again while it raises what *again_after* is true of.

    Raises the last error when *seconds* are over, and every other error at once.
    """
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(again_after),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_fixed(every),
        sleep=sleep,
        reraise=True,
    )
    return attempts(call)
