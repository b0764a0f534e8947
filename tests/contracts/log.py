"""The contracts of what is kept in a log: MetricsLog, CommandLog, DeadLetterLog."""

from collections.abc import Sequence
from typing import Protocol

from controller.adapters.network.deadline import Deadline
from controller.log.commands import CommandLog, IssuedEvent
from controller.log.dead_letters import DeadLetterLog
from controller.log.tail import ReadTopic
from controller.log.ticks import MetricsLog
from controller.model.errors import WireError
from controller.wire.dead_letter import DeadLetter, Source
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.results import decode_result
from tests.records import CLUSTER, PERIOD, T, as_bytes, dead_letter_of, result, topic_stats

NEXT = T + PERIOD
RECORDS = [as_bytes(topic_stats(topic=f"persistent://tenant/ns/{i}")) for i in range(4)]
RESULTS = [as_bytes(result(id=f"c-{i}")) for i in range(2)]
EVENTS = [b'{"event":%d}' % i for i in range(4)]

_PATIENCE_SECONDS = 30.0


class LogPlace(Protocol):
    """A log of the cluster CLUSTER, empty at first, as a test sees it."""

    #: Of the metrics topic, and of the result topic.
    partitions: int

    def metrics(self) -> MetricsLog:
        """A writer of one more process."""
        ...

    def commands(self) -> CommandLog:
        """A reader of one more process; the fixture closes it at the end."""
        ...

    def dead_letters(self) -> DeadLetterLog:
        """A writer of one more process."""
        ...

    def records(self, topic: ReadTopic, partition: int) -> list[bytes]:
        """What lies in a partition, in its order."""
        ...

    def letters(self) -> list[bytes]:
        """What lies in the dead letter topic, in any order."""
        ...

    def issue(self, *events: bytes) -> None:
        """Append *events* to the command topic, all of one namespace."""
        ...


def metrics_of(place: LogPlace) -> list[bytes]:
    """All records of the metrics topic that are no ticks."""
    found = [value for partition in range(place.partitions) for value in place.records("metrics", partition)]
    return [value for value in found if value in RECORDS]


