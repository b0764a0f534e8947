"""Catching up: what is read in which turn, and what is said meanwhile."""

import time
from itertools import chain, repeat

import pytest

from controller.adapters import long_work
from controller.model.backlog import Backlog
from streaming.batches import catching_up


def test_a_query_that_is_far_behind_reads_in_turns_until_it_is_not() -> None:
    ahead = iter([Backlog(intervals=1440, offsets=144_000), Backlog(intervals=3, offsets=300)])
    turns = list(catching_up.turns(lambda: next(ahead), threshold=10, max_offsets=50_000))
    assert turns == [catching_up.Turn(intervals=1440, offsets=800)]


def test_while_it_catches_up_the_intervals_that_are_decided_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "_EVERY_SECONDS", 0.001)
    told: list[str] = []
    decided = chain([None, 60_000], repeat(660_000))
    turn = catching_up.Turn(intervals=40, offsets=800)
    with long_work.shown_by(told.append), catching_up.report_progress(turn, lambda: next(decided), 60_000):
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.001)
    assert told[0].startswith("catching up, intervals: 10 of 40, about ")
