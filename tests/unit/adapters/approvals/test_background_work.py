"""Work beside the decisions: nothing that takes long, fails or never ends holds a decision up."""

import threading
import time

import pytest

from controller.adapters.approvals.background import BackgroundWork
from controller.model.errors import TrimtabError


def test_what_is_done_soon_is_there_at_once() -> None:
    assert BackgroundWork()("one", lambda: 1) == 1


def test_what_takes_long_is_taken_in_a_later_interval() -> None:
    work, ended, calls = BackgroundWork(patience_seconds=0.01), threading.Event(), list[int]()

    def slow() -> int:
        calls.append(1)
        ended.wait(5)
        return 7

    began = time.monotonic()
    assert work("one", slow) is None
    assert work("one", slow) is None
    assert work("other", lambda: 1) is None  # one at a time
    assert time.monotonic() - began < 1
    ended.set()
    assert BackgroundWork(patience_seconds=5)("other", lambda: 1) == 1
    results = [work("one", slow) for _ in range(100)]
    assert 7 in results
    assert len(calls) <= 1 + len(results)


def test_a_result_that_nobody_fetches_gives_way_to_other_work() -> None:
    work, ended = BackgroundWork(patience_seconds=0.01), threading.Event()
    assert work("one", lambda: ended.wait(5)) is None
    ended.set()
    for _ in range(100):
        if work("other", lambda: 2) == 2:
            return
    pytest.fail("the other work was never done")


def test_its_error_is_raised_where_its_result_is_fetched() -> None:
    def failing() -> int:
        raise TrimtabError("no answer")

    work = BackgroundWork()
    with pytest.raises(TrimtabError, match="no answer"):
        work("one", failing)
    assert work("one", lambda: 3) == 3
