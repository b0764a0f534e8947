"""Stands in for what the operating system gives a process, while a simulation runs: clocks, threads, locks, queues.

The product is used as it is.  It asks the modules time and threading, and here they answer for the simulation.
"""

import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar, Self
from unittest.mock import patch

import controller.adapters.election.retries
import controller.adapters.network.calls
import controller.collector.loop
import controller.collector.sweeper
import controller.log.election.collectors
import controller.log.election.leadership
import controller.log.election.shared
import controller.log.election.store
from tests.simulation.loop import Simulation, Task

#: Which simulation runs.
_running: list[Simulation] = []
#: Modules that make names by chance.
_NAMING: tuple[ModuleType, ...] = (
    controller.collector.loop,
    controller.log.election.collectors,
    controller.log.election.leadership,
    controller.log.election.shared,
    controller.log.election.store,
)
#: The thread of each.
_threads: list[int] = []


def _is_ours() -> bool:
    """Whether the thread that asks plays the simulation."""
    return not _threads or threading.get_ident() == _threads[-1]


def _for_us(ours: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """*ours* for the thread that calls this, *real* for all others."""
    ident, mine = threading.get_ident, threading.get_ident()
    return lambda *args: ours(*args) if ident() == mine else real(*args)


def _sim() -> Simulation:
    return _running[-1]


class _OfTasks:
    """What the thread of the simulation gets; other threads of this process, as py4j's, get the real thing."""

    real: ClassVar[Callable[..., Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls) if _is_ours() else cls.real(*args, **kwargs)


class Lock(_OfTasks):
    """threading.Lock, and RLock: of tasks."""

    real: ClassVar[Callable[..., Any]] = threading.Lock
    reentrant = False

    def __init__(self) -> None:
        self._owner: object = None
        self._depth = 0
        self._waiting = list[Task]()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me: object = _sim().task if _running else self
        while self._depth and not (self.reentrant and self._owner is me):
            if not blocking or not _sim().wait(self._waiting, None if timeout < 0 else timeout):
                return False
        self._owner, self._depth = me, self._depth + 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            if self._waiting:
                _sim().wake(self._waiting, 1)

    def locked(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """threading.RLock."""

    real: ClassVar[Callable[..., Any]] = threading.RLock
    reentrant = True


class Condition(RLock):
    """threading.Condition, always with a lock of its own: one task runs at a time."""

    real: ClassVar[Callable[..., Any]] = threading.Condition

    def __init__(self, _: object = None) -> None:
        super().__init__()
        self._for_news = list[Task]()

    def notify(self, _: int = 1) -> None:
        self.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        depth, self._depth = self._depth, 1
        self.release()
        woken = (timeout is None or timeout > 0) and _sim().wait(self._for_news, timeout)
        self.acquire()
        self._depth = depth
        return woken

    def notify_all(self) -> None:
        if self._for_news:
            _sim().wake(self._for_news)


class Event(_OfTasks):
    """threading.Event."""

    real: ClassVar[Callable[..., Any]] = threading.Event

    def __init__(self) -> None:
        self._is_set = False
        self._waiting = list[Task]()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._waiting:
            _sim().wake(self._waiting)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._is_set or _sim().wait(self._waiting, timeout) or self._is_set


class Thread(_OfTasks):
    """threading.Thread: a task of the process that starts it."""

    real: ClassVar[Callable[..., Any]] = threading.Thread

    def __init__(
        self,
        target: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        name: str = "",
        daemon: bool | None = None,
    ) -> None:
        self.name, self.daemon = name, daemon
        self._work: Callable[[], object] = lambda: target(*args, **(kwargs or {}))
        self._done, self._ended = False, list[Task]()

    def start(self) -> None:
        def run() -> None:
            try:
                self._work()
            finally:
                self._done = True
                _sim().wake(self._ended)

        _sim().spawn(_sim().process, run)

    def join(self, timeout: float | None = None) -> None:
        if not self._done:
            _sim().wait(self._ended, timeout)

    def is_alive(self) -> bool:
        return not self._done


class SimpleQueue:
    """queue.SimpleQueue."""

    def __class_getitem__(cls, _: object) -> type:
        return cls

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._waiting = list[Task]()

    def put(self, item: object) -> None:
        self._items.append(item)
        if self._waiting:
            _sim().wake(self._waiting, 1)

    def get(self, timeout: float | None = None) -> Any:
        while not self._items and _sim().wait(self._waiting, timeout):
            pass
        return self.get_nowait()

    def get_nowait(self) -> Any:
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


def ids(simulation: Simulation) -> Callable[[], uuid.UUID]:
    """Instead of uuid.uuid4."""
    return lambda: uuid.UUID(int=simulation.random.getrandbits(128), version=4)


@contextmanager
def standing_in(simulation: Simulation) -> Iterator[None]:
    """Have *simulation* be what the product finds as its operating system."""

    def steady(_: int = 0) -> float:
        return 1000.0 + simulation.now

    clocks: dict[str, Callable[..., Any]] = {
        "time": simulation.wall,
        "time_ns": lambda: int(simulation.wall() * 1e6) * 1000,
        "monotonic": steady,
        "perf_counter": steady,
        "clock_gettime": steady,
        "sleep": simulation.sleep,
    }
    replaced: list[tuple[ModuleType, dict[str, object]]] = [
        (time, {name: _for_us(clock, getattr(time, name)) for name, clock in clocks.items()}),
        (threading, {"Lock": Lock, "RLock": RLock, "Condition": Condition, "Event": Event, "Thread": Thread}),
        (controller.adapters.network.calls, {"Thread": Thread, "SimpleQueue": SimpleQueue}),
        (controller.collector.sweeper, {"Lock": Lock}),
        (controller.adapters.election.retries, {"random": simulation.random}),
    ]
    replaced += [(module, {"uuid4": ids(simulation)}) for module in _NAMING]
    patches = [patch.object(module, name, value) for module, names in replaced for name, value in names.items()]
    _running.append(simulation)
    _threads.append(threading.get_ident())
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
        _running.pop()
        _threads.pop()
