from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from controller.model.decision import Reason, UnloadDecision
from controller.model.load import MEMORY, ClusterView
from controller.model.policies import IsolationPolicy, MinAvailable, Policies
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.shedding.transfer_shedder import Gate, Move, TopBundle, TransferShedder
from controller.strategies.shedding.transfer_shedder.exchange import GiverAndTaker
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from tests.cluster import INTERVAL, broker, view

MINUTE = 60_000
SHEDDER = TransferShedder(hit_count_threshold=0, history_fraction=0)
#: (0.9 - 0.1) / 2 of 0.9: 44.4 of 100 MB/s are to move.
HOT_AND_COLD = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, a=10, b=20, c=30, d=40))

#: The verdict on a broker that gives: what decided, and how full it is.
HOT_GIVES = (
    "hot: Overloaded (0.4 vs 0.25 usage): standard deviation of the load; this broker is at 0.9 usage,"
    " the emptiest is cold"
)


def run(
    cluster: ClusterView, shedder: TransferShedder = SHEDDER, memory: TransferHistory | None = None
) -> tuple[UnloadDecision, TransferHistory]:
    return shedder.decide(cluster, shedder.initial_memory() if memory is None else memory)


def moves(
    cluster: ClusterView, shedder: TransferShedder = SHEDDER, memory: TransferHistory | None = None
) -> tuple[Reason, list[str]]:
    decision, _ = run(cluster, shedder, memory)
    return decision.reason, [f"{one.bundle}: {one.source} > {one.destination}" for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: TransferShedder = SHEDDER) -> list[str]:
    return [str(verdict) for verdict in run(cluster, shedder)[0].verdicts]


def at(cluster: ClusterView, minutes: int, *, missing: Collection[str] = ()) -> ClusterView:
    return replace(cluster, as_of_ms=INTERVAL + minutes * MINUTE, missing=tuple(missing))


# ---- what moves ----


def test_the_verdicts_say_how_uneven_load_was_and_what_was_too_large() -> None:
    assert verdicts(HOT_AND_COLD) == [
        "cluster: Overloaded (0.4 vs 0.25 usage): standard deviation of the load",
        HOT_GIVES,
        "c: TooLarge (6.29146e+07 vs 4.66034e+07 bytes/s)",
        "cold: Balanced (0.1 usage)",
    ]


def test_what_came_back_makes_room_for_more_in_debug_mode_or_when_it_is_counted() -> None:
    cluster = view(broker("cold", usage=0.2, y=20, z=60), broker("hot", usage=0.8, a=50, b=60, c=60.2, d=95))
    few = ["a: hot > cold", "y: cold > hot", "b: hot > cold"]
    more = [*few, "z: cold > hot", "c: hot > cold"]
    assert moves(cluster)[1] == few
    assert moves(cluster, replace(SHEDDER, debug=True))[1] == more
    assert moves(cluster, replace(SHEDDER, counts_gain=True))[1] == more


def test_nothing_to_give_has_its_reason() -> None:
    cold = broker("cold", usage=0.1, z=1)
    assert moves(view(cold, broker("hot", usage=0.9)))[0] is Reason.NO_LOAD_DATA
    assert moves(view(cold, broker("hot", usage=0.9, x=1)))[0] is Reason.NO_BUNDLES
    assert moves(view(broker("empty", usage=0.1), broker("hot", usage=0.9, x=100, y=100)))[0] is Reason.NO_BUNDLES


# ---- when ----


def test_a_broker_that_gave_and_left_has_to_settle_when_it_is_back() -> None:
    without = view(broker("cold", usage=0.1, z=5), broker("warm", usage=0.4, y=20))
    shedder = replace(SHEDDER, shedding_delay_seconds=180)
    decision, memory = run(at(HOT_AND_COLD, 0), shedder)
    assert {one.source for one in decision.unloads} == {"hot"}
    _, memory = run(at(without, 1), shedder, memory)
    assert moves(at(HOT_AND_COLD, 2), shedder, memory) == (Reason.COOL_DOWN, [])
    _, memory = run(at(without, 3), shedder, memory)
    _, memory = run(at(without, 4), shedder, memory)
    assert memory.recently_unloaded_brokers == {}


