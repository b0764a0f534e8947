"""Processes in one thread: each is some greenlets, and one greenlet runs until it waits.

Nothing here waits for anything real.  Time is a number that jumps to the next event; chance is one seeded generator.
So a run is a function of its schedule.
"""

import heapq
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from greenlet import getcurrent, greenlet

from controller.model.errors import TrimtabError

#: When runs begin, epoch seconds: a multiple of every period.
EPOCH_SECONDS: Final = 1_767_225_600


class KilledError(BaseException):
    """The process has died: nothing that it does from here on has an effect."""


@dataclass(eq=False, slots=True)
class Process:
    """One life of a process; a new life is a new object under the same name."""

    name: str
    life: int = 1
    alive: bool = True
    #: So far its wall clock is ahead, seconds.
    skew: float = 0.0
    #: Its wall clock stands still since then; None: it goes.
    stopped_clock: float | None = None
    #: It stands still until then.
    paused_until: float = 0.0
    tasks: list["Task"] = field(default_factory=list)
    #: Grows whenever it falls silent towards others, or is heard again.
    silences: int = 0


@dataclass(eq=False, slots=True)
class Task:
    """A greenlet of a process."""

    process: Process
    greenlet: greenlet
    #: Grows whenever it waits, so that only the last wake-up counts.
    turn: int = 0
    woken: bool = False
    finished: bool = False


class Simulation:
    """The clock, and whose turn it is."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        #: What unexpectedly ended a process, a finding each.
        self.failures: list[str] = []
        self._queue: list[tuple[float, int, Task | Callable[[], object], int]] = []
        self._count = 0
        self._outside = Process("world")
        self.task: Task | None = None
        self._main: Any = None
        #: How long this run goes on, seconds.
        self._until = 0.0

    @property
    def process(self) -> Process:
        """The process that runs now."""
        return self._outside if self.task is None else self.task.process

    def wall(self) -> float:
        """Epoch seconds by the clock of the process that runs now."""
        process = self.process
        at = self.now if process.stopped_clock is None else process.stopped_clock
        return EPOCH_SECONDS + at + process.skew

    def true_ms(self) -> int:
        """Epoch ms by a clock that is right."""
        return EPOCH_SECONDS * 1000 + int(self.now * 1000)

    def spawn(self, process: Process, work: Callable[[], object], after: float = 0.0) -> Task:
        """Have *work* done by *process*."""

        def run() -> None:
            try:
                if process.alive:
                    work()
            except (KilledError, TrimtabError):
                pass
            except Exception:
                self.failures.append(f"{process.name} ended by an error\n{traceback.format_exc()}")
            finally:
                task.finished = True
                process.tasks.remove(task)

        task = Task(process, greenlet(run))
        process.tasks.append(task)
        self._push(self.now + after, task)
        return task

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        """Have the world do *act*, which does not wait, at *seconds*."""
        self._count += 1
        heapq.heappush(self._queue, (max(seconds, self.now), self._count, act, 0))

    def run(self, until: float) -> None:
        """Let time pass up to *until*."""
        self._main, self._until = getcurrent(), until
        queue, pop = self._queue, heapq.heappop
        while queue and queue[0][0] <= until:
            at, _, what, turn = pop(queue)
            if not isinstance(what, Task):
                self.now = at
                what()
                continue
            if what.finished or what.turn != turn:
                continue
            process = what.process
            if process.paused_until > at and process.alive:
                self._push(process.paused_until, what)
                continue
            self.now, self.task = at, what
            what.greenlet.parent = self._main
            what.greenlet.switch()
            self.task = None
        self.now = until

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass for the task that runs now."""
        task = self.task
        if task is None:
            return
        process, at = task.process, self.now + max(seconds, 0.0)
        is_next = at <= self._until and (not self._queue or at < self._queue[0][0])
        if is_next and process.alive and process.paused_until <= at:
            # Nobody else runs before it: time passes, and it goes on.
            self.now = at
            task.turn += 1
            return
        self._push(at, task)
        self._switch(task)

    def wait(self, waiting: list[Task], seconds: float | None) -> bool:
        """Wait until ``wake`` is called with *waiting*, or *seconds* have passed; whether it was woken."""
        task = self.task
        assert task is not None, "only tasks wait"
        waiting.append(task)
        task.woken = False
        if seconds is not None:
            self._push(self.now + max(seconds, 0.0), task)
        try:
            self._switch(task)
        finally:
            if task in waiting:
                waiting.remove(task)
        return task.woken

    def wake(self, waiting: list[Task], most: int | None = None) -> None:
        """Wake the tasks in *waiting*, the first *most* of them, or all."""
        for task in waiting[:most]:
            waiting.remove(task)
            task.woken = True
            task.turn += 1
            self._push(self.now, task)

    def kill(self, process: Process) -> None:
        """End *process*: all of its tasks, wherever they are; the one that runs now ends where it next waits."""
        process.alive = False
        for task in process.tasks:
            if task is not self.task:
                task.turn += 1
                self._push(self.now, task)

    def _push(self, at: float, task: Task) -> None:
        self._count += 1
        heapq.heappush(self._queue, (at, self._count, task, task.turn))

    def _switch(self, task: Task) -> None:
        if not task.process.alive:
            task.turn += 1
            raise KilledError
        self._main.switch()
        task.turn += 1
        if not task.process.alive:
            raise KilledError
