"""trimtab's own commands as processes, each with a log of its own: as they run beside a cluster."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from controller.model.errors import TrimtabError

_STOP_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1
_LOG_LINES_SHOWN: Final = 15


class Processes:
    """Commands on the settings *conf*; a block ends those that still run, the last one started first."""

    def __init__(self, conf: Path, logs: Path) -> None:
        self._conf, self._logs = conf, logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, command: str) -> None:
        """Begin with ``trimtab`` *command*."""
        words = [sys.executable, "-m", "controller.cli", command, "--conf", str(self._conf)]
        with self.log(command).open("ab") as log:
            # A session of its own: Ctrl-C in the terminal is for us, and we stop it in order.
            self._running[command] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait_for(self, command: str, text: str) -> None:
        """Until the log of *command* says *text*.  TrimtabError where it ends before, or takes too long."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while text not in self.log(command).read_text(encoding="utf-8", errors="replace"):
            self.check()
            if time.monotonic() > deadline:
                raise TrimtabError(f"trimtab {command} is not ready after {_PATIENCE_SECONDS:g} s: {self.log(command)}")
            time.sleep(_POLL_SECONDS)

    def log(self, command: str) -> Path:
        """What *command* says."""
        return self._logs / f"{command}.log"

    def check(self) -> None:
        """TrimtabError, with its last words, when one of them has ended."""
        for command, process in self._running.items():
            if process.poll() is not None:
                lines = self.log(command).read_text(encoding="utf-8", errors="replace").splitlines()
                last = "\n".join(lines[-_LOG_LINES_SHOWN:])
                raise TrimtabError(f"trimtab {command} has ended; {self.log(command)} ends with\n{last}")

    def stop(self) -> dict[str, int]:
        """End all in order, and those that do not end, with what they started, by force: their exit codes."""
        codes = {}
        for command, process in reversed(self._running.items()):
            process.send_signal(signal.SIGTERM)
            try:
                codes[command] = process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                codes[command] = process.wait()
        self._running = {}
        return codes