def test_brokers_that_gave_or_got_a_bundle_begin_their_averages_anew_and_others_go_on() -> None:
    shedder = TransferShedder(history_fraction=0.5)
    before = view(broker("a", usage=1.0, x=3, y=1), broker("b", usage=0.2, z=1), broker("c", usage=0.8, w=8))
    after = view(broker("a", usage=0.7, x=2), broker("b", usage=0.5, y=1, z=1), broker("c", usage=0.4, w=4))
    _, memory = run(before, shedder)
    _, memory = run(at(after, 1), shedder, memory)
    assert memory.weighted_max_ema == pytest.approx({"a": 0.7, "b": 0.5, "c": 0.6})
    megabytes = {name: throughput / 1024**2 for name, throughput in memory.msg_throughput_ema.items()}
    assert megabytes == pytest.approx({"a": 2, "b": 2, "c": 6})
    _, memory = run(at(before, 2), shedder, memory)
    assert memory.weighted_max_ema == pytest.approx({"a": 1.0, "b": 0.2, "c": 0.7})
    _, memory = run(at(before, 3), shedder, memory)
    assert memory.weighted_max_ema == pytest.approx({"a": 1.0, "b": 0.2, "c": 0.75})


def test_a_broker_without_data_for_a_while_goes_on_if_it_comes_back_with_the_same_bundles() -> None:
    shedder = TransferShedder(history_fraction=0.5)
    both = view(broker("a", usage=1.0, x=3), broker("b", usage=0.2, z=1))
    for mine, average in (({"x": 3.0}, 0.75), ({"x": 3.0, "y": 1.0}, 0.5)):
        _, memory = run(both, shedder)
        _, memory = run(at(view(broker("b", usage=0.2, z=1)), 1, missing=["a"]), shedder, memory)
        _, memory = run(at(view(broker("a", usage=0.5, **mine), broker("b", usage=0.2, z=1)), 2), shedder, memory)
        assert memory.weighted_max_ema["a"] == average


def test_load_that_a_move_evened_out_moves_nothing_more() -> None:
    # With averages that go on, hot would still be at 0.76 and cold at 0.24 when it has settled.
    shedder = TransferShedder(hit_count_threshold=0)
    decision, memory = run(HOT_AND_COLD, shedder)
    assert [one.bundle for one in decision.unloads] == ["a", "b"]
    even = view(broker("cold", usage=0.5, z=5, a=10, b=20), broker("hot", usage=0.5, c=30, d=40))
    reasons = []
    for minute in (1, 2, 3, 4):
        decision, memory = run(at(even, minute), shedder, memory)
        reasons.append(decision.reason)
    assert reasons == [*[Reason.COOL_DOWN] * 3, Reason.BALANCED]


def test_heap_memory_is_load_if_it_weighs_anything() -> None:
    usage = HOT_AND_COLD.brokers.usage.copy()
    usage[:, MEMORY] = 90
    cluster = replace(HOT_AND_COLD, brokers=replace(HOT_AND_COLD.brokers, usage=usage))
    assert moves(cluster)[0] is Reason.OVERLOADED
    assert moves(cluster, replace(SHEDDER, memory_weight=1.0, target_std=0.1))[0] is not Reason.OVERLOADED


# ---- brokers without data ----


def test_nothing_moves_while_a_broker_has_never_reported() -> None:
    decision, memory = run(at(HOT_AND_COLD, 0, missing=["new"]))
    assert (decision.reason, decision.unloads) == (Reason.NO_LOAD_DATA, ())
    assert [verdict.subject for verdict in decision.verdicts] == ["new", "cold", "hot"]
    assert memory.hit_count == 0


def test_a_missing_broker_counts_by_its_last_data_until_they_are_too_old_and_never_gives_or_takes() -> None:
    three = view(
        broker("away", usage=0.0), broker("cold", usage=0.1, z=5), broker("hot", usage=0.5, a=10, b=20, c=30, d=40)
    )
    two = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.5, a=10, b=20, c=30, d=40))
    shedder = replace(SHEDDER, target_std=0.21)
    _, memory = run(three, replace(shedder, hit_count_threshold=9))
    assert moves(at(two, 30, missing=["away"]), shedder, memory) == (
        Reason.OVERLOADED,
        ["a: hot > cold", "b: hot > cold"],
    )
    # Without it the deviation is 0.2, and cold is far from hot by throughput.
    assert moves(at(two, 31, missing=["away"]), shedder, memory)[0] is Reason.UNDERLOADED


def test_no_brokers_or_only_missing_ones_say_so() -> None:
    assert moves(view())[0] is Reason.NO_BROKERS
    assert moves(at(view(), 0, missing=["a"]))[0] is Reason.OUTDATED_DATA


# ---- bundles that stay ----


