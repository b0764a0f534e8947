"""Runs a command of the operator: a list of arguments, without a shell, and with a time limit."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from controller.adapters.network.deadline import Deadline
from controller.adapters.process.tied_child import foreign, tied_child

_POLL_SECONDS: Final = 0.2
_MEANWHILE_SECONDS: Final = 5.0
_STANDARD_ERROR: Final = 2


def run_hook(command: Sequence[str], more: Mapping[str, str], seconds: float, meanwhile: Callable[[], object]) -> str:
    """Run *command* with *more* in its environment; why it failed, "" where it ended with 0.

    What it prints goes to standard error.  It reads nothing, ends after *seconds* with all that it has started, and
    with this process.  *meanwhile* is called every few seconds.
    """
    deadline, called = Deadline.after(seconds), time.monotonic()
    # Whoever reads this command's own output gets its answer alone.
    with (
        os.fdopen(os.dup(_STANDARD_ERROR), "wb") as output,
        tied_child(
            foreign(command), stdout=output, stderr=output, environment={**os.environ, **more}, new_session=True
        ) as process,
    ):
        while True:
            with suppress(subprocess.TimeoutExpired):
                return _why(process.wait(_POLL_SECONDS))
            if deadline.passed:
                return f"took longer than {seconds:g} s, and was ended"
            if time.monotonic() - called >= _MEANWHILE_SECONDS:
                meanwhile()
                called = time.monotonic()


def _why(code: int) -> str:
    if code == 0:
        return ""
    return f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
