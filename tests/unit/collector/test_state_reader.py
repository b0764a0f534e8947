"""What is read of the cluster beside the sweeps, by calls that are answered when a test wants."""

from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import Mock

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.network.calls import FinishedCall
from controller.collector.cluster_state import Reading
from controller.collector.publisher import Publisher
from controller.collector.state_reader import StateReader
from controller.collector.states import ClusterPolicies, Namespace, bundle_data, namespace_state
from controller.settings.capacity import CapacityOverrides
from controller.wire.chunks import KeyValue
from tests.fake_pulsar import SAMPLES

T, PERIOD = 1_795_233_660_000, 60_000

#: Asks no broker for its switches.
NOBODY: Any = Mock(begin=lambda: None, collect_answers=list)


class Later:
    """Answers nothing before it is asked what has finished."""

    def __init__(self) -> None:
        self.open = dict[Any, Callable[[], Any]]()

    def submit(self, key: Any, call: Callable[[], Any]) -> bool:
        self.open[key] = call
        return True

    def finished(self) -> list[FinishedCall]:
        asked, self.open = self.open, {}
        return [FinishedCall(key, call(), None) for key, call in asked.items()]


class Cluster:
    """Has one namespace, and a bundle with stored averages."""

    def domains(self) -> dict[str, str]:
        return {}

    def leader(self) -> str:
        return "b:8080"

    def read(self, interval: int, **_: Any) -> Reading:
        stored = (SAMPLES / "bundle_data.json").read_bytes()
        namespace = namespace_state("lab", Namespace("lab/ns", (0, 0xFFFFFFFF)), ClusterPolicies({}), version=interval)
        averages = bundle_data("lab", "lab/ns/0x00000000_0xffffffff", "bundle_data", stored)
        return Reading(states=(averages, namespace), leader="b:8080")


class Log:
    def __init__(self) -> None:
        self.keys = list[str]()

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        self.keys += [key for key, _ in records]


def test_what_was_read_in_an_interval_that_has_not_come_is_not_published_whatever_else_was_read_with_it() -> None:
    log: Any = Log()
    publisher = Publisher(log, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    made: Any = Cluster(), CapacityOverrides(), Later(), publisher, NOBODY
    reader, told = StateReader("lab", *made), []
    reader.forget()
    for interval, answered in ((T + 1000 * PERIOD, T), (T, T), (T, T + PERIOD)):
        reader.begin(interval)
        publisher.begin(interval, interval + 1000)
        reader.ask(leads=True, whole=True)
        publisher.begin(answered, answered + 1000)
        reader.begin(answered)
        reader.collect_answers()
        publisher.publish()
        told.append(len(log.keys))
    assert told == [0, 2, 2]


def test_all_of_the_state_is_asked_for_before_anything_was_forgotten_or_an_interval_began() -> None:
    log: Any = Log()
    publisher = Publisher(log, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    asked = Later()
    made: Any = Cluster(), CapacityOverrides(), asked, publisher, NOBODY
    StateReader("lab", *made).ask(leads=True, whole=False)
    assert len(asked.open) == 3, "Pulsar's leader, the failure domains, and the state"