def test_a_bundle_that_was_unloaded_recently_comes_back_as_in_pulsar_unless_the_option_says_no() -> None:
    cold, hot = broker("cold", usage=0.1, y=10, z=20), broker("hot", usage=0.9, a=70, b=80)
    cluster, strict = view(cold, hot, recently_unloaded=["y"]), replace(SHEDDER, swaps_keep_grace=True)
    assert moves(cluster)[1] == ["y: cold > hot", "a: hot > cold"]
    assert moves(cluster, strict)[1] == ["z: cold > hot", "a: hot > cold"]
    assert moves(view(cold, hot, recently_unloaded=["y", "z"]), strict)[1] == []


def test_a_guarded_bundle_does_not_come_back() -> None:
    cluster = view(broker("cold", usage=0.1, y=10, z=20), broker("hot", usage=0.9, a=70, b=80))
    guarded = cluster.with_guarded(np.array([name == "y" for name in cluster.bundles.names]))
    assert moves(guarded)[1] == ["z: cold > hot", "a: hot > cold"]


def test_a_bundle_that_was_unloaded_recently_does_not_go() -> None:
    cold, hot = broker("cold", usage=0.1, y=10, z=20), broker("hot", usage=0.9, a=70, b=80)
    assert moves(view(cold, hot, recently_unloaded=["a"]))[1] == ["y: cold > hot", "z: cold > hot", "b: hot > cold"]
    assert "a: RecentlyUnloaded" in verdicts(view(cold, hot, recently_unloaded=["a"]))


def test_bundles_with_policies_stay_unless_they_may_be_shed() -> None:
    bound = "acme/bound/0x00000000_0xffffffff"
    cluster = view(broker("cold", usage=0.1, z=5), broker("hot", usage=0.9, **{bound: 5, "a": 10, "b": 85}))
    cluster = replace(cluster, policies=Policies(anti_affinity_group={"acme/bound": "group"}))
    assert moves(cluster)[1] == ["a: hot > cold"]
    assert moves(cluster, replace(SHEDDER, with_policies=True))[1] == [f"{bound}: hot > cold", "a: hot > cold"]


def test_a_bundle_does_not_go_to_a_broker_that_its_isolation_policy_closes_to_it() -> None:
    bound = "acme/bound/0x00000000_0xffffffff"
    cluster = view(broker("cold:80", usage=0.1, z=5), broker("hot:80", usage=0.9, **{bound: 5, "a": 10, "b": 85}))
    own = IsolationPolicy(namespaces=("acme/bound",), primary=("hot",))
    cluster = replace(cluster, policies=Policies(isolation=(own,)))
    shedder = replace(SHEDDER, with_policies=True, filters=(IsolationPolicies(),))
    assert moves(cluster, shedder)[1] == ["a: hot:80 > cold:80"]
    assert f"{bound}: IsolationPolicy" in verdicts(cluster, shedder)


def test_a_secondary_broker_gets_nothing_while_there_are_primary_ones() -> None:
    bound = "acme/bound/0x00000000_0xffffffff"
    cluster = view(broker("cold:80", usage=0.1, z=5), broker("hot:80", usage=0.9, **{bound: 5, "a": 10, "b": 85}))
    shedder = replace(SHEDDER, with_policies=True, filters=(IsolationPolicies(),))
    for min_limit, expected in (
        (1, ["a: hot:80 > cold:80"]),
        (2, [f"{bound}: hot:80 > cold:80", "a: hot:80 > cold:80"]),
    ):
        own = IsolationPolicy(
            namespaces=("acme/bound",),
            primary=("hot",),
            secondary=("cold",),
            auto_failover=MinAvailable(min_limit=min_limit),
        )
        assert moves(replace(cluster, policies=Policies(isolation=(own,))), shedder)[1] == expected


def test_a_bundle_without_bytes_in_a_report_neither_goes_nor_comes_back() -> None:
    # Pulsar's own test: testZeroBundleThroughput.
    free = Gate(stays=lambda *_: None, barred=lambda *_: None, retained=lambda *_: None)
    pair = GiverAndTaker(
        giver="hot", taker="cold", giver_throughput=100, taker_throughput=20, to_offload=40, transfer=True,
        counts_gain=False,
    )  # fmt: skip
    idle = [TopBundle("a", 0.0), TopBundle("b", 0.0)]
    assert pair.exchange(idle, idle, free).moves == []
    given, taken = [TopBundle("a", 0.0), TopBundle("b", 45.0)], [TopBundle("y", 0.0), TopBundle("z", 10.0)]
    found = pair.exchange(given, taken, free)
    assert found.moves == [Move("z", "cold", "hot"), Move("b", "hot", "cold")]
