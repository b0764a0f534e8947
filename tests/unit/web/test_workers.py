"""Threads that answer requests: calls that wait for something slow leave some to the others."""

import asyncio
import threading
from functools import partial

from controller.web.workers import Workers


def test_calls_that_wait_for_something_slow_keep_no_thread_from_those_that_do_not() -> None:
    never, workers = threading.Event(), Workers(threads=4, calls=50, waiting=2)

    async def run() -> str:
        waiting = [asyncio.create_task(workers.run(partial(workers.wait, never, 20))) for _ in range(40)]
        await asyncio.sleep(0)
        answer = await asyncio.wait_for(workers.run(lambda: "at once"), 10)
        assert sum(not each.done() for each in waiting) == 2
        never.set()
        await asyncio.gather(*waiting)
        return answer

    assert asyncio.run(run()) == "at once"


def test_a_place_to_wait_is_free_again_after_the_wait() -> None:
    workers, set_already = Workers(waiting=1), threading.Event()
    set_already.set()
    for _ in range(3):
        workers.wait(set_already, 20)
    before = threading.Event()
    threading.Timer(0.02, before.set).start()
    workers.wait(before, 20)
    assert before.is_set()
