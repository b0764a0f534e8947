"""Stores that were filled with an invented day."""

from functools import cache
from pathlib import Path

from controller.lab.invented_weeks import InventedWeek
from controller.log.memory import MemoryLog, MemoryServer
from controller.web.store.feed import Feed
from controller.web.store.store import Store

PERIOD_MS = 1_200_000
CLUSTER = "invented"


class Day:
    """Three brokers and 30 bundles for one day, an interval in 20 minutes; its log is in memory."""

    def __init__(self) -> None:
        self.week = InventedWeek(brokers=3, bundles=30, days=1, period_ms=PERIOD_MS)
        self.server = MemoryServer(now_ms=self.week.now_ms)
        self.week.write(MemoryLog(self.server))
        self.since_ms, self.until_ms = self.week.start_ms, self.week.end_ms
        self.intervals = [self.since_ms + each * PERIOD_MS for each in range(self.week.intervals)]

    def now_ms(self) -> int:
        return self.until_ms

    def log(self) -> MemoryLog:
        return MemoryLog(self.server)

    def feed(self, store: Store, log: MemoryLog | None = None) -> Feed:
        return Feed(store, self.log if log is None else lambda: log, self.week.controls, now_ms=self.now_ms)

    def store(self, folder: Path, log: MemoryLog | None = None) -> Store:
        """A store with all of the day."""
        store = Store(folder, cluster=CLUSTER)
        self.feed(store, log).catch_up()
        return store


@cache
def day() -> Day:
    """One day that all tests read, and none changes."""
    return Day()
