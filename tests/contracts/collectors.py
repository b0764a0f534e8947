"""The contracts of controller.adapters.election.collectors.CollectorGroup and controller.log.ticks.CollectorLog."""

import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

from controller.adapters.election.collectors import CollectorGroup
from controller.adapters.network.deadline import Deadline
from controller.log.tail import ReadTopic
from controller.log.ticks import CollectorLog
from controller.wire.base import read_object
from controller.wire.chunks import Arrived
from controller.wire.metrics import TickRecord
from tests.records import PERIOD, as_bytes, broker_sweep, namespace_state

#: One more member of the same group; the fixture makes it leave at the end.
Member: TypeAlias = Callable[[], CollectorGroup]


class CollectorGroupContract:
    """Inherited by the tests of each implementation, which give the fixture ``member``."""

    def test_who_is_alone_leads(self, member: Member) -> None:
        seen = member().look()
        assert seen.leads
        assert seen.members == (seen.me,)
        assert seen.share == ()

    def test_what_is_shared_out_is_seen_with_the_next_look(self, member: Member) -> None:
        group = member()
        me = group.look().me
        group.share({me: ["broker-1:8080", "broker-2:8080"]})
        assert group.look().share == ("broker-1:8080", "broker-2:8080")
        group.share({me: ["broker-2:8080"]})
        assert group.look().share == ("broker-2:8080",)

    def test_of_two_the_first_leads(self, member: Member) -> None:
        first, second = member(), member()
        assert first.look().leads
        assert not second.look().leads
        assert first.look().leads

    def test_the_second_leads_once_the_first_has_left(self, member: Member) -> None:
        first, second = member(), member()
        assert first.look().leads
        assert not second.look().leads
        first.leave()
        assert second.look().leads

    def test_who_steps_back_lets_the_other_one_lead(self, member: Member) -> None:
        first, second = member(), member()
        assert first.look().leads
        assert not second.look().leads
        first.step_back()
        assert second.look().leads
        assert not first.look().leads


#: The last interval that is over.
T = time.time_ns() // 1_000_000 // PERIOD * PERIOD
NEXT = T + PERIOD
CHUNK = ("broker-1:8080", as_bytes(broker_sweep(interval=T, sweepId="s", chunk=1, chunks=3)))

_PATIENCE_SECONDS = 30.0


class CollectorLogPlace(Protocol):
    """A metrics and a result topic of the cluster CLUSTER, empty at first, as a test sees them."""

    #: Of each of the two topics.
    partitions: int

    def log(self) -> CollectorLog:
        """One more collector's; the fixture closes it at the end."""
        ...

    def records(self, topic: ReadTopic, partition: int) -> list[bytes]:
        """What lies in a partition, in its order."""
        ...


def arrived(log: CollectorLog, number: int) -> list[Arrived]:
    """The next *number* that arrive: what was written a moment ago may come with a later call."""
    found: list[Arrived] = []
    deadline = Deadline.after(_PATIENCE_SECONDS)
    while len(found) < number and not deadline.passed:
        found += log.arrived()
    return found


def intervals(found: list[Arrived]) -> set[int]:
    """Those of the ticks that are among *found*."""
    return {each.head.interval for each in found if isinstance(each.head, TickRecord)}


class CollectorLogContract:
    """Inherited by the tests of each implementation, which give the fixture ``place``."""

    def test_what_is_published_arrives_once_at_the_one_that_leads(self, place: CollectorLogPlace) -> None:
        log = place.log()
        log.lead(T)
        assert list(log.arrived()) == []
        log.publish([CHUNK], 30.0)
        [found] = arrived(log, 1)
        assert not isinstance(found.head, TickRecord)
        assert (found.head.broker, found.head.interval, found.head.sweep_id) == ("broker-1:8080", T, "s")
        assert (found.head.chunk, found.head.chunks) == (1, 3)
        assert list(log.arrived()) == []

    def test_what_is_neither_a_sweep_nor_a_tick_is_written_and_does_not_arrive(self, place: CollectorLogPlace) -> None:
        log = place.log()
        log.lead(T)
        state = as_bytes(namespace_state())
        log.publish([("tenant/ns", state)], 30.0)
        log.publish([CHUNK], 30.0)
        assert len(arrived(log, 1)) == 1
        lying = [value for partition in range(place.partitions) for value in place.records("metrics", partition)]
        assert sorted(lying) == sorted([state, CHUNK[1]])

    def test_a_tick_ends_its_interval_in_every_partition_of_both_topics(self, place: CollectorLogPlace) -> None:
        log = place.log()
        log.lead(T)
        log.tick(T, {"b:1": None, "a:1": "s"})
        log.tick(NEXT, {})
        for topic in ("metrics", "results"):
            for partition in range(place.partitions):
                ticks = [read_object(value) for value in place.records(topic, partition)]
                assert [each["interval"] for each in ticks] == [T, NEXT]
        first = read_object(place.records("metrics", 0)[0])
        assert [(each["broker"], each["sweepId"]) for each in first["roster"]] == [("a:1", "s"), ("b:1", None)]

    def test_who_takes_over_learns_of_the_last_tick_and_what_came_behind_it(self, place: CollectorLogPlace) -> None:
        old, new = place.log(), place.log()
        old.lead(T)
        old.tick(T, {"a:1": None})
        old.publish([CHUNK], 30.0)
        new.lead(T)
        found = arrived(new, place.partitions + 1)
        assert intervals(found) == {T}
        assert [each.head.chunk for each in found if not isinstance(each.head, TickRecord)] == [1]
        assert list(new.arrived()) == []
        new.tick(NEXT, {"a:1": None})
        assert [read_object(value)["interval"] for value in place.records("results", 0)] == [T, NEXT]

    def test_who_led_before_can_lead_again(self, place: CollectorLogPlace) -> None:
        first, second = place.log(), place.log()
        first.lead(T)
        first.tick(T, {})
        first.follow()
        second.lead(T)
        second.tick(NEXT, {})
        second.follow()
        first.lead(T)
        assert NEXT in intervals(arrived(first, place.partitions))
        first.tick(NEXT + PERIOD, {})
        assert [read_object(value)["interval"] for value in place.records("results", 0)] == [T, NEXT, NEXT + PERIOD]
