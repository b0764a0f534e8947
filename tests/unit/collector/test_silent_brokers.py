"""Many brokers that are silent cost the others nothing; clock and transport are the test's."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from controller.adapters.pulsar.admin import PulsarError
from controller.collector.loop import BrokerAccess, Collector
from controller.collector.patience import patience
from controller.collector.sweeper import Sweeper
from controller.settings.capacity import CapacityOverrides
from controller.settings.trimtab_toml import CollectorSettings
from controller.wire.chunks import json_chunks
from tests.fake_pulsar import CLUSTER, sample
from tests.unit.collector.test_collector_loop import PERIOD, CollectorsEnd, Log, Member, NoLoadData, Room, SeenCalls, T

TIMEOUT = 10.0
#: A collector that waited for each would not come to the last four of the silent ones before its time is over.
SETTINGS = CollectorSettings(max_concurrent=4)
SILENT = [f"a{number}:8080" for number in range(16)]
HEALTHY = [f"z{number}:8080" for number in range(6)]


class Cluster:
    """Brokers as the collector's admin API; some are silent until the time for their answer is over."""

    def __init__(self) -> None:
        self.now, self.moved = float(T), threading.Condition()
        #: Who is waited for just now.
        self.waits = set[str]()
        self.report, self.topics = sample("load_report_1.json"), sample("topics_1.json")

    def brokers(self) -> tuple[str, ...]:
        return (*SILENT, *HEALTHY)

    def reading_at_most(self, _: int) -> "Cluster":
        return self

    def within(self, _seconds: float, answering: Callable[[], object]) -> Any:
        return SimpleNamespace(
            asked_topic_stats=lambda broker: self._topics(broker, answering), load_report=lambda _: self.report
        )

    def _topics(self, broker: str, answering: Callable[[], object]) -> Any:
        if broker in HEALTHY:
            answering()
            return lambda: self.topics
        with self.moved:
            self.waits.add(broker)
            until = self.now + TIMEOUT
            self.moved.wait_for(lambda: self.now >= until)
            self.waits.remove(broker)
        raise PulsarError("no answer", away=True)

    def domains(self) -> Any:
        raise PulsarError("not asked here")

    def leader(self) -> str:
        raise PulsarError("not asked here")

    def read(self, *_: object, **__: object) -> Any:
        raise PulsarError("not asked here")

    def pass_time(self, now: float) -> None:
        with self.moved:
            self.now = now
            self.moved.notify_all()


def first_interval(cluster: Cluster) -> dict[str, bool]:
    """The roster of a collector's first interval."""
    log, calls = Log(), list[SeenCalls]()

    def seen(most_at_once: int) -> SeenCalls:
        calls.append(SeenCalls(most_at_once))
        return calls[-1]

    admin: Any = cluster
    collector = Collector(
        cluster=CLUSTER,
        period_ms=PERIOD * 1000,
        settings=SETTINGS,
        log=CollectorsEnd(log),
        group=Member(Room(), "one"),
        brokers=BrokerAccess(
            sweeper=Sweeper(admin, CapacityOverrides(), NoLoadData(), form=json_chunks, timeout_seconds=TIMEOUT),
            state=SimpleNamespace(admin=cluster, domains=cluster.domains, leader=cluster.leader, read=cluster.read),  # type: ignore[arg-type]
            overrides=CapacityOverrides(),
        ),
        clock=lambda: cluster.now,
        calls=seen,
    )
    for second in range(PERIOD):
        cluster.pass_time(T + second)
        deadline, quiet = time.monotonic() + 20, 0
        while quiet < 2 and time.monotonic() < deadline:
            collector.step()
            busy = sum(len(each.open) - each.waiting for each in calls) - len(cluster.waits)
            quiet = 0 if busy else quiet + 1
            time.sleep(0.001)
        if T in log.ticks():
            break
    cluster.pass_time(T + 10 * PERIOD)
    return log.ticks()[T]


def test_healthy_brokers_are_swept_in_the_first_interval_however_many_are_silent() -> None:
    assert first_interval(Cluster()) == dict.fromkeys(SILENT, False) | dict.fromkeys(HEALTHY, True)


def test_the_more_brokers_are_to_be_asked_the_shorter_is_a_silent_one_waited_for() -> None:
    assert [patience(waiting, 16, 13.5) for waiting in (0, 1, 100, 200, 1000, 10_000)] == [
        2.0, 2.0, 2.0, 1.08, 0.216, 0.2,
    ]  # fmt: skip
    assert patience(100, 16, -1) == 0.2
