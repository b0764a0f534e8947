"""Collectors on one log and one group, against brokers on loopback; the clock is the test's."""

import json
import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from controller.adapters.election.collectors import GroupView
from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.metrics.health import ProcessHealth
from controller.adapters.network.calls import Calls
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.adapters.pulsar.server_clocks import ServerClocks
from controller.collector.cluster_state import ClusterState, Reading
from controller.collector.loop import BrokerAccess, Collector
from controller.collector.reports import SweepName
from controller.collector.sweeper import Sweeper
from controller.log.ticks import CollectorLog
from controller.model.errors import AccessDeniedError, LeadershipLostError, LogOfflineError, TrimtabError
from controller.settings.capacity import CapacityOverride, CapacityOverrides
from controller.settings.trimtab_toml import CollectorSettings
from controller.wire.chunks import Arrived, KeyValue, glance, json_chunks
from controller.wire.metrics import (
    BrokerStateRecord,
    NamespaceStateRecord,
    Partitions,
    RosterEntry,
    TickRecord,
    decode_metric,
)
from controller.wire.readable import utc
from tests.fake_pulsar import CLUSTER, FakePulsar, fake_pulsar

PERIOD = 60
T = 1_795_233_660
SETTINGS = CollectorSettings(state_every=2)
OVERRIDES = CapacityOverrides(brokers=(CapacityOverride(match=".*", cpu_cores=4.0),))


class Log:
    """What several collectors write to."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        #: Its own clock, epoch ms, and when each record was appended; None: it keeps no times.
        self.now_ms: int | None = None
        self.times: list[int | None] = []
        self.fence = 0
        self.away = False
        #: It takes no records with this in one of them; and how often it was asked to.
        self.refuses = b"\n"
        self.refused = 0
        #: One of its partitions is; and how often a tick, or to lead, was tried meanwhile.
        self.offline = False
        self.tried = 0

    def append(self, values: Sequence[bytes]) -> None:
        self.records += values
        self.times += [self.now_ms] * len(values)

    def ticks(self) -> dict[int, dict[str, bool]]:
        """T in seconds -> broker -> whether it has a sweep."""
        heads = [glance(value) for value in self.records]
        ticks = [head for head in heads if isinstance(head, TickRecord)]
        assert len({tick.interval for tick in ticks}) == len(ticks), "ticked twice"
        return {
            tick.interval // 1000: {entry.broker: entry.sweep_id is not None for entry in tick.roster or ()}
            for tick in ticks
        }

    def states(self) -> list[Any]:
        read = [decode_metric(value, cluster=CLUSTER, period_ms=1000) for value in self.records]
        return [record for record in read if isinstance(record, NamespaceStateRecord | BrokerStateRecord)]


class CollectorsEnd(CollectorLog):
    """One collector's end of it."""

    def __init__(self, log: Log) -> None:
        self.log, self.read_to, self.fence = log, 0, -1

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        assert within_seconds > 0
        self._reach()
        values = [value for _, value in records]
        if any(self.log.refuses in value for value in values):
            self.log.refused += 1
            raise TrimtabError("a record is too large")
        self.log.append(values)

    def lead(self, since_ms: int) -> None:
        self._reach()
        self._whole()
        self.log.fence += 1
        self.fence, self.read_to = self.log.fence, 0

    def arrived(self) -> Iterator[Arrived]:
        new = list(zip(self.log.records, self.log.times, strict=True))[self.read_to :]
        self.read_to = len(self.log.records)
        yield from (Arrived(head, at) for value, at in new if (head := glance(value)) is not None)

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        self._reach()
        if self.fence != self.log.fence:
            raise LeadershipLostError("fenced")
        self._whole()
        entries = tuple(RosterEntry(broker=broker, sweep_id=sweep) for broker, sweep in roster.items())
        tick = TickRecord(
            cluster=CLUSTER, interval=interval, partitions=Partitions(metrics=1, results=1), roster=entries
        )
        self.log.append([tick.model_dump_json(by_alias=True).encode()])

    def follow(self) -> None:
        self.fence = -1

    def close(self) -> None:
        pass

    def _whole(self) -> None:
        if self.log.offline:
            self.log.tried += 1
            raise LogOfflineError("partitions 3 of topic 'metrics' have no leader")

    def _reach(self) -> None:
        if self.log.away:
            raise TrimtabError("the log is away")


class Room:
    """Where the group meets."""

    def __init__(self) -> None:
        self.members: list[str] = []
        self.shares: Mapping[str, Sequence[str]] = {}


class Member:
    def __init__(self, room: Room, me: str) -> None:
        self.room, self.me = room, me
        #: What it believes, when it is cut off.
        self.cut_off: GroupView | None = None
        self.looks = 0

    def look(self) -> GroupView:
        self.looks += 1
        if self.cut_off is not None:
            return self.cut_off
        if self.me not in self.room.members:
            self.room.members.append(self.me)
        return GroupView(me=self.me, members=tuple(self.room.members), shares=self.room.shares)

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        self.room.shares = shares

    def step_back(self) -> None:
        self.leave()
        if self.cut_off is not None:
            self.cut_off = GroupView(me=self.me)

    def leave(self) -> None:
        self.room.members = [name for name in self.room.members if name != self.me]


class NoLoadData:
    def of(self, broker: str) -> None:
        return None

    def close(self) -> None:
        pass


class SeenCalls(Calls):
    """Calls of which is seen what has not ended, or has not been taken."""

    def __init__(self, most_at_once: int) -> None:
        super().__init__(most_at_once)
        self.made: set[str] = set()
        #: When silent brokers were looked for last.
        self.looked = 0.0

    def submit(self, key: Any, call: Callable[[], Any]) -> bool:
        self.made.add(key)
        return super().submit(key, call)

    def add_workers_for_stuck(self, now: float, patience: float, *, answering: Container[Any], limit: int) -> None:
        self.looked = now
        super().add_workers_for_stuck(now, patience, answering=answering, limit=limit)

    @property
    def open(self) -> set[str]:
        return {key for key in self.made if self.is_open(key)}


class Undescribed(ClusterState):
    """Says nothing: to read a cluster's state takes more calls than to sweep its brokers."""

    def domains(self) -> dict[str, str]:
        return {}

    def read(self, interval: int, *, whole: bool, known_bundles: Collection[str] = frozenset()) -> Reading:
        return Reading(states=(), leader="")


class Ahead(ServerClocks):
    """The brokers' clocks, as seen from a host that is so far ahead."""

    seconds = 0.0

    def ahead_seconds(self) -> float:
        return self.seconds


