"""What waits to be published, on a log that takes no record above a size."""

from collections.abc import Iterable
from typing import Any

import pytest

from controller.adapters.metrics.collector import CollectorMetrics
from controller.collector.publisher import Publisher
from controller.collector.states import records
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.model.names import FULL_UPPER
from controller.wire.chunks import MAX_CHUNK_BYTES, KeyValue
from controller.wire.metrics import NamespaceStateRecord
from tests.fake_pulsar import CLUSTER

T = 1_795_233_660_000
_LARGEST = 1 << 20


class SmallLog:
    def __init__(self) -> None:
        self.keys: list[str] = []
        self.asked = 0
        #: How long it had for what it was given last.
        self.seconds = 0.0

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        self.asked += 1
        self.seconds = within_seconds
        given = list(records)
        if any(len(value) > _LARGEST for _, value in given):
            raise TrimtabError("message too large")
        self.keys += [key for key, _ in given]


def state(namespace: str, size: int) -> NamespaceStateRecord:
    """About *size* bytes; what is in them is no matter here, so that it is made quickly."""
    return NamespaceStateRecord.model_construct(
        cluster=CLUSTER, namespace=namespace, version=T, boundaries=(0, FULL_UPPER), anti_affinity_group="x" * size
    )


def test_a_state_that_is_too_large_for_the_log_is_named_and_holds_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    small: Any = SmallLog()
    publisher = Publisher(small, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    publisher.begin(T, T + 1000)
    publisher.states([state("a/huge", 1_300_000), state("a/large", 1_000_000), state("a/small", 4)])
    publisher.publish()
    assert small.keys == ["a/small", "a/large"]
    told = "cannot publish namespace_state of a/huge, 1300"
    assert [told in message for message in caplog.messages] == [True]
    asked = small.asked
    publisher.publish()
    assert small.asked == asked, "once an interval"
    publisher.begin(T + 60_000, T + 61_000)
    publisher.states([state("a/small", 8)])
    publisher.publish()
    assert small.keys == ["a/small", "a/large", "a/small"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_state_as_large_as_a_chunk_is_published_once_and_a_larger_one_as_well(more: int) -> None:
    small: Any = SmallLog()
    publisher = Publisher(small, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    publisher.begin(T, T + 1000)
    (_, bare), *_ = records([state("a/chunk", 0)])
    publisher.states([state("a/chunk", MAX_CHUNK_BYTES - len(bare) + more), state("a/small", 4)])
    publisher.publish()
    assert sorted(small.keys) == ["a/chunk", "a/small"]
    assert small.asked == 1 + more


def test_it_is_told_once_that_the_log_takes_something_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    small: Any = SmallLog()
    publisher = Publisher(small, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    for number, size in enumerate([4, 1_300_000, 1_200_000, 1_000_000, 1_000_001]):
        publisher.begin(T + number, T + 1000)
        publisher.states([state("a/ns", size)])
        publisher.publish()
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "cannot publish namespace_state of a/ns",
        "namespace_state of a/ns can be published again",
    ]


def test_states_in_the_log_make_a_collector_whose_sweeps_are_not_there_no_readier() -> None:
    log, metrics = SmallLog(), CollectorMetrics()
    publisher = Publisher(log, metrics, lambda: float(T), states_again_ms=600_000)  # type: ignore[arg-type]
    publisher.begin(T, T + 1000)
    publisher.states([state("a/ns", 4)])
    publisher.publish()
    assert log.keys == ["a/ns"]
    assert not metrics.health.now[0]


def test_the_log_has_as_long_as_is_left_and_a_fiftieth_of_a_second_at_least() -> None:
    small: Any = SmallLog()
    now = [float(T)]
    publisher = Publisher(small, CollectorMetrics(), lambda: now[0], states_again_ms=600_000)
    publisher.begin(T, T + 1000)
    had = []
    for number, now[0] in enumerate((T + 400.0, T + 970.0, T + 980.0, T + 999.0)):
        publisher.states([state(f"a/{number}", 4)])
        publisher.publish()
        had.append(small.seconds)
    assert had == pytest.approx([0.6, 0.03, 0.02, 0.02])


def test_that_the_log_allows_no_records_ends_the_collector() -> None:
    class Refusing(SmallLog):
        def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
            raise AccessDeniedError("not allowed")

    closed: Any = Refusing()
    publisher = Publisher(closed, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    publisher.begin(T, T + 1000)
    publisher.states([state("a/ns", 4)])
    with pytest.raises(AccessDeniedError):
        publisher.publish()


def test_nothing_is_published_from_the_end_of_its_time_on() -> None:
    log, now = SmallLog(), [T + 1000.0]
    publisher = Publisher(log, CollectorMetrics(), lambda: now[0], states_again_ms=600_000)  # type: ignore[arg-type]
    publisher.begin(T, T + 1000)
    publisher.states([state("a/ns", 4)])
    publisher.publish()
    assert log.asked == 0
    publisher.begin(T, T + 1001)
    publisher.publish()
    assert log.keys == ["a/ns"]


def test_a_state_that_is_in_the_log_is_published_again_only_when_it_changes_or_is_due() -> None:
    log: Any = SmallLog()
    publisher = Publisher(log, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    written = []
    for minute, size in enumerate([4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]):
        publisher.begin(T + minute * 60_000, T + 1000)
        publisher.states([state("a/ns", size)])
        publisher.publish()
        written.append(len(log.keys))
    assert written == [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3]


def test_states_that_are_dropped_are_not_written_and_all_that_were_are_due() -> None:
    log: Any = SmallLog()
    publisher = Publisher(log, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    publisher.begin(T, T + 1000)
    publisher.states([state("a/written", 4)])
    publisher.publish()
    publisher.states([state("a/dropped", 4)])
    publisher.drop_states()
    publisher.publish()
    assert log.keys == ["a/written"]
    publisher.states([state("a/written", 4)])
    publisher.publish()
    assert log.keys == ["a/written", "a/written"]


def test_before_the_first_interval_nothing_is_published_and_what_came_waits_for_it() -> None:
    log: Any = SmallLog()
    publisher = Publisher(log, CollectorMetrics(), lambda: float(T), states_again_ms=600_000)
    publisher.states([state("a/b", 4)])
    publisher.publish()
    assert (log.asked, publisher.known_bundles()) == (0, frozenset())
    publisher.begin(T, T + 1000)
    publisher.publish()
    assert len(log.keys) == 1
