"""trimtab's commands as processes that are started anew when they end, as a service manager would."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from controller.adapters.process.process_tree import descendants
from tests.faults.clock import eventually

#: So long a service manager waits; whoever takes over has the processors to itself meanwhile.
_RESTART_SECONDS = 5.0
_POLL_SECONDS = 0.1


class Life:
    """One process, from its start to its end, with all it started."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def says(self, text: str) -> bool:
        return text in self.log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def kill(self) -> None:
        """The process, its JVM and its Python workers at once, as a power cut would."""
        self._signal(signal.SIGKILL)
        self._process.wait(30)

    def tree(self) -> tuple[int, ...]:
        """The process, and all that it has started; the driver first: it must not see its JVM end."""
        return (self.pid, *descendants(self.pid))

    def hang(self, tree: Sequence[int] = ()) -> None:
        """Stop all of it where it stands, with its connections open; *tree* saves the time to look for it."""
        self._signal(signal.SIGSTOP, tree)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Ask it to end, and wait for it."""
        self._signal(signal.SIGCONT)
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def exit_code(self, timeout_seconds: float) -> int:
        """How it ended; fails where it does not within *timeout_seconds*."""
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{self.log.name} does not end:\n{self.last_words()}") from error

    def _signal(self, number: signal.Signals, tree: Sequence[int] = ()) -> None:
        if not self.is_alive():
            return  # its process id may be another process's
        for pid in tree or self.tree():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class Service:
    """A command of trimtab that runs until told to end: whenever it ends by itself it begins another life."""

    def __init__(self, folder: Path, name: str, *arguments: str, words: Sequence[str] = ()) -> None:
        """*words*: what its command begins with, as to run it on a host of its own."""
        self.name = name
        self.lives: list[Life] = []
        self._folder = folder
        self._command = [*words, sys.executable, "-m", "controller.cli", *arguments]
        self._until = threading.Event()
        self.go_on()

    @property
    def life(self) -> Life:
        """The present one, or the last."""
        return self.lives[-1]

    def stop(self) -> None:
        self._until.set()
        self._thread.join()
        self.life.end()

    def pause(self) -> None:
        """End it, and do not start it again until :meth:`go_on`."""
        self.stop()

    def go_on(self) -> None:
        """Begin another life, and watch it."""
        self._until.clear()
        self._begin()
        self._thread = threading.Thread(target=self._watch, name=self.name, daemon=True)
        self._thread.start()

    def require_first_life(self) -> None:
        """Fail, with what it said last, where it has ended before anybody inflicted a fault on it."""
        first = self.lives[0]
        assert first.is_alive(), f"{self.name} ended by itself, exit code {first.exit_code(1)}:\n{first.last_words()}"

    def wait_for(self, text: str, timeout_seconds: float = 120.0) -> None:
        """Until its present life says *text*."""
        eventually(lambda: self.life.says(text), f"{self.name} says {text!r}", timeout_seconds)

    def _begin(self) -> None:
        log = self._folder / f"{self.name}-{len(self.lives) + 1}.log"
        self.lives.append(Life(self._command, log))

    def _watch(self) -> None:
        while not self._until.wait(_POLL_SECONDS):
            if not self.life.is_alive():
                time.sleep(_RESTART_SECONDS)
                self._begin()
