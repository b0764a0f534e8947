"""Finds the strategy that is running now, and its current line.

A strategy of a user may never return, and only this names it then.
"""

import sys
from collections.abc import Iterator
from itertools import pairwise
from types import FrameType
from typing import Final

#: What asks strategies, filters among them.
_ASKING: Final = frozenset({"controller.cycle.checked", "controller.strategies.common.candidates"})


def running_strategy() -> str:
    """The strategy that a thread of this process is running, with its module and current line; "" if none."""
    return next(filter(None, map(_asked_in, sys._current_frames().values())), "")


def _asked_in(innermost: FrameType) -> str:
    stack = [*_outwards(innermost)]
    for called, caller in pairwise(stack):
        if _module(caller) in _ASKING and _module(called) not in _ASKING:
            own = next(frame for frame in stack if _module(frame) == _module(called))
            return f"{_name(called)} ({_module(own)}, line {own.f_lineno})"
    return ""


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _name(called: FrameType) -> str:
    """The class of the strategy whose method was *called*."""
    code = called.f_code
    strategy = called.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return code.co_qualname if strategy is None else type(strategy).__name__
