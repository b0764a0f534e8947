"""When intervals end, what waits for them, and which policies hold, stays what it is for small random records.

The numbers are tests.small_worlds.digits.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any, Final

import numpy as np

from controller.aggregate.policies import isolation_policy, policies_of, why_unusable
from controller.aggregate.ticks.backlog import Backlog, intervals_since
from controller.aggregate.ticks.batch_times import BatchTimes
from controller.aggregate.ticks.intervals import TickClock
from controller.aggregate.ticks.prepass import SILENCE_MS, Header, place_ticks
from controller.model.records import BrokerState, NamespaceState, Tick
from tests.records import PERIOD, T
from tests.small_worlds import digits


def placed(seed: int) -> int:
    """Ticks of a recording without any, of sweeps or of reports."""
    chance, told = Random(seed), list[Any]()
    swept = chance.random() < 0.5
    for _ in range(3):
        at, headers = T, list[Header | None]()
        for _ in range(chance.choice((0, 1, 5, 20))):
            at += chance.choice((0, 0, 1, PERIOD - 1, PERIOD, PERIOD, SILENCE_MS - PERIOD, SILENCE_MS))
            time_ms = at - chance.choice((0, 0, 1, PERIOD, 2 * PERIOD))
            headers.append(
                None
                if chance.random() < 0.1
                else Header(
                    broker=chance.choice("abc"),
                    time_ms=time_ms // PERIOD * PERIOD if swept else time_ms,
                    sweep_id=chance.choice(("s", "t", "")) if swept else "",
                    chunk=chance.choice((0, 1)),
                    chunks=chance.choice((1, 2)),
                )
            )
        told += [place_ticks(headers, period_ms=PERIOD)]
    return digits(told)


def timed(seed: int) -> int:
    """When batches begin, and how much they read."""
    chance, told = Random(seed), list[Any]()
    times = BatchTimes(period=chance.choice((6.0, 60.0, 600.0)))
    now, ticked, decided = 0.0, None, None
    for _ in range(60):
        now += chance.choice((0.1, 0.4, 0.5, 1.0, 4.5, 5.0, 25.0))
        if chance.random() < 0.2:
            ticked = (ticked or T) + PERIOD
        if chance.random() < 0.3:
            decided = ticked if decided is None or chance.random() < 0.7 else decided - PERIOD
        told.append(times.due(now, ticked=ticked, decided=decided))
    for _ in range(10):
        backlog = Backlog(intervals=chance.choice((0, 1, 2, 5, 50)), offsets=chance.choice((0, 1, 10, 1000)))
        told.append(backlog.offsets_a_batch(chance.choice((1, 2, 5)), chance.choice((1, 10, 500))))
        last = chance.choice((None, T, T + PERIOD - 1, T + 9 * PERIOD))
        told.append(intervals_since(chance.choice((None, T)), last, PERIOD))
    return digits(told)


def clocked(seed: int) -> int:
    """Which intervals ticks close, whatever partitions they reach, and when rows of a partition are due."""
    chance, told = Random(seed), list[Any]()
    clock = TickClock()
    partitions = [(source, number) for source in (0, 1) for number in range(2)]
    for _ in range(4):
        ticks = []
        for offset in range(chance.choice((0, 1, 3, 6))):
            roster = chance.choice((None, (("a", "s"),), (("a", ""), ("b", "s"))))
            tick = Tick(
                interval=T + chance.choice((0, 0, 1, 2, 3)) * PERIOD,
                metrics_partitions=chance.choice((1, 2)),
                results_partitions=chance.choice((0, 0, 1)),
                roster=roster,
            )
            ticks.append((chance.choice(partitions), offset, tick))
        clock, advances = clock.advance(ticks)
        told += [clock, clock.closable()]
        for partition in partitions:
            offsets = np.array(sorted(chance.randrange(7) for _ in range(5)), np.int64)
            intervals = np.array([chance.choice((-1, T, T + PERIOD, T + 3 * PERIOD)) for _ in range(5)], np.int64)
            told += [advances.first(partition), advances.due(partition, offsets, intervals)]
        for interval in clock.closable()[: chance.choice((0, 1, 9))]:
            clock = clock.close(interval)
    return digits(told)


def ruled(seed: int) -> int:
    """Policies of namespaces and brokers, of which many are none."""
    chance, told = Random(seed), list[Any]()

    def policy() -> dict[str, Any]:
        camel = chance.random() < 0.5
        limit, threshold = chance.choice((1, "3", "x", True, 1.5)), chance.choice(("80", 100))
        parameters: Any = {"min_limit": limit, "usage_threshold": threshold}
        if chance.random() < 0.2:
            parameters = chance.choice((None, 3))
        kind = chance.choice(("min_available", "min_available", "other"))
        failover = {"policyType" if camel else "policy_type": kind, "parameters": parameters}
        given = {
            "namespaces": chance.choice((["acme/.*"], ["acme/a"], ["acme/a"], [], "acme/a", [1])),
            "primary": chance.choice((["b-0"], ["b-0", "b-1"], None)),
            "secondary": chance.choice((["b-2"], [], ("b-3",))),
            "autoFailoverPolicy" if camel else "auto_failover_policy": chance.choice((failover, failover, None)),
        }
        return {key: value for key, value in given.items() if chance.random() < 0.9}

    some = [policy() for _ in range(3)]
    for each in some:
        try:
            told.append(isolation_policy(each))
        except ValueError as error:
            told.append(len(str(error)))
    told.append(sorted(why_unusable({f"p{nth}": each for nth, each in enumerate(some)})))
    base_namespace, base_broker = (
        NamespaceState(namespace="", version=1, boundaries=()),
        BrokerState(broker="", version=1),
    )
    namespaces = [
        replace(
            base_namespace,
            namespace=f"acme/{name}",
            isolation_policies=tuple(chance.choice(some) for _ in range(chance.choice((0, 1, 2)))),
            anti_affinity_group=chance.choice(("", "g")),
        )
        for name in "abc"
    ]
    brokers = [
        replace(
            base_broker,
            broker=f"b-{row}",
            failure_domain=chance.choice(("", "left")),
            broker_version=chance.choice(("", "4.0.8")),
            persistent_topics=chance.random() < 0.8,
            non_persistent_topics=chance.random() < 0.8,
        )
        for row in range(3)
    ]
    found = policies_of(namespaces, brokers)
    told += [found.isolation, found.listed, found.anti_affinity_group, found.failure_domain, found.broker_version]
    return digits(told, found.without_persistent, found.without_non_persistent)


PLACED: Final = 20_508_082
TIMED: Final = 63_883_173
CLOCKED: Final = 48_948_546
RULED: Final = 38_807_485


def of_all(told: Callable[[int], int], seeds: Iterable[int]) -> int:
    return digits([told(seed) for seed in seeds])


def test_a_recording_without_ticks_gets_the_same_ones() -> None:
    assert of_all(placed, range(60)) == PLACED


def test_batches_begin_at_the_same_times_and_read_as_much() -> None:
    assert of_all(timed, range(20)) == TIMED


def test_ticks_close_the_same_intervals() -> None:
    assert of_all(clocked, range(40)) == CLOCKED


def test_the_same_policies_hold() -> None:
    assert of_all(ruled, range(40)) == RULED
