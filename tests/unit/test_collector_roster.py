"""What lies in the log decides which sweep counts."""

from typing import Any

from controller.collector.roster import Arrivals
from controller.wire.metrics import Tick
from controller.wire.sweep import ResourceUsage, SweepHeader

T, PERIOD = 1_795_233_660_000, 60_000
A, B = "a:8080", "b:8080"
NOTHING = ResourceUsage(usage=0.0, limit=0.0)


def chunk(broker: str = A, interval: int = T, sweep_id: str = "1", i: int = 0, n: int = 1, **other: Any) -> SweepHeader:
    counts = ("last_update", "num_topics", "num_bundles", "num_producers", "num_consumers")
    rates = ("msg_rate_in", "msg_rate_out", "msg_throughput_in", "msg_throughput_out")
    numbers: dict[str, Any] = {**dict.fromkeys(counts, 0), **dict.fromkeys(rates, 0.0)}
    usage = dict.fromkeys(("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out"), NOTHING)
    names = {"cluster": "lab", "broker": broker, "interval": interval, "sweep_id": sweep_id, "chunk": i, "chunks": n}
    return SweepHeader(**{**numbers, **usage, **names, **other})


def tick(interval: int, cluster: str = "lab") -> Tick:
    return Tick.model_validate({"cluster": cluster, "interval": interval, "partitions": {"metrics": 1, "results": 1}})


def test_a_sweep_counts_once_all_its_chunks_came_in_whatever_order_and_however_often() -> None:
    arrivals = Arrivals("lab")
    arrivals.take([chunk(i=2, n=3), chunk(i=0, n=3), chunk(i=0, n=3)])
    assert arrivals.missing(T, [A]) == (A,)
    arrivals.take([chunk(i=1, n=3)])
    assert arrivals.missing(T, [A]) == ()
    assert arrivals.roster(T, [A]) == {A: "1"}


def test_of_two_sweeps_of_a_broker_the_one_that_was_complete_first_counts() -> None:
    arrivals = Arrivals("lab")
    arrivals.take([chunk(sweep_id="slow", i=0, n=2), chunk(sweep_id="quick"), chunk(sweep_id="slow", i=1, n=2)])
    assert arrivals.roster(T, [A]) == {A: "quick"}


def test_the_roster_lists_active_brokers_without_a_sweep_and_swept_ones_that_were_not_known() -> None:
    arrivals = Arrivals("lab")
    arrivals.take([chunk(B), chunk("c:8080", i=0, n=2)])
    assert arrivals.roster(T, [A, "c:8080"]) == {A: None, B: "1", "c:8080": None}


def test_what_comes_after_a_tick_for_its_interval_or_an_earlier_one_is_late() -> None:
    arrivals = Arrivals("lab")
    arrivals.take([tick(T), chunk(), chunk(interval=T - PERIOD), chunk(B, interval=T + PERIOD)])
    assert arrivals.ticked == T
    assert arrivals.complete(T) == {}
    assert arrivals.complete(T - PERIOD) == {}
    assert arrivals.complete(T + PERIOD) == {B: "1"}


def test_an_older_tick_does_not_turn_back_the_clock() -> None:
    arrivals = Arrivals("lab")
    arrivals.take([tick(T), tick(T - PERIOD)])
    assert arrivals.ticked == T


def test_records_of_another_cluster_are_none_of_its_business() -> None:
    arrivals = Arrivals("lab")
    arrivals.take([chunk(cluster="other"), tick(T, cluster="other")])
    assert (arrivals.ticked, arrivals.complete(T)) == (0, {})
