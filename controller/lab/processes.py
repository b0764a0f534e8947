"""Runs trimtab's commands as processes, each with its own log file, as in production."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from controller.adapters.process.tied_child import tied_child
from controller.model.errors import TrimtabError

_STOP_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.1
_LOG_LINES_SHOWN: Final = 15


class Processes:
    """Commands with the settings file *conf*.  A context manager: its end stops them, last started first."""

    def __init__(self, conf: Path, logs: Path) -> None:
        self._conf, self._logs = conf, logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        #: They end with this process, however it ends.
        self._tied = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, command: str) -> None:
        """Start ``trimtab`` *command*."""
        words = [sys.executable, "-m", "controller.cli", command, "--conf", str(self._conf)]
        with self.log(command).open("ab") as log:
            # A session of its own: Ctrl-C in the terminal reaches only this process, which stops the others.
            child = tied_child(words, stdout=log, stderr=log, environment=os.environ, new_session=True)
            self._running[command] = self._tied.enter_context(child)

    def wait_for(self, command: str, text: str) -> None:
        """Wait until the log of *command* contains *text*.  TrimtabError when it ends before, or takes too long."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while text not in self.log(command).read_text(encoding="utf-8", errors="replace"):
            self.check()
            if time.monotonic() > deadline:
                raise TrimtabError(f"trimtab {command} is not ready after {_PATIENCE_SECONDS:g} s: {self.log(command)}")
            time.sleep(_POLL_SECONDS)

    def pid(self, command: str) -> int:
        """The process of *command*, which has been started."""
        return self._running[command].pid

    def log(self, command: str) -> Path:
        """The log file of *command*."""
        return self._logs / f"{command}.log"

    def check(self) -> None:
        """Raise TrimtabError, with the end of its log, when one of them has ended."""
        for command, process in self._running.items():
            if process.poll() is not None:
                lines = self.log(command).read_text(encoding="utf-8", errors="replace").splitlines()
                last = "\n".join(lines[-_LOG_LINES_SHOWN:])
                raise TrimtabError(f"trimtab {command} has ended; {self.log(command)} ends with\n{last}")

    def stop(self) -> dict[str, int]:
        """Stop all with SIGTERM; kill those that do not end, with their children.  Returns the exit codes."""
        codes = {}
        with self._tied:
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