class World:
    """Nothing here depends on how fast the machine is: the clock stands still until nobody waits for an answer."""

    def __init__(self, pulsar: FakePulsar) -> None:
        self.pulsar, self.log, self.room = pulsar, Log(), Room()
        self.now = T - 1.0
        self.members: dict[str, Member] = {}
        self.ends: dict[str, CollectorsEnd] = {}
        self.metrics: dict[str, CollectorMetrics] = {}
        self.clocks: dict[str, Ahead] = {}
        self.calls: dict[Collector, list[SeenCalls]] = {}
        #: What collectors read the cluster's state by.
        self.state: type[ClusterState] = Undescribed

    def collector(self, name: str) -> Collector:
        admin = PulsarAdmin(self.pulsar.urls, cluster=CLUSTER)
        self.members[name], self.ends[name] = Member(self.room, name), CollectorsEnd(self.log)
        self.metrics[name], self.clocks[name] = CollectorMetrics(), Ahead()
        calls: list[SeenCalls] = []

        def seen(most_at_once: int) -> SeenCalls:
            calls.append(SeenCalls(most_at_once))
            return calls[-1]

        collector = Collector(
            cluster=CLUSTER,
            period_ms=PERIOD * 1000,
            settings=SETTINGS,
            log=self.ends[name],
            group=self.members[name],
            brokers=BrokerAccess(
                sweeper=Sweeper(admin, OVERRIDES, NoLoadData(), form=json_chunks, timeout_seconds=60),
                state=self.state(admin, CLUSTER, None, most_at_once=16, seconds=20.0),
                overrides=OVERRIDES,
                clocks=self.clocks[name],
            ),
            clock=lambda: self.now,
            metrics=self.metrics[name],
            calls=seen,
        )
        self.calls[collector] = calls
        return collector

    def shown(self, name: str, sample: str, **labels: str) -> float | None:
        """The value of *sample* in the metrics of the collector *name*."""
        return self.metrics[name].registry.get_sample_value(sample, labels)

    def step_until(self, done: Callable[[], bool], *collectors: Collector) -> None:
        """Until *done*, while the clock stands still."""
        deadline = time.monotonic() + 60
        while not done():
            assert time.monotonic() < deadline, "waited in vain"
            for collector in collectors:
                collector.step()
            if any(calls.open for collector in collectors for calls in self.calls[collector]):
                time.sleep(0.005)

    def settle(self, *collectors: Collector) -> None:
        """Until there is nothing left to do while the clock stands still: all have answered but brokers that hang."""
        quiet = 0

        def still() -> bool:
            nonlocal quiet
            quiet = 0 if any(self._awaits(collector) for collector in collectors) else quiet + 1
            return quiet > 3  # what one step has found, the next one may act on

        self.step_until(still, *collectors)

    def _awaits(self, collector: Collector) -> set[str]:
        """What *collector* asks for and will be told."""
        hanging = {broker.name for broker in self.pulsar.brokers if not broker.answers.is_set()}
        asked = set[str]().union(*(calls.open for calls in self.calls[collector]))
        return set() if len(hanging) == len(self.pulsar.brokers) else asked - hanging

    def interval(self, at: int, *collectors: Collector) -> dict[str, bool]:
        """Play the interval *at*, till its deadline at most: its roster.  Brokers that hang are given up before it."""
        for share in (0.0, 0.5, 0.7, 1.0):
            self.now = at + share * PERIOD * SETTINGS.deadline_share
            if share == 0.7:
                self.give_up(*collectors)
            self.settle(*collectors)
            if at in self.log.ticks():
                break
        return self.log.ticks()[at]

    def give_up(self, *collectors: Collector) -> None:
        """As when the time that an answer may take is over."""

        def all_have_ended() -> bool:
            for broker in self.pulsar.brokers:
                broker.hung_up += 1  # again: a question may have come after the last time
            return not any(calls.open for each in collectors for calls in self.calls[each])

        self.step_until(all_have_ended, *collectors)


@pytest.fixture
def world() -> Iterator[World]:
    with fake_pulsar(3) as pulsar:
        yield World(pulsar)


@pytest.fixture
def described(world: World) -> None:
    """Collectors read the cluster's state from its brokers, beside the sweeps."""
    world.state = ClusterState


@pytest.mark.usefixtures("described")
def test_a_lone_collector_sweeps_every_broker_and_ends_the_interval_as_soon_as_all_have_answered(world: World) -> None:
    one = world.collector("one")
    world.now = T
    world.step_until(lambda: T in world.log.ticks(), one)
    assert world.log.ticks() == {T: dict.fromkeys(world.pulsar.names, True)}


