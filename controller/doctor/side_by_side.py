"""Several things asked at once, and not for ever: who has not answered in time is left alone."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_THREADS: Final = 32


def side_by_side(work: Mapping[K, Callable[[], V]], seconds: float) -> dict[K, V | None]:
    """What each of *work* returns, None where it had not by *seconds*.  What one of them raises is raised.

    Its threads do not keep the process from ending.
    """
    futures: dict[K, Future[V]] = {key: Future() for key in work}
    waiting: SimpleQueue[K] = SimpleQueue()
    for key in work:
        waiting.put(key)

    def run() -> None:
        while True:
            try:
                key = waiting.get_nowait()
            except Empty:
                return
            try:
                futures[key].set_result(work[key]())
            except BaseException as error:
                futures[key].set_exception(error)

    for _ in range(min(_THREADS, len(work))):
        Thread(target=run, daemon=True).start()
    wait(futures.values(), timeout=seconds)
    return {key: future.result() if future.done() else None for key, future in futures.items()}
