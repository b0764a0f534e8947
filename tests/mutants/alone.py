"""Runs one try in a process of its own, and says how it ended.  Limits tell one that never ends from one that is slow.

What a try may use is processor time: that is the same however much else the machine does.  A generous limit of time
stands behind it, for a try that only waits.
"""

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

CAUGHT, SURVIVED = "caught", "survived"
BUSY_FOR_EVER, WAITS_FOR_EVER = "caught, by the limit of processor time", "caught, by the time limit: it only waits"
_ENDED_BY: Final = {-signal.SIGPROF: BUSY_FOR_EVER, -signal.SIGALRM: WAITS_FOR_EVER, 0: SURVIVED}
_CONTEXT: Final = get_context("fork")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a try may take from now on, in seconds."""

    #: Of processor time, of all its threads together.
    busy: float
    #: Of the clock.
    waits: float

    def apply(self) -> None:
        """Have this process end when it has taken more; what it took before does not count.

        A program that is executed in its place keeps the limits.  A fork has none.
        """
        signal.setitimer(signal.ITIMER_PROF, self.busy)
        signal.setitimer(signal.ITIMER_REAL, self.waits)


def alone(
    run: Callable[[], object], limits: Limits | None = None, *, folder: Path | None = None, log: str = os.devnull
) -> str:
    """Run it in a fork with a temporary folder of its own, within *limits*; what came of it."""
    # What a killed process was writing may appear while the folder is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:

        def work() -> None:
            os.setsid()
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = temporary
            os.chdir(folder or Path.cwd())
            for stream in (1, 2):
                os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
            if limits is not None:
                limits.apply()
            run()
            os._exit(0)

        process = _CONTEXT.Process(target=work)
        process.start()
        process.join()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # type: ignore[arg-type]
        return _ENDED_BY.get(process.exitcode or 0, CAUGHT)
