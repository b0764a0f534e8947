"""A tick is seen a moment after it was written, and nothing else is taken for one."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import Out
from controller.log.ticked import PARTITION, LogTickWatch, intervals_ticked
from tests.records import as_bytes, tick

PERIOD = 60_000
NOW = time.time_ns() // 1_000_000 // PERIOD * PERIOD
COUNTS = {"metrics": 2, "results": 2}


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    with closing(MemoryLog(MemoryServer(partitions=2))) as made:
        yield made


def write(log: MemoryLog, value: bytes) -> None:
    log.append([Out("results", value, partition=PARTITION)], within_seconds=1.0)


def ticked(interval: int, *, cluster: str = "lab") -> bytes:
    return as_bytes(tick(interval, cluster=cluster, partitions=COUNTS))


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def test_a_tick_ends_the_wait_and_one_that_is_not_of_this_cluster_or_of_the_future_does_not(log: MemoryLog) -> None:
    write(log, ticked(NOW - PERIOD))
    with closing(LogTickWatch(lambda: log, cluster="lab")) as ticks:

        def writes_until_seen() -> bool:
            write(log, ticked(NOW - 2 * PERIOD))
            return ticks.newest is not None

        # What was there before is not read; where the watch begins is settled a moment after it is made.
        assert within(5, writes_until_seen)
        assert ticks.newest == NOW - 2 * PERIOD
        ticks.wait(0)
        write(log, b"not json")
        write(log, ticked(NOW, cluster="another"))
        write(log, ticked(NOW + 3_650 * 86_400_000))
        write(log, ticked(NOW))
        assert within(5, lambda: ticks.newest == NOW)
        ticks.wait(5)
        assert ticks.newest == NOW


def test_the_intervals_that_lie_ahead_are_counted_once_each(log: MemoryLog) -> None:
    for value in (ticked(NOW - PERIOD), ticked(NOW - PERIOD), b'"tick"', ticked(NOW), ticked(NOW, cluster="another")):
        write(log, value)
    assert intervals_ticked(log, 0, cluster="lab", period_ms=PERIOD) == 2
    after_the_first = log.read_backwards("results", PARTITION, None, 100)[2].position
    assert intervals_ticked(log, after_the_first, cluster="lab", period_ms=PERIOD) == 1