def tick(value: bytes, topic: ReadTopic) -> TickRecord:
    """*value*, which must be a tick."""
    read = decode_metric if topic == "metrics" else decode_result
    found = read(value, cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(found, TickRecord)
    return found


def read_until(log: CommandLog, number: int) -> list[IssuedEvent]:
    """The next *number* events; what was issued a moment ago may come with a later call."""
    found: list[IssuedEvent] = []
    deadline = Deadline.after(_PATIENCE_SECONDS)
    while len(found) < number and not deadline.passed:
        found.extend(log.read())
    return found


class MetricsLogContract:
    """Inherited by the tests of each implementation, which give the fixture ``place``."""

    def test_what_is_published_lies_in_the_metrics_topic_in_the_order_of_its_key(self, place: LogPlace) -> None:
        log = place.metrics()
        log.publish([("broker-1:8080", RECORDS[0]), ("broker-1:8080", RECORDS[1])])
        log.publish([("broker-1:8080", RECORDS[2])])
        log.publish([])
        assert metrics_of(place) == RECORDS[:3]
        assert all(place.records("results", partition) == [] for partition in range(place.partitions))

    def test_results_lie_in_a_topic_of_their_own(self, place: LogPlace) -> None:
        log = place.metrics()
        log.results([("tenant/ns", RESULTS[0]), ("tenant/ns", RESULTS[1])])
        assert [value for each in range(place.partitions) for value in place.records("results", each)] == RESULTS
        assert metrics_of(place) == []

    def test_a_tick_is_in_every_partition_of_both_topics_and_has_the_roster_once(self, place: LogPlace) -> None:
        place.metrics().tick(T, {"b:1": None, "a:1": "sweep"})
        for topic in ("metrics", "results"):
            for partition in range(place.partitions):
                [value] = place.records(topic, partition)
                found = tick(value, topic)
                assert (found.cluster, found.interval) == (CLUSTER, T)
                assert (found.partitions.metrics, found.partitions.results) == (place.partitions, place.partitions)
                if (topic, partition) == ("metrics", 0):
                    roster = [(each.broker, each.sweep_id) for each in found.roster or ()]
                    assert roster == [("a:1", "sweep"), ("b:1", None)]
                else:
                    assert found.roster is None

    def test_a_tick_follows_what_was_written_before_it_and_precedes_what_is_written_later(
        self, place: LogPlace
    ) -> None:
        log = place.metrics()
        log.publish([("broker-1:8080", RECORDS[0])])
        log.tick(T, {})
        log.publish([("broker-1:8080", RECORDS[1])])
        log.tick(NEXT, {})
        [found] = [
            values
            for partition in range(place.partitions)
            if RECORDS[0] in (values := place.records("metrics", partition))
        ]
        assert [found[0], found[2]] == RECORDS[:2]
        assert [tick(value, "metrics").interval for value in found[1::2]] == [T, NEXT]

    def test_the_next_writer_goes_on_behind_the_last_one(self, place: LogPlace) -> None:
        for number, interval in enumerate((T, NEXT)):
            log = place.metrics()
            log.publish([("broker-1:8080", RECORDS[number])])
            log.tick(interval, {})
        assert metrics_of(place) == RECORDS[:2]
        assert [tick(value, "results").interval for value in place.records("results", 0)] == [T, NEXT]


class CommandLogContract:
    """Inherited by the tests of each implementation, which give the fixture ``place``."""

    def test_where_nothing_was_issued_there_is_nothing_to_read(self, place: LogPlace) -> None:
        log = place.commands()
        assert list(log.read()) == []
        assert list(log.poll()) == []

    def test_events_are_read_once_in_their_order_from_the_first_one_on(self, place: LogPlace) -> None:
        place.issue(*EVENTS[:2])
        log = place.commands()
        assert [event.value for event in read_until(log, 2)] == EVENTS[:2]
        assert list(log.read()) == []
        place.issue(*EVENTS[2:])
        assert [event.value for event in read_until(log, 2)] == EVENTS[2:]
        assert list(log.poll()) == []

    def test_all_that_is_new_can_be_had_at_once(self, place: LogPlace) -> None:
        place.issue(*EVENTS)
        log, found = place.commands(), list[bytes]()
        deadline = Deadline.after(_PATIENCE_SECONDS)
        while len(found) < len(EVENTS) and not deadline.passed:
            found += log.poll()
        assert found == EVENTS

    def test_every_reader_reads_for_itself(self, place: LogPlace) -> None:
        place.issue(*EVENTS)
        readers = [place.commands(), place.commands()]
        assert [[event.value for event in read_until(log, len(EVENTS))] for log in readers] == [EVENTS, EVENTS]

    def test_each_event_says_where_it_lies(self, place: LogPlace) -> None:
        place.issue(*EVENTS)
        places = [event.place for event in read_until(place.commands(), len(EVENTS))]
        assert len(set(places)) == len(EVENTS)
        assert places == [event.place for event in read_until(place.commands(), len(EVENTS))]


class DeadLetterLogContract:
    """Inherited by the tests of each implementation, which give the fixture ``place``."""

    def test_letters_lie_in_the_topic_with_their_reason_and_source(self, place: LogPlace) -> None:
        place.dead_letters().write(0, letters(0, 2))
        found = [DeadLetter.model_validate_json(value) for value in place.letters()]
        assert sorted(found, key=lambda letter: letter.source.offset) == letters(0, 2)

    def test_a_batch_without_letters_writes_nothing(self, place: LogPlace) -> None:
        place.dead_letters().write(0, [])
        assert place.letters() == []

    def test_a_batch_that_is_repeated_loses_none_and_brings_no_others(self, place: LogPlace) -> None:
        log = place.dead_letters()
        log.write(0, letters(0, 1))
        log.write(0, letters(1, 2), part=1)
        place.dead_letters().write(0, letters(0, 1))
        log.write(1, letters(2, 3))
        found = {DeadLetter.model_validate_json(value) for value in place.letters()}
        assert found == set(letters(0, 3))


def letters(first: int, end: int) -> Sequence[DeadLetter]:
    """One for each offset."""
    return [
        dead_letter_of(b"?", WireError("not_json", "no JSON"), Source(file="x.jsonl", offset=offset))
        for offset in range(first, end)
    ]