def test_the_next_interval_begins_with_its_own_t_and_not_before(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    world.now = T + PERIOD - 0.001
    world.settle(one)
    assert list(world.log.ticks()) == [T]
    assert all(world.interval(T + PERIOD, one).values())


@pytest.mark.parametrize("ahead", [11.0, -11.0])
def test_a_collector_whose_clock_is_wrong_ends_no_interval_until_it_is_right_again(
    world: World, ahead: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one = world.collector("one")
    world.interval(T, one)
    world.clocks["one"].seconds = ahead
    for share in (0.0, 0.5, 1.0, 1.5):
        world.now = T + PERIOD + share * PERIOD * SETTINGS.deadline_share
        world.settle(one)
    assert list(world.log.ticks()) == [T]
    assert world.shown("one", "trimtab_clock_ahead_seconds") == ahead
    is_ready, why = world.metrics["one"].health.now
    assert not is_ready
    assert why.startswith(f"this host's clock is 11 s {'ahead of' if ahead > 0 else 'behind'} the brokers' clocks")
    world.clocks["one"].seconds = ahead / 11 * 10
    assert all(world.interval(T + 2 * PERIOD, one).values())
    assert world.metrics["one"].health.now[0]
    said = [record.message for record in caplog.records if "clock" in record.message]
    assert len(said) == 2
    assert said[0].endswith("the limit is 10 s: this collector ends no interval. Set this host's clock (chrony, ntpd)")
    assert said[1] == "this host's clock and the brokers' clocks agree again"


def test_a_collector_with_a_wrong_clock_lets_another_one_lead(world: World) -> None:
    one, two = world.collector("one"), world.collector("two")
    for at in (T, T + PERIOD):
        world.interval(at, one, two)
    leads = next(name for name in ("one", "two") if world.shown(name, "trimtab_collector_leads"))
    world.clocks[leads].seconds = 3600.0
    assert all(world.interval(T + 2 * PERIOD, one, two).values())
    assert world.shown(leads, "trimtab_collector_leads") == 0
    assert all(world.interval(T + 3 * PERIOD, one, two).values())


@pytest.mark.slow
def test_where_all_collectors_have_wrong_clocks_each_lets_another_lead_once_an_interval_and_all_say_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = world.collector("one"), world.collector("two")
    for at in (T, T + PERIOD):
        world.interval(at, one, two)
    for clock in world.clocks.values():
        clock.seconds = 3600.0
    caplog.set_level("INFO")
    caplog.clear()
    for second in range(0, 3 * PERIOD, 4):
        world.now = T + 2 * PERIOD + second
        world.settle(one, two)
    assert list(world.log.ticks()) == [T, T + PERIOD]
    assert 2 <= sum("another collector may lead" in record.message for record in caplog.records) <= 2 * 3
    assert not any(metrics.health.now[0] for metrics in world.metrics.values())
    assert [world.shown(name, "trimtab_clock_ahead_seconds") for name in ("one", "two")] == [3600.0, 3600.0]
    for clock in world.clocks.values():
        clock.seconds = 0.0
    assert all(world.interval(T + 5 * PERIOD, one, two).values())
    world.interval(T + 6 * PERIOD, one, two)
    assert all(metrics.health.now[0] for metrics in world.metrics.values())
    assert [world.shown(name, "trimtab_clock_ahead_seconds") for name in ("one", "two")] == [0.0, 0.0]


def test_after_a_clock_was_set_back_intervals_go_on_by_it_and_none_is_ended_twice(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one = world.collector("one")
    for at in (T, T + PERIOD):
        world.interval(at, one)
    for at in (T - 60 * PERIOD, T - PERIOD, T, T + PERIOD):
        world.now = at + 1
        world.settle(one)
    assert list(world.log.ticks()) == [T, T + PERIOD], "these have their ticks"
    assert all(world.interval(T + 2 * PERIOD, one).values())
    said = [record.message for record in caplog.records if "moved back" in record.message]
    assert said == [
        "this host's clock moved back by 3659 s or more: no interval ends twice; skipping intervals up to"
        f" {utc((T + PERIOD) * 1000)}, which have already ended"
    ]


@pytest.mark.slow
def test_after_a_clock_that_ran_ahead_of_the_logs_was_set_back_intervals_end_at_once_and_none_a_second_time(
    world: World,
) -> None:
    one = world.collector("one")
    ahead = (T + 60 * PERIOD, T + 61 * PERIOD)

    def played(at: int, logs_clock: int) -> dict[str, bool]:
        world.log.now_ms = (logs_clock + 1) * 1000
        return world.interval(at, one)

    played(T, T)
    for at in ahead:
        played(at, T + PERIOD)  # nobody counts such a tick
    for at in (T + 2 * PERIOD, T + 3 * PERIOD):
        assert all(played(at, at).values())
    for at in ahead:
        world.now, world.log.now_ms = at + 1, (at + 1) * 1000
        world.settle(one)
    assert list(world.log.ticks()) == [T, *ahead, T + 2 * PERIOD, T + 3 * PERIOD]
    assert all(played(T + 62 * PERIOD, T + 62 * PERIOD).values())


@pytest.mark.usefixtures("described")
def test_after_a_clock_was_set_back_brokers_that_failed_are_asked_and_states_are_written_as_ever(world: World) -> None:
    one, silent = world.collector("one"), world.pulsar.brokers[1]
    world.now = T + 1000 * PERIOD
    silent.broken = "/broker-stats/load-report"
    world.settle(one)
    assert world.log.states(), "the states are written, of a time that has not come"
    silent.broken = "nothing"
    before = len(world.log.states())
    assert all(world.interval(T, one).values()), "the broker is not left alone until the later time comes again"
    again = world.log.states()[before:]
    assert {state.version for state in again} == {T * 1000}
    assert {state.broker for state in again if isinstance(state, BrokerStateRecord)} == set(world.pulsar.names)
    assert sum(isinstance(state, NamespaceStateRecord) for state in again) == 3


@pytest.mark.usefixtures("described")
def test_states_that_were_read_before_the_clock_was_set_back_are_not_written(world: World) -> None:
    one = world.collector("one")
    for broker in world.pulsar.brokers:
        broker.answers.clear()
    world.now = T + 1000 * PERIOD
    one.step()
    world.now = T
    one.step()
    for broker in world.pulsar.brokers:
        broker.answers.set()
    world.settle(one)
    world.interval(T + PERIOD, one)
    assert {state.version for state in world.log.states()} <= {T * 1000, (T + PERIOD) * 1000}
    assert sum(isinstance(state, NamespaceStateRecord) for state in world.log.states()) == 3


@pytest.mark.usefixtures("described")
def test_states_that_wait_to_be_written_when_the_clock_is_set_back_are_read_anew(world: World) -> None:
    one = world.collector("one")
    world.now, world.log.refuses = T + 1000 * PERIOD, b"namespace_state"
    world.settle(one)
    assert world.log.refused
    world.now, world.log.refuses = T, b"\n"
    world.settle(one)
    told = [each.version for each in world.log.states() if isinstance(each, NamespaceStateRecord)]
    assert told == [T * 1000] * 3


def test_a_clock_that_is_set_back_by_a_moment_begins_no_interval_again(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    world.now = T - 0.5
    world.settle(one)
    world.now = T + 1
    world.settle(one)
    assert [sum("topics" in path for path in broker.asked) for broker in world.pulsar.brokers] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.usefixtures("described")
def test_a_broker_that_hangs_is_missing_and_costs_the_others_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one, silent = world.collector("one"), world.pulsar.brokers[1]
    world.interval(T, one)
    silent.answers.clear()
    rosters = [world.interval(T + i * PERIOD, one) for i in range(1, 5)]
    assert rosters == [{name: name != silent.name for name in world.pulsar.names}] * 4
    told = [record.message for record in caplog.records if f"no sweep of {silent.name}" in record.message]
    assert len(told) == 1
    assert "it is reported missing" in told[0]
    silent.answers.set()
    again = [world.interval(T + i * PERIOD, one) for i in range(5, 9)]
    assert again[-1][silent.name]
    assert sum("answers again" in record.message for record in caplog.records) == 1


def test_brokers_that_fail_do_not_take_threads_from_the_others_in_the_next_interval(world: World) -> None:
    one = world.collector("one")
    for broker in world.pulsar.brokers[1:]:
        broker.broken = "/broker-stats/load-report"
    assert world.interval(T, one) == {name: name == world.pulsar.brokers[0].name for name in world.pulsar.names}


def test_collectors_share_the_brokers_out_and_each_sweeps_its_own(world: World) -> None:
    one, two, three = (world.collector(name) for name in ("one", "two", "three"))
    for at in (T, T + PERIOD):
        world.interval(at, one, two, three)
    for broker in world.pulsar.brokers:
        broker.asked.clear()
    assert all(world.interval(T + 2 * PERIOD, one, two, three).values())
    assert sorted(len(share) for share in world.room.shares.values()) == [1, 1, 1]
    assert [sum("topics" in path for path in broker.asked) for broker in world.pulsar.brokers] == [1, 1, 1]


def test_of_a_collector_that_is_gone_no_broker_is_missing_even_in_the_interval_it_is_gone_in(world: World) -> None:
    one, two = world.collector("one"), world.collector("two")
    for at in (T, T + PERIOD):
        world.interval(at, one, two)
    assert len(world.room.shares["two"]) == 1
    assert all(world.interval(T + 2 * PERIOD, one).values()), "its share is still its own, so who leads helps out"
    world.members["two"].leave()
    assert all(world.interval(T + 3 * PERIOD, one).values())
    assert list(world.room.shares) == ["one"]


def test_when_the_one_that_leads_is_gone_another_one_ends_the_interval_it_had_not_ended(world: World) -> None:
    one, two = world.collector("one"), world.collector("two")
    world.interval(T, one, two)
    world.now = T + PERIOD
    world.settle(two)
    world.members["one"].leave()
    world.now += 2
    world.settle(two)
    assert all(world.interval(T + PERIOD, two).values())
    assert list(world.log.ticks()) == [T, T + PERIOD]


def test_that_the_log_allows_no_ticks_ends_the_collector(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AccessDeniedError("not allowed")

    world.now = T
    for name in ("tick", "lead"):
        monkeypatch.setattr(CollectorsEnd, name, refused)
        world.room.members.clear()
        with pytest.raises(AccessDeniedError):
            world.settle(world.collector(name))


def test_a_leader_that_wakes_up_after_a_takeover_is_fenced_and_writes_no_tick(world: World) -> None:
    one, two = world.collector("one"), world.collector("two")
    world.interval(T, one, two)
    world.members["one"].cut_off = world.members["one"].look()
    world.room.members.remove("one")
    world.interval(T + PERIOD, two)
    before = len(world.log.records)
    world.now = T + 2 * PERIOD
    world.settle(one)
    mine = [glance(value) for value in world.log.records[before:]]
    assert not any(isinstance(head, TickRecord) for head in mine)
    assert all(world.interval(T + 2 * PERIOD, two).values())


def test_a_sweep_is_not_published_once_its_time_is_over(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    for broker in world.pulsar.brokers:
        broker.answers.clear()
    world.now = T + PERIOD
    world.settle(one)
    before = len(world.log.records)
    world.now = T + PERIOD + 0.95 * SETTINGS.deadline_share * PERIOD
    for broker in world.pulsar.brokers:
        broker.answers.set()
    world.settle(one)
    assert len(world.log.records) == before
    world.now = T + PERIOD + SETTINGS.deadline_share * PERIOD
    world.settle(one)
    assert not any(world.log.ticks()[T + PERIOD].values())


@pytest.mark.usefixtures("described")
def test_a_state_that_the_log_refuses_holds_up_no_sweep_and_is_tried_once_an_interval(world: World) -> None:
    one = world.collector("one")
    world.log.refuses = b"namespace_state"
    assert all(world.interval(T, one).values())
    assert world.metrics["one"].health.now[0]
    assert world.log.refused == 1
    assert not any(isinstance(state, NamespaceStateRecord) for state in world.log.states())
    world.log.refuses = b"\n"
    assert all(world.interval(T + PERIOD, one).values())
    assert any(isinstance(state, NamespaceStateRecord) for state in world.log.states())


def test_sweeps_that_the_log_refuses_are_tried_again_once_a_second(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    world.log.refuses = b"broker_sweep"
    world.now = T + PERIOD
    world.step_until(lambda: world.log.refused > 0, one)
    for _ in range(20):
        one.step()
    assert world.log.refused == 1
    world.now += 1
    one.step()
    assert world.log.refused == 2


def test_a_missed_interval_is_a_gap_and_the_next_one_is_normal(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    assert all(world.interval(T + 5 * PERIOD, one).values())
    assert list(world.log.ticks()) == [T, T + 5 * PERIOD]


def test_sweeps_are_kept_while_the_log_is_away_for_a_moment(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    world.log.away = True
    world.now = T + PERIOD
    world.settle(one)
    world.log.away = False
    assert all(world.interval(T + PERIOD, one).values())


@pytest.mark.usefixtures("described")
def test_a_leader_that_cannot_reach_the_log_lets_another_one_lead(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = world.collector("one"), world.collector("two")
    world.interval(T, one, two)
    world.log.away = True
    world.now = T + PERIOD
    world.settle(one)
    world.now = T + PERIOD + SETTINGS.deadline_share * PERIOD
    world.step_until(lambda: world.room.members[0] == "two", one)
    assert world.ends["one"].fence == -1, "it follows the log from now on"
    [told] = [record.message for record in caplog.records if "another collector may lead" in record.message]
    assert ": the log is away" in told
    world.log.away = False
    assert all(world.interval(T + 2 * PERIOD, one, two).values())


def test_while_a_partition_is_offline_no_interval_ends_and_it_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one, two = world.collector("one"), world.collector("two")
    world.interval(T, one, two)
    world.log.offline = True
    for i in range(1, 5):
        for share in (0.0, 1.0):
            world.now = T + i * PERIOD + share * PERIOD * SETTINGS.deadline_share
            world.settle(one, two)
    assert list(world.log.ticks()) == [T]
    assert world.room.members[0] == "one", "another one would fare no better"
    told = [record.message for record in caplog.records if "No interval can end" in record.message]
    assert len(told) == 1
    assert "partitions 3 of topic 'metrics' have no leader" in told[0]
    world.log.offline = False
    assert all(world.interval(T + 5 * PERIOD, one, two).values())
    assert sum("intervals can be ended again" in record.message for record in caplog.records) == 1


def test_a_collector_that_begins_to_lead_while_a_partition_is_offline_says_so_and_ends_intervals_once_it_is_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.log.offline = True
    one = world.collector("one")
    world.now = T
    world.settle(one)
    assert sum("No interval can end until this is fixed" in message for message in caplog.messages) == 1
    world.log.offline = False
    assert all(world.interval(T + PERIOD, one).values())


def test_that_a_cluster_lists_no_broker_is_warned_of_once_and_so_is_that_it_lists_some_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one = world.collector("one")
    world.interval(T, one)
    world.pulsar.lists_nobody = True
    for i in (1, 2, 3):
        world.now = T + i * PERIOD
        world.settle(one)
    told = [record for record in caplog.records if "lists no active broker" in record.message]
    assert [record.levelname for record in told] == ["WARNING"]
    assert f"the cluster {CLUSTER} lists no active broker: no interval can end" in told[0].message
    assert "lists active brokers again" not in caplog.text
    world.pulsar.lists_nobody = False
    for i in (4, 5):
        assert all(world.interval(T + i * PERIOD, one).values())
    assert caplog.messages.count("the cluster lists active brokers again: 3; intervals can be ended") == 1


def test_a_broker_that_is_not_active_is_in_no_roster_though_it_was_swept(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one = world.collector("one")
    world.interval(T, one)
    forged = json.loads(next(value for value in world.log.records if b"broker_sweep" in value))
    forged |= {"broker": "made-up:8080", "interval": (T + PERIOD) * 1000, "chunk": 0, "chunks": 1}
    world.log.append([json.dumps(forged | {"sweepId": f"{i}"}).encode() for i in range(3)])
    assert world.interval(T + PERIOD, one) == dict.fromkeys(world.pulsar.names, True)
    [told] = [record.message for record in caplog.records if "skipping chunks" in record.message]
    assert "3 of brokers that are not active; one names broker 'made-up:8080'" in told


@pytest.mark.usefixtures("described")
def test_states_are_published_by_who_knows_them_with_the_capacity_that_the_file_gives(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    world.step_until(lambda: sum(isinstance(each, NamespaceStateRecord) for each in world.log.states()) >= 3, one)
    world.interval(T + PERIOD, one)
    namespaces = {each.namespace: each for each in world.log.states() if isinstance(each, NamespaceStateRecord)}
    assert sorted(namespaces) == ["lab/ns-0", "lab/ns-1", "lab/ns-2"]
    assert namespaces["lab/ns-0"].anti_affinity_group == "apart"
    brokers = {each.broker: each for each in world.log.states() if isinstance(each, BrokerStateRecord)}
    assert sorted(brokers) == world.pulsar.names
    first = brokers[world.pulsar.brokers[0].name]
    assert (first.failure_domain, first.broker_version_string) == ("rack-1", "4.0.8")
    assert {name: each.leader for name, each in brokers.items()} == {
        name: True if name == first.broker else None for name in world.pulsar.names
    }
    assert first.capacity is not None
    assert first.capacity.cpu == 400.0


@pytest.mark.usefixtures("described")
def test_when_another_broker_leads_pulsar_the_states_of_both_are_published_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = world.pulsar.names
    leads = [first]
    monkeypatch.setattr(PulsarAdmin, "leader", lambda _: leads[0])
    one = world.collector("one")
    world.interval(T, one)
    world.interval(T + PERIOD, one)
    before = len(list(world.log.states()))
    leads[0] = second
    world.interval(T + 2 * PERIOD, one)
    changed = [each for each in list(world.log.states())[before:] if isinstance(each, BrokerStateRecord)]
    assert {third: None} | {each.broker: each.leader for each in changed} == {first: None, second: True, third: None}


@pytest.mark.usefixtures("described")
def test_a_broker_with_odd_fields_and_one_in_a_domain_without_a_name_keep_no_interval_from_its_end(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    odd, *nowhere = world.pulsar.brokers
    odd.load_report = odd.load_report | {"brokerVersionString": 5, "lastUpdate": -1, "persistentTopicsEnabled": "yes"}

    def reply(path: str, told: Callable[[str], tuple[int, Any]]) -> tuple[int, Any]:
        return (
            (200, {"rack\n1": {"brokers": [broker.name for broker in nowhere]}})
            if "failureDomains" in path
            else told(path)
        )

    for broker in world.pulsar.brokers:
        broker.reply = partial(reply, told=broker.reply)  # type: ignore[method-assign]
    one = world.collector("one")
    assert [world.interval(T + i * PERIOD, one) for i in range(3)] == [dict.fromkeys(world.pulsar.names, True)] * 3
    states = {each.broker: each for each in world.log.states() if isinstance(each, BrokerStateRecord)}
    assert states[odd.name].broker_version_string == "4.0.8", "asked for, as the report does not say"
    assert states.keys() == {odd.name}
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [line for line in told if line.startswith(odd.name)] == [
        f"{odd.name}: ignoring fields of its report with values that no broker can have: lastUpdate, "
        f"brokerVersionString,"
        " persistentTopicsEnabled"
    ]
    refused = [line.partition(": ")[0] for line in told if line.startswith("cannot publish the state of ")]
    assert sorted(refused) == sorted(f"cannot publish the state of {broker.name}" for broker in nowhere), "once of each"


def test_impossible_rates_of_a_broker_are_told_once_and_once_again_after_it_had_none(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, broker = world.collector("one"), world.pulsar.brokers[0]
    right = broker.topics
    wrong = json.loads(json.dumps(right).replace('"msgRateIn": ', '"msgRateIn": -'))
    told = []
    for i, broker.topics in enumerate((wrong, wrong, right, wrong)):
        caplog.clear()
        assert all(world.interval(T + i * PERIOD, one).values())
        told.append([message for message in caplog.messages if message.startswith(broker.name)])
    [rates] = told[0]
    assert "rates that are negative or not numbers count as 0: " in rates
    assert told == [[rates], [], [], [rates]]


@pytest.mark.usefixtures("described")
def test_failure_domains_that_cannot_be_read_are_told_once_and_once_again_when_they_can(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one = world.collector("one")
    for broker in world.pulsar.brokers:
        broker.broken = "failureDomains"
    for i in range(3):
        world.interval(T + i * PERIOD, one)
    assert sum("cannot read the failure domains: " in record.message for record in caplog.records) == 1
    for broker in world.pulsar.brokers:
        broker.broken = "nothing"
    world.interval(T + 3 * PERIOD, one)
    assert [record.message for record in caplog.records if "can be read again" in record.message] == [
        "the failure domains can be read again"
    ]


@pytest.mark.usefixtures("described")
def test_a_namespace_that_was_split_is_published_in_the_next_interval_and_others_are_not(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)

    def told() -> list[NamespaceStateRecord]:
        return [each for each in world.log.states() if isinstance(each, NamespaceStateRecord)]

    world.step_until(lambda: len(told()) == 3, one)
    world.pulsar.boundaries = ("0x00000000", "0x80000000", "0xffffffff")
    world.interval(T + PERIOD, one)
    world.step_until(lambda: len(told()) == 6, one)
    assert {each.boundaries for each in told()[3:]} == {(0, 0x80000000, 0xFFFFFFFF)}
    assert {each.version for each in told()[3:]} == {(T + PERIOD) * 1000}


@pytest.mark.usefixtures("described")
def test_who_leads_again_publishes_every_state_again_for_another_one_may_have_written_since(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, whole = world.collector("one"), list[bool]()
    read = ClusterState.read

    def watched(self: ClusterState, interval: int, **how: Any) -> Any:
        whole.append(how["whole"])
        return read(self, interval, **how)

    monkeypatch.setattr(ClusterState, "read", watched)

    def namespaces() -> int:
        return sum(isinstance(each, NamespaceStateRecord) for each in world.log.states())

    world.interval(T + PERIOD, one)
    world.step_until(lambda: namespaces() == 3, one)
    world.room.members.insert(0, "two")
    world.now = T + 1.5 * PERIOD
    world.step_until(lambda: world.shown("one", "trimtab_collector_leads") == 0, one)
    world.room.members.remove("two")
    world.interval(T + 2 * PERIOD, one)
    world.step_until(lambda: namespaces() == 6, one)
    assert whole == [True, True]
    world.interval(T + 4 * PERIOD, one)
    assert whole == [True, True, False], "everything is read every second interval"


def test_with_extensible_brokers_their_metrics_stand_in_but_not_where_a_capacity_is_given(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one = world.collector("one")
    world.pulsar.brokers[0].extensible = True
    assert world.interval(T, one) == {name: name != world.pulsar.brokers[0].name for name in world.pulsar.names}
    admin = PulsarAdmin(world.pulsar.urls, cluster=CLUSTER)
    sweeper = Sweeper(admin, CapacityOverrides(), NoLoadData(), form=json_chunks, timeout_seconds=5)

    name = SweepName(cluster=CLUSTER, broker=world.pulsar.brokers[0].name, interval=T * 1000, sweep_id="s")
    swept = sweeper.sweep(name, T * 1000)
    fields = json.loads(swept.records[0][1])
    assert fields["cpu"] == {"usage": 96.93477, "limit": 100.0}
    assert len(fields["bundleStats"]) == 2
    assert swept.report.broker_version == "4.0.8"
    told = f"{world.pulsar.brokers[0].name} runs the extensible load manager: its load comes from its topics"
    assert told in caplog.messages


@pytest.mark.usefixtures("described")
def test_a_broker_that_failed_or_left_may_come_back_with_the_other_load_manager(world: World) -> None:
    broker, admin = world.pulsar.brokers[0], PulsarAdmin(world.pulsar.urls, cluster=CLUSTER)
    sweeper = Sweeper(admin, CapacityOverrides(), NoLoadData(), form=json_chunks, timeout_seconds=5)
    name = SweepName(cluster=CLUSTER, broker=broker.name, interval=T * 1000, sweep_id="s")

    def asked_for_load() -> list[str]:
        broker.asked.clear()
        sweeper.sweep(name, T * 1000)
        return [path.rpartition("/")[2] for path in broker.asked if path.endswith(("load-report", "metrics"))]

    broker.extensible = True
    assert asked_for_load() == ["load-report", "metrics"]
    assert asked_for_load() == ["metrics"]
    sweeper.retain([broker.name])
    assert asked_for_load() == ["metrics"]
    sweeper.retain(())  # it has left, and comes back
    assert asked_for_load() == ["load-report", "metrics"]
    broker.broken = "/broker-stats/topics"
    with pytest.raises(PulsarError):
        asked_for_load()
    broker.extensible, broker.broken = False, "nothing"
    assert asked_for_load() == ["load-report"]


@pytest.mark.parametrize("extensible", [True, False])
def test_the_version_of_an_upgraded_broker_is_read_anew_with_either_load_manager(
    world: World, monkeypatch: pytest.MonkeyPatch, *, extensible: bool
) -> None:
    broker, admin = world.pulsar.brokers[0], PulsarAdmin(world.pulsar.urls, cluster=CLUSTER)
    broker.extensible = extensible
    broker.load_report = broker.load_report | {"brokerVersionString": None}
    sweeper = Sweeper(admin, CapacityOverrides(), NoLoadData(), form=json_chunks, timeout_seconds=5)
    name = SweepName(cluster=CLUSTER, broker=broker.name, interval=T * 1000, sweep_id="s")
    versions = []
    for text in ("4.2.4", "5.0.1"):
        monkeypatch.setattr(PulsarAdmin, "version", lambda _, broker, text=text: (text, broker))
        versions.append(sweeper.sweep(name, T * 1000).report.broker_version)
    assert versions == ["4.2.4", "5.0.1"]


def test_who_is_in_the_group_is_logged_when_it_changes(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    one = world.collector("one")
    world.interval(T, one)
    world.interval(T + PERIOD, one)
    assert [record.message for record in caplog.records if "this is" in record.message] == [
        "collectors: one; this is one"
    ]
    two = world.collector("two")
    caplog.clear()
    world.interval(T + 2 * PERIOD, one, two)
    world.interval(T + 3 * PERIOD, one, two)
    told = [record.message for record in caplog.records if "this is" in record.message]
    assert sorted(told)[-2:] == ["collectors: one, two; this is one", "collectors: one, two; this is two"]
    assert len(told) == len(set(told))


class Ticking(threading.Event):
    """Between two steps a second goes by, unless somebody waits for an answer."""

    def __init__(self, world: World, collector: Collector) -> None:
        super().__init__()
        self.world, self.calls = world, world.calls[collector]

    def wait(self, timeout: float | None = None) -> bool:
        if any(calls.open for calls in self.calls):
            time.sleep(0.005)
        else:
            self.world.now += 1
        assert self.world.now < T + 4 * PERIOD
        return False


def test_to_collect_once_ends_with_the_interval_and_for_one_that_does_not_lead_with_the_time_for_it(
    world: World,
) -> None:
    one, two = world.collector("one"), world.collector("two")
    for at in (T, T + PERIOD):
        world.interval(at, one, two)
    world.now = T + 2 * PERIOD
    two.run(Ticking(world, two), once=True)
    assert world.now == T + 2 * PERIOD + 30, "half of the period, by when all intervals have ended"
    world.members["two"].leave()
    world.now = T + 3 * PERIOD
    one.run(Ticking(world, one), once=True)
    assert all(world.log.ticks()[T + 3 * PERIOD].values())
    assert world.now <= T + 3 * PERIOD + 5, "it waits for nothing when it has ended the interval"


def test_the_metrics_tell_sweeps_ticks_and_silent_brokers_and_readiness_comes_with_the_first_sweep(
    world: World,
) -> None:
    one, silent = world.collector("one"), world.pulsar.brokers[1]
    assert world.metrics["one"].health.now[0] is False
    world.interval(T, one)
    assert world.metrics["one"].health.now == (True, "collects: its last sweeps were published")
    silent.answers.clear()
    world.interval(T + PERIOD, one)
    assert world.shown("one", "trimtab_broker_sweeps_total", result="answered") == 3 + 2
    assert world.shown("one", "trimtab_broker_sweeps_total", result="failed") == 1
    for broker in world.pulsar.brokers:  # nothing is added to what is counted
        broker.answers.clear()
    world.now = T + 2 * PERIOD
    one.step()
    assert world.shown("one", "trimtab_last_tick_timestamp_seconds") == T + PERIOD
    assert world.shown("one", "trimtab_interval_brokers", sweep="complete") == 2
    assert world.shown("one", "trimtab_interval_brokers", sweep="missing") == 1
    assert world.shown("one", "trimtab_silent_brokers") == 1
    assert world.shown("one", "trimtab_broker_sweep_seconds_count") == 3 + 2
    assert world.shown("one", "trimtab_interval_sweep_seconds_count") == 2
    assert world.shown("one", "trimtab_collector_leads") == world.shown("one", "trimtab_collectors") == 1
    records = world.shown("one", "trimtab_published_records_total")
    size = world.shown("one", "trimtab_published_bytes_total")
    ticks = [value for value in world.log.records if isinstance(glance(value), TickRecord)]
    assert records == len(world.log.records) - len(ticks)
    assert size == sum(map(len, world.log.records)) - sum(map(len, ticks))


def test_a_broker_that_left_the_cluster_is_silent_no_more(world: World) -> None:
    one, gone = world.collector("one"), world.pulsar.brokers[1]
    gone.broken = "/broker-stats/load-report"
    world.interval(T, one)
    world.now = T + PERIOD
    one.step()
    assert world.shown("one", "trimtab_silent_brokers") == 1
    world.room.shares = {"one": tuple(broker.name for broker in world.pulsar.brokers if broker is not gone)}
    world.now = T + PERIOD + 1.5
    one.step()  # reads the group
    world.now = T + 2 * PERIOD
    one.step()
    assert world.shown("one", "trimtab_silent_brokers") == 0


def test_a_broker_that_left_and_comes_back_is_asked_at_once_and_told_of_anew(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, gone = world.collector("one"), world.pulsar.brokers[1]
    gone.broken = "/broker-stats/load-report"
    for at in (T, T + PERIOD):
        world.interval(at, one)
    world.pulsar.brokers.remove(gone)
    for at in (T + 2 * PERIOD, T + 3 * PERIOD):
        world.interval(at, one)
    world.pulsar.brokers.insert(1, gone)
    world.interval(T + 4 * PERIOD, one)
    world.interval(T + 5 * PERIOD, one)
    told = [record.message for record in caplog.records if record.message.startswith(f"no sweep of {gone.name}")]
    assert len(told) == 2


def test_a_collector_that_cannot_publish_is_not_ready_and_one_that_has_nothing_to_ask_is(world: World) -> None:
    one, two = world.collector("one"), world.collector("two")
    world.room.members = ["one", "two"]
    world.room.shares = {"one": tuple(world.pulsar.names), "two": ()}
    world.now = T
    two.step()
    assert world.metrics["two"].health.now == (True, "stands by: other collectors ask all brokers")
    world.interval(T, one)
    world.log.away = True
    world.now = T + PERIOD
    world.step_until(lambda: (world.shown("one", "trimtab_publish_errors_total") or 0) > 0, one)
    assert world.metrics["one"].health.now[0] is False


def test_each_step_says_that_the_main_loop_goes_on(world: World) -> None:
    one, now = world.collector("one"), [0.0]
    health = ProcessHealth(lambda: now[0])
    world.metrics["one"].health = health
    health.limit_standstill(10)
    now[0] = 60.0
    assert health.standstill == "the main loop has not completed a round for 60 s, the limit is 10 s"
    one.step()
    assert health.standstill == ""


SHEDDING = "loadBalancerSheddingEnabled"
RUNTIME = "/brokers/configuration/runtime"


def switches(world: World, broker: str) -> list[tuple[bool, bool] | None]:
    """Shedding and splitting in each state of *broker* in the log, None where it does not say."""
    told = [each.balancing for each in world.log.states() if isinstance(each, BrokerStateRecord)]
    names = [each.broker for each in world.log.states() if isinstance(each, BrokerStateRecord)]
    return [
        None if each is None else (each.load_balancer_shedding_enabled, each.load_balancer_auto_bundle_split_enabled)
        for name, each in zip(names, told, strict=True)
        if name == broker
    ]


def switch(world: World, number: int, value: Any, key: str = SHEDDING) -> str:
    """Give a broker another setting; its name."""
    broker = world.pulsar.brokers[number]
    broker.settings = broker.settings | {key: value}
    return broker.name


def intervals(world: World, count: int, *collectors: Collector, start: int = 0) -> None:
    for number in range(start, start + count):
        world.interval(T + number * PERIOD, *collectors)


def test_a_switch_that_is_turned_on_is_in_the_log_before_the_tick_of_the_next_interval(world: World) -> None:
    one = world.collector("one")
    intervals(world, 3, one)  # the third one writes no unchanged state
    broker = switch(world, 1, "true")
    before = len(world.log.records)
    world.interval(T + 3 * PERIOD, one)
    new = [decode_metric(value, cluster=CLUSTER, period_ms=1000) for value in world.log.records[before:]]
    ends = next(row for row, each in enumerate(new) if isinstance(each, TickRecord))
    told = [each for each in new[:ends] if isinstance(each, BrokerStateRecord) and each.broker == broker]
    assert [each.balancing is not None and each.balancing.load_balancer_shedding_enabled for each in told] == [True]
    assert switches(world, broker)[-1] == (True, False)
    assert {each for name in world.pulsar.names if name != broker for each in switches(world, name)} == {(False, False)}


def test_a_broker_that_shows_its_settings_later_than_its_load_is_known_by_the_same_tick(world: World) -> None:
    one = world.collector("one")
    intervals(world, 2, one)
    broker = world.pulsar.brokers[0]
    reply = broker.reply

    def slowly(path: str) -> tuple[int, Any]:
        if RUNTIME in path:
            time.sleep(0.2)
        return reply(path)

    broker.reply = slowly  # type: ignore[method-assign]
    switch(world, 0, "true")
    world.interval(T + 2 * PERIOD, one)
    assert switches(world, broker.name)[-1] == (True, False)
    kinds = [decode_metric(value, cluster=CLUSTER, period_ms=1000) for value in world.log.records]
    assert isinstance(kinds[-1], TickRecord), "nothing of it comes behind the tick"


@pytest.mark.parametrize(
    "answer", [[], "no", {}, {SHEDDING: "true"}, {"loadBalancerEnabled": ["true"], SHEDDING: {"a": 1}}]
)
def test_settings_of_another_shape_than_pulsars_say_nothing_and_cost_no_sweep(
    world: World, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    one = world.collector("one")
    world.pulsar.brokers[1].settings = answer
    intervals(world, 3, one)
    assert world.log.ticks()[T + 2 * PERIOD] == dict.fromkeys(world.pulsar.names, True)
    assert set(switches(world, world.pulsar.brokers[1].name)) == {None}
    told = [each for each in caplog.messages if "balances by itself cannot be read" in each]
    assert len(told) == 1, "it is said once"
    assert "brokers_balance_unknown in [guardrails]" in told[0]


def test_a_flag_that_is_json_counts_as_its_text(world: World) -> None:
    one = world.collector("one")
    broker = switch(world, 2, True)
    intervals(world, 2, one)
    assert switches(world, broker)[-1] == (True, False)


def test_a_huge_answer_is_refused_and_its_broker_swept(world: World) -> None:
    one = world.collector("one")
    broker = switch(world, 0, "x" * (2 << 20), key="someOtherSetting")
    intervals(world, 2, one)
    assert world.log.ticks()[T + PERIOD][broker]
    assert set(switches(world, broker)) == {None}


def test_a_broker_that_does_not_answer_about_its_settings_is_swept_all_the_same_and_said_to_be_unknown(
    world: World,
) -> None:
    one = world.collector("one")
    broker = world.pulsar.brokers[0]
    world.interval(T, one)
    broker.silent = RUNTIME
    # It keeps its own sweep, and no later one, for a quarter of the time until the tick.
    for number, share in ((1, 0.25), (2, 0.0)):
        at = T + number * PERIOD
        for now in (at, at + share * PERIOD * SETTINGS.deadline_share):
            world.now = now
            for _ in range(20):
                one.step()
                time.sleep(0.005)
        world.step_until(lambda at=at: at in world.log.ticks(), one)  # type: ignore[misc]
    assert all(roster[broker.name] for roster in world.log.ticks().values())
    assert switches(world, broker.name)[-1] is None, "from the second interval without an answer on"


def test_a_broker_that_refuses_to_show_its_settings_is_unknown_until_it_shows_them(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    one = world.collector("one")
    broker = world.pulsar.brokers[2]
    broker.broken = RUNTIME
    intervals(world, 2, one)
    assert set(switches(world, broker.name)) == {None}
    broker.broken = "nothing"
    intervals(world, 1, one, start=2)
    assert switches(world, broker.name)[-1] == (False, False)
    assert f"the balancing switches of {broker.name} can be read again" in caplog.text


def test_which_topics_a_broker_serves_stays_known_while_it_does_not_show_its_settings(world: World) -> None:
    def served() -> list[bool | None]:
        told = [each for each in world.log.states() if isinstance(each, BrokerStateRecord) and each.broker == name]
        return [each.non_persistent_topics_enabled for each in told]

    broker = world.pulsar.brokers[2]
    name = switch(world, 2, "false", "enableNonPersistentTopics")
    assert broker.load_report is not None
    broker.load_report = {**broker.load_report, "nonPersistentTopicsEnabled": None}
    one = world.collector("one")
    intervals(world, 2, one)
    broker.broken = RUNTIME
    intervals(world, 2, one, start=2)
    assert switches(world, name)[-1] is None
    assert set(served()) == {False}


def test_a_broker_that_leaves_is_forgotten_and_one_that_joins_with_balancing_on_says_so(world: World) -> None:
    joins = world.pulsar.brokers.pop()
    joins.settings = joins.settings | {SHEDDING: "true"}
    one = world.collector("one")
    intervals(world, 2, one)
    assert switches(world, joins.name) == []
    world.pulsar.brokers.append(joins)
    intervals(world, 2, one, start=2)
    assert switches(world, joins.name)[-1] == (True, False)


@pytest.mark.slow
def test_a_collector_that_takes_a_broker_over_does_not_publish_that_its_switches_are_unknown(world: World) -> None:
    one, two = world.collector("one"), world.collector("two")
    intervals(world, 2, one, two)
    world.room.members = ["two"]
    world.members["one"].cut_off = GroupView(me="one")
    intervals(world, 3, two, start=2)
    assert {told for name in world.pulsar.names for told in switches(world, name)} == {(False, False)}


def test_while_a_partition_is_offline_an_interval_is_tried_to_be_ended_once_a_second(world: World) -> None:
    one = world.collector("one")
    world.interval(T, one)
    world.log.offline = True
    tried = []
    for after in (0.0, 0.9, 1.1, 2.0, 2.2):
        world.now = T + PERIOD + after
        world.settle(one)
        tried.append(world.log.tried)
    assert tried == [1, 1, 2, 2, 3]


def test_a_switch_that_is_turned_off_again_is_published_at_once_too(world: World) -> None:
    one = world.collector("one")
    for number, value in enumerate(("true", "false", "true", "false")):
        broker = switch(world, 0, value)
        world.interval(T + number * PERIOD, one)
    assert [told for told in switches(world, broker) if told is not None] == [
        (True, False),
        (False, False),
        (True, False),
        (False, False),
    ]
