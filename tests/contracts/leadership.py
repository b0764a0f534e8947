"""The contract of controller.model.leadership.Leadership."""

import os
import socket
import time
from collections.abc import Callable
from typing import TypeAlias

import pytest

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import wait_for
from controller.model.errors import LeadershipLostError
from controller.model.leadership import Leader, Leadership

#: One more process in the same election; the fixture releases it at the end.
Contender: TypeAlias = Callable[[], Leadership]

_PATIENCE_SECONDS = 30.0


def patience() -> Callable[[], bool]:
    """Gives up when nothing can come of it any more."""
    deadline = Deadline.after(_PATIENCE_SECONDS)
    return lambda: deadline.passed


def after(times: int) -> Callable[[], bool]:
    """True from the call after *times* calls on."""
    calls = iter(range(times))
    return lambda: next(calls, None) is None


class LeadershipContract:
    """Inherited by the tests of each implementation, which give the fixtures ``contender`` and ``leader``."""

    def test_nobody_leads_before_acquire(self, contender: Contender) -> None:
        leadership = contender()
        assert leadership.lost()
        assert not leadership.session_lost()
        with pytest.raises(LeadershipLostError):
            leadership.check()

    def test_a_lone_contender_leads(self, contender: Contender) -> None:
        leadership = contender()
        assert leadership.acquire(patience())
        assert not leadership.lost()
        leadership.check()
        assert leadership.claim(0) == 1
        leadership.check()

    def test_whoever_asks_learns_which_process_leads_and_since_when(
        self, contender: Contender, leader: Callable[[], Leader | None]
    ) -> None:
        assert leader() is None
        before_ms, leadership = time.time() * 1000, contender()
        assert leadership.acquire(patience())
        leadership.claim(0)
        found = leader()
        assert found is not None
        assert (found.host, found.process) == (socket.gethostname(), os.getpid())
        assert before_ms - 1000 <= found.since_ms <= time.time() * 1000 + 1000
        leadership.release()
        wait_for(lambda: leader() is None, _PATIENCE_SECONDS, every=0.02)

    def test_one_of_two_leads_and_the_other_can_give_up(self, contender: Contender) -> None:
        first, second = contender(), contender()
        assert first.acquire(patience())
        assert not second.acquire(after(3))
        assert second.lost()
        assert not first.lost()
        first.check()

    def test_a_waiting_process_calls_stand_by_once_and_a_leader_does_not(self, contender: Contender) -> None:
        prepared: list[str] = []
        first, second = contender(), contender()
        assert first.acquire(patience(), lambda: prepared.append("first"))

        def prepare() -> None:
            prepared.append("second")
            first.release()

        assert second.acquire(patience(), prepare)
        assert prepared == ["second"]
        second.check()

    def test_the_epoch_only_grows(self, contender: Contender) -> None:
        first, second = contender(), contender()
        assert first.acquire(patience())
        assert first.claim(0) == 1
        assert first.claim(0) == 2
        first.release()
        assert second.acquire(patience())
        assert second.claim(1) == 3

    def test_a_journal_ahead_of_the_stored_epoch_is_passed(self, contender: Contender) -> None:
        first, second = contender(), contender()
        assert first.acquire(patience())
        assert first.claim(41) == 42
        first.release()
        assert second.acquire(patience())
        assert second.claim(7) == 43

    def test_a_journals_epoch_that_no_leader_can_have_does_not_count(self, contender: Contender) -> None:
        leadership = contender()
        assert leadership.acquire(patience())
        assert leadership.claim(10**12) == 1
        assert leadership.claim(1_000_001) == 1_000_002
        assert leadership.claim((1 << 63) - 1) == 1_000_003
