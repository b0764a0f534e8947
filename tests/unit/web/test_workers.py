"""Threads that answer requests: calls that wait for something slow leave some to the others."""

import asyncio
import threading
from functools import partial

import pytest

from controller.web.access.viewer import RefusedError
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


def test_calls_whose_callers_have_given_up_count_until_a_thread_has_come_to_them() -> None:
    ends, workers = threading.Event(), Workers(threads=1, calls=3)
    made: list[str] = []

    async def run() -> None:
        running = asyncio.create_task(workers.run(partial(ends.wait, 20)))
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(workers.run(partial(made.append, "given up")), 0.01)
        with pytest.raises(RefusedError) as refused:
            await workers.run(partial(made.append, "too many"))
        assert refused.value.status == 503
        ends.set()
        await running
        while True:
            try:
                return await workers.run(partial(made.append, "wanted"))
            except RefusedError:
                await asyncio.sleep(0.001)

    asyncio.run(run())
    assert made == ["wanted"]
