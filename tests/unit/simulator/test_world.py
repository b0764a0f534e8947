"""The cluster of a scenario: what happens to it, what it reports, and what commands do to it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.model.decision import Command, Reason, Verdict
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_OUT, Floats
from controller.model.names import parse_bundle, topic_hash
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import TurnNumber
from controller.simulator.cluster import ModelledSweep
from controller.simulator.demand import Demand
from controller.simulator.encode import json_records, namespace_record
from controller.simulator.world import FIRST_INTERVAL_MS, World
from controller.wire.metrics import Partitions, RosterEntry, TickRecord, decode_metric
from controller.wire.rows import Located, rows_from_records
from tests.scenarios import ALL_DETAIL, scenario, world

PERIOD = 60_000
_WHY = Verdict(subject="broker-01:8080", reason=Reason.OVERLOADED)


def unload(bundle: str, source: str, destination: str = "", **more: Any) -> Command:
    fields = {
        "id": "c1",
        "action": "unload",
        "cluster": "simulated",
        "interval": FIRST_INTERVAL_MS,
        "expires_at_ms": FIRST_INTERVAL_MS + 5 * PERIOD,
        "mode": "active",
        "why": _WHY,
    }
    return Command(bundle=bundle, source=source, destination=destination, **{**fields, **more})


def first_of(seen: Snapshot, broker: int) -> str:
    """The first bundle of roster row *broker*."""
    return seen.names[int(np.flatnonzero(seen.owner == broker)[0])]


def owner_of(seen: Snapshot, bundle: str) -> str:
    return seen.roster[int(seen.owner[seen.names.index(bundle)])]


# ---- the same as records and the fold ----


def demand_of(of: Scenario, seed: int) -> Demand:
    """The demand of a world with *seed*."""
    return Demand(of, np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(3)[0])))


def records_of(of: Scenario, seen: Snapshot, load: Floats, offset: int) -> list[Located]:
    """The records that a collector would publish of what *seen* shows, with the load of each topic."""
    names = [f"persistent://{space.name}/topic-{i:07d}" for space in of.namespaces for i in range(space.topics)]
    spaces = [space.name for space in of.namespaces for _ in range(space.topics)]
    counts = np.array([[s.producers, s.consumers] for s in of.namespaces for _ in range(s.topics)])
    found: list[Any] = [namespace_record("simulated", state)[1] for state in seen.namespaces]
    positions = dict(zip(names, map(topic_hash, names), strict=True))
    for code, row in enumerate(seen.brokers):
        bundles = [name for name, owner in zip(seen.names, seen.owner.tolist(), strict=True) if owner == code]
        topics = [
            [i for i, name in enumerate(names) if _is_in(bundle, spaces[i], positions[name])] for bundle in bundles
        ]
        order = [i for of_bundle in topics for i in of_bundle]
        sweep = ModelledSweep(
            cluster="simulated",
            broker=row.broker,
            interval=seen.interval,
            usage=np.array(row.numbers[0:10:2]),
            limit=np.array(row.numbers[1:10:2]),
            bundles=bundles,
            starts=np.append(0, np.cumsum([len(of_bundle) for of_bundle in topics])),
            topics=[names[i] for i in order],
            load=load[order],
            counts=counts[order],
        )
        found += [value for _, value in json_records(sweep)]
    decoded = [decode_metric(value, cluster="simulated", period_ms=PERIOD) for value in found]
    roster = tuple(RosterEntry(broker=name, sweep_id=f"{name}@{seen.interval}") for name in seen.roster)
    tick = TickRecord(
        cluster="simulated", interval=seen.interval, partitions=Partitions(metrics=1, results=1), roster=roster
    )
    ticked = [
        *((METRICS, each) for each in decoded),
        (METRICS, tick),
        (RESULTS, tick.model_copy(update={"roster": None})),
    ]
    return [
        Located(source=log, partition=0, offset=offset + i, record=record) for i, (log, record) in enumerate(ticked)
    ]


def _is_in(bundle: str, namespace: str, position: int) -> bool:
    name = parse_bundle(bundle)
    return name.namespace == namespace and name.lower <= position < name.upper


def test_its_snapshots_are_those_that_the_fold_makes_of_the_same_reports() -> None:
    of = scenario(load={"drift_percent": 10, "daily_percent": 30}, hardware={"noise_percent": 2})
    cluster, demand = world(of, seed=5), demand_of(of, 5)
    state, offset = ShardState(shard=0, shards=1), 0
    for interval in range(4):
        seen, _ = cluster.live(TurnNumber(interval))
        records = records_of(of, seen, np.round(demand.load(TurnNumber(interval)), 1), offset)
        offset += len(records)
        options = FoldOptions(bundle_ttl_ms=1 << 40, detail=ALL_DETAIL)
        state, (folded,) = fold(state, rows_from_records(records, ALL_DETAIL), options)
        assert folded.names == seen.names
        assert folded.roster == seen.roster
        assert list(folded.namespaces) == list(seen.namespaces)
        for column in ("owner", "load", "short_term", "long_term", "short_samples", "long_samples", "topics"):
            assert np.array_equal(getattr(folded, column), getattr(seen, column)), column
        for column in ("producers", "consumers", "detail_size"):
            assert np.array_equal(getattr(folded, column), getattr(seen, column)), column
        assert sorted(folded.detail_position) == sorted(seen.detail_position)
        for one, other in zip(folded.brokers, seen.brokers, strict=True):
            assert one.broker == other.broker
            assert one.numbers == pytest.approx(other.numbers)


# ---- what happens ----


def lived(of: Scenario, *, seed: int = 1) -> tuple[World, list[Snapshot], Floats]:
    cluster = world(of, seed=seed)
    every = [cluster.live(TurnNumber(interval)) for interval in range(of.intervals)]
    return cluster, [seen for seen, _ in every], np.array([usage for _, usage in every])


def test_the_same_seed_gives_the_same_snapshots_and_another_one_does_not() -> None:
    of = scenario(load={"drift_percent": 5}, hardware={"noise_percent": 1}, intervals=5)
    blobs = [[seen.to_blob() for seen in lived(of, seed=seed)[1]] for seed in (1, 1, 2)]
    assert blobs[0] == blobs[1]
    assert blobs[0] != blobs[2]


def test_brokers_begin_with_the_shares_of_load_that_the_scenario_gives_them() -> None:
    of = scenario(
        brokers=[{"count": 1, "load": 3}, {"count": 1, "load": 1}, {"count": 1, "load": 0}],
        namespaces=[{"name": "acme/orders", "bundles": 400, "topics": 4000, "zipf": 0}],
        hardware={"idle_percent": 0},
        intervals=2,
    )
    usage = lived(of)[2][0]
    assert usage[0] == pytest.approx(3 * usage[1], rel=0.05)
    assert usage[2] == 0


def test_mean_usage_is_what_the_scenario_says_also_where_capacities_differ() -> None:
    of = scenario(
        brokers=[{"count": 2, "capacity": 3, "load": 3}, {"count": 2}],
        namespaces=[{"name": "acme/orders", "bundles": 200, "topics": 2000, "zipf": 0}],
        hardware={"cpu_percent": 40, "idle_percent": 5},
        intervals=2,
    )
    assert lived(of)[2][0] == pytest.approx([0.45] * 4, rel=0.05)


def test_a_restarted_broker_is_away_and_comes_back_without_bundles() -> None:
    of = scenario(restarts=[{"at": 3, "brokers": [2], "down": 2}], intervals=8)
    _, seen, usage = lived(of)
    assert [len(each.roster) for each in seen] == [3, 3, 3, 2, 2, 3, 3, 3]
    assert np.isnan(usage[3:5, 1]).all()
    assert all(len(each.names) == 12 for each in seen)
    assert 1 not in seen[5].owner
    assert seen[5].roster[1] == "broker-02:8080"


def test_an_isolation_policy_keeps_a_namespace_on_its_brokers_and_the_others_away() -> None:
    isolated = {"name": "acme/orders", "bundles": 8, "topics": 60, "primary": [2, 3]}
    of = scenario(
        brokers=[{"count": 4}],
        namespaces=[isolated, {"name": "acme/logs", "bundles": 4, "topics": 40}],
        restarts=[{"at": 2, "brokers": [2, 3], "down": 2, "every": 1}],
        intervals=8,
    )
    cluster, seen, _ = lived(of)
    for each in seen:
        places = [(parse_bundle(name).namespace, owner_of(each, name)[:9]) for name in each.names]
        assert {owner for space, owner in places if space == "acme/orders"} <= {"broker-02", "broker-03"}
        assert {owner for space, owner in places if space == "acme/logs"} <= {"broker-01", "broker-04"}
    assert [len(each.names) for each in seen] == [12, 12, 12, 4, 12, 12, 12, 12], "none is there in interval 3"
    (policy,) = next(each for each in seen[0].namespaces if each.namespace == "acme/orders").isolation_policies
    assert (policy["namespaces"], policy["primary"]) == (["acme/orders"], ["broker-02", "broker-03"])
    assert cluster.moves == []


def test_brokers_restart_in_turn_and_again() -> None:
    of = scenario(restarts=[{"at": 1, "brokers": [1, 3], "down": 1, "every": 4, "rounds": 2}], intervals=16)
    away = np.isnan(lived(of)[2])
    assert np.argwhere(away).tolist() == [[1, 0], [5, 2], [9, 0], [13, 2]]


def test_brokers_join_and_leave() -> None:
    of = scenario(brokers=[{"count": 2}, {"count": 1, "joins_at": 2}], leaves=[{"at": 4, "brokers": [1]}], intervals=6)
    away = np.isnan(lived(of)[2])
    assert away.tolist() == [[False, False, True]] * 2 + [[False] * 3] * 2 + [[True, False, False]] * 2


def test_without_any_broker_nothing_is_reported_and_bundles_are_back_with_the_brokers() -> None:
    of = scenario(restarts=[{"at": 1, "brokers": [1, 2, 3], "every": 1, "down": 3}], intervals=8)
    seen = lived(of)[1]
    assert seen[3].roster == ()
    assert seen[3].names == []
    assert len(seen[7].names) == 12


def test_bursts_hot_topics_seasons_and_growth_change_the_demand() -> None:
    def rates(**changed: Any) -> Floats:
        of = scenario(intervals=1440, **changed)
        demand = demand_of(of, 1)
        return np.array([demand.load(TurnNumber(interval))[:, 0].sum() for interval in range(0, 1440, 60)])

    assert rates() == pytest.approx(np.full(24, 100_000))
    day = rates(load={"daily_percent": 50}, start_hour=0)
    assert day.argmax() == 12
    assert day[[12, 0]] == pytest.approx([150_000, 50_000])
    burst = rates(bursts=[{"at": 120, "intervals": 60, "factor": 3, "namespace": "acme/logs"}])
    assert burst[[1, 2, 3]] == pytest.approx([100_000, 200_000, 100_000])
    hot = rates(hot_topics=[{"at": 120, "intervals": 60, "percent": 25, "topics": 2}])
    assert hot[[1, 2, 3]] == pytest.approx([100_000, 125_000, 100_000])
    assert rates(load={"growth_percent_a_day": 44})[12] == pytest.approx(120_000)


def test_consumers_that_lag_catch_up_what_they_left() -> None:
    of = scenario(
        intervals=12,
        load={"subscriptions": 2},
        lags=[{"at": 2, "intervals": 3, "percent": 50, "catch_up_factor": 2, "namespace": "acme/orders"}],
    )
    demand = demand_of(of, 1)
    orders = demand.namespace == 0
    load = np.array([demand.load(TurnNumber(interval)) for interval in range(12)])
    rate_in, rate_out = load[:, :, RATE_IN], load[:, :, RATE_OUT]
    assert (rate_in == rate_in[0]).all()
    behind = rate_out[:, orders].sum(axis=1) / rate_in[0, orders].sum()
    # Half is left for three intervals, and taken in addition in the two after that.
    assert behind == pytest.approx([2, 2, 1, 1, 1, 4, 3, 2, 2, 2, 2, 2])
    assert rate_out[:, ~orders].sum(axis=1) == pytest.approx(2 * rate_in[:, ~orders].sum(axis=1))
    assert load[5, :, THROUGHPUT_OUT] / rate_out[5] == pytest.approx(load[0, :, THROUGHPUT_OUT] / rate_out[0])


def test_partitions_of_a_topic_have_the_same_load() -> None:
    of = scenario(namespaces=[{"name": "acme/orders", "bundles": 4, "topics": 12, "partitions": 4, "zipf": 1}])
    load = demand_of(of, 1).load(TurnNumber(0)).reshape(3, 4, 4)
    assert (load == load[:, :1]).all()
    assert len(set(load[:, 0, 0].tolist())) == 3


# ---- what is reported ----


def test_a_broker_that_reports_nothing_is_in_the_roster_without_data_and_without_bundles() -> None:
    of = scenario(misreports=[{"at": 1, "intervals": 1, "brokers": [2], "missing": True}], intervals=3)
    seen = lived(of)[1]
    assert [[row.broker[:9] for row in each.brokers] for each in seen] == [
        ["broker-01", "broker-02", "broker-03"],
        ["broker-01", "broker-03"],
        ["broker-01", "broker-02", "broker-03"],
    ]
    assert len(seen[1].roster) == 3
    assert 1 not in seen[1].owner


def test_wrong_usage_and_wrong_limits_are_reported_and_the_true_usage_is_not_changed() -> None:
    right = scenario(intervals=2)
    wrong = scenario(
        intervals=2,
        misreports=[{"at": 1, "brokers": [1], "resource": "bandwidthOut", "limit_factor": 10, "usage_factor": 2}],
    )
    _, seen_right, usage_right = lived(right)
    _, seen_wrong, usage_wrong = lived(wrong)
    assert np.array_equal(usage_right, usage_wrong)
    said, true = seen_wrong[1].brokers[0].numbers, seen_right[1].brokers[0].numbers
    assert said[8:10] == pytest.approx((2 * true[8], 10 * true[9]))
    assert said[:8] == true[:8]


def test_stale_reports_repeat_the_usage_before() -> None:
    of = scenario(
        intervals=4,
        hardware={"noise_percent": 3},
        misreports=[{"at": 2, "intervals": 2, "brokers": [1], "stale": True}],
    )
    said = [seen.brokers[0].numbers[:10] for seen in lived(of)[1]]
    assert said[0] != said[1]
    assert said[1] == said[2] == said[3]


def test_a_capacity_file_says_the_true_limits_of_all_brokers() -> None:
    of = scenario(misreports=[{"at": 0, "brokers": [1], "resource": "cpu", "limit_factor": 4}])
    seen, _ = world(of, true_limits=True).live(TurnNumber(0))
    assert [dict(state.capacity)["cpu"] for state in seen.broker_states] == [800, 800, 800]
    assert not len(world(of).live(TurnNumber(0))[0].broker_states)


def test_a_broker_that_is_asked_too_much_reports_that_it_is_busy_and_no_more() -> None:
    of = scenario(hardware={"cpu_percent": 180}, intervals=2)
    _, seen, usage = lived(of)
    assert usage.max() > 1.5
    assert max(row.numbers[0] / row.numbers[1] for row in seen[0].brokers) == 1


# ---- what commands do ----


def obeyed(command: Command, intervals: int = 4, **changed: Any) -> tuple[World, list[Snapshot], Floats]:
    """A world that begins *command* in interval 0; bundle and brokers are filled in where it names none."""
    cluster = world(scenario(**changed))
    first, usage = cluster.live(TurnNumber(0))
    if not command.bundle:
        command = replace(command, bundle=first_of(first, 0), source=first.roster[0])
    cluster.execute(TurnNumber(0), [command])
    later = [cluster.live(TurnNumber(interval)) for interval in range(1, intervals)]
    return cluster, [first, *(seen for seen, _ in later)], np.array([usage, *(each for _, each in later)])


ANY = unload("", "", "broker-02:8080")


def test_an_unload_is_done_in_the_next_interval_and_its_result_comes_with_it() -> None:
    cluster, seen, _ = obeyed(ANY)
    (move,) = cluster.moves
    assert owner_of(seen[0], move.bundle) == "broker-01:8080"
    assert owner_of(seen[1], move.bundle) == "broker-02:8080"
    (result,) = seen[1].results
    assert (result.id, result.status, result.owner_before, result.owner_after) == (
        "c1", "done", "broker-01:8080", "broker-02:8080",
    )  # fmt: skip
    row = seen[0].names.index(move.bundle)
    assert move.connections == seen[0].producers[row] + seen[0].consumers[row]
    assert move.messages == pytest.approx(2 * seen[1].load[row, 0])


def test_a_slow_unload_is_done_later() -> None:
    cluster, seen, _ = obeyed(ANY, 5, moves={"intervals": 3})
    assert [len(each.results) for each in seen] == [0, 0, 0, 1, 0]
    assert [move.turn for move in cluster.moves] == [3]


@pytest.mark.parametrize(
    ("moves", "statuses", "moved"),
    [
        ({"lost_percent": 100}, [], 0),
        ({"failed_percent": 100}, ["failed"], 0),
        ({"hangs_percent": 100, "hangs_intervals": 2}, ["unknown"], 1),
    ],
)
def test_an_unload_is_lost_fails_or_hangs(moves: dict[str, Any], statuses: list[str], moved: int) -> None:
    cluster, seen, _ = obeyed(ANY, 6, moves=moves)
    assert [result.status for each in seen for result in each.results] == statuses
    assert len(cluster.moves) == moved
    assert len(cluster.failures) == len(statuses)
    assert len(seen[-1].names) == 12


def test_a_bundle_whose_unload_hangs_has_no_owner_meanwhile_and_its_clients_wait() -> None:
    cluster, seen, _ = obeyed(ANY, 6, moves={"hangs_percent": 100, "hangs_intervals": 2})
    assert [len(each.names) for each in seen] == [12, 11, 11, 12, 12, 12]
    (move,) = cluster.moves
    assert move.messages == pytest.approx(120 * seen[3].load[seen[3].names.index(move.bundle), 0])


def test_an_unload_that_goes_astray_fails_where_the_bundle_is_not_at_its_destination() -> None:
    _, seen, _ = obeyed(ANY, 3, moves={"astray_percent": 100})
    (result,) = seen[1].results
    assert (result.status == "failed") is (result.owner_after != "broker-02:8080")


def test_a_command_about_a_bundle_that_is_elsewhere_is_obsolete() -> None:
    cluster, seen, _ = obeyed(unload("acme/orders/0x00000000_0x00000001", "broker-01:8080", "broker-02:8080"))
    assert [result.status for result in seen[1].results] == ["obsolete"]
    assert cluster.moves == []


def test_an_unload_off_a_broker_that_has_left_is_obsolete() -> None:
    cluster, seen, _ = obeyed(ANY, leaves=[{"at": 1, "brokers": [1]}])
    assert [result.status for result in seen[1].results] == ["obsolete"]
    assert cluster.moves == []
    assert len(seen[1].names) == 12


def test_commands_find_no_cluster_where_all_brokers_have_left() -> None:
    cluster, seen, _ = obeyed(ANY, leaves=[{"at": 1, "brokers": [1, 2, 3]}])
    assert [result.status for result in seen[1].results] == ["obsolete"]
    assert cluster.moves == []


def test_a_destination_that_has_left_is_replaced_by_a_lookup() -> None:
    _, seen, _ = obeyed(ANY, leaves=[{"at": 1, "brokers": [2]}])
    assert [result.status for result in seen[1].results] == ["failed"]
    assert "broker-02:8080" not in seen[1].roster
    assert len(seen[1].names) == 12


def test_a_move_costs_cpu_in_the_interval_in_which_the_bundle_comes() -> None:
    warm, cold = (obeyed(ANY, moves={"cold_percent": percent})[2] for percent in (0, 100))
    assert cold[1, 1] > warm[1, 1]
    assert np.array_equal(cold[[0, 2, 3]], warm[[0, 2, 3]])


def test_a_split_leaves_both_halves_with_all_topics_and_new_averages() -> None:
    bundle = "acme/orders/0x00000000_0x20000000"
    before, _ = world(scenario()).live(TurnNumber(0))
    split = unload(bundle, owner_of(before, bundle), action="split", algorithm="range_equally_divide")
    cluster, seen, _ = obeyed(split)
    halves = ["acme/orders/0x00000000_0x10000000", "acme/orders/0x10000000_0x20000000"]
    assert set(seen[1].names) - set(seen[0].names) == set(halves)
    assert seen[1].names == sorted(seen[1].names)
    rows = [seen[1].names.index(half) for half in halves]
    assert seen[1].topics[rows].sum() == seen[0].topics[seen[0].names.index(bundle)]
    assert seen[1].long_samples[rows].tolist() == [1, 1]
    assert [state.boundaries[1] for state in seen[1].namespaces if state.namespace == "acme/orders"] == [0x10000000]
    assert cluster.splits == [(1, bundle)]
    others = [name for name in seen[1].names if name not in halves]
    assert all(seen[3].long_samples[seen[3].names.index(name)] == 4 for name in others)


def test_a_split_outside_of_the_bundle_fails() -> None:
    bundle = "acme/orders/0x00000000_0x20000000"
    before, _ = world(scenario()).live(TurnNumber(0))
    split = unload(bundle, owner_of(before, bundle), action="split", algorithm="x", boundaries=(0x20000000,))
    cluster, seen, _ = obeyed(split)
    assert [result.status for result in seen[1].results] == ["failed"]
    assert cluster.splits == []


def test_halves_are_unloaded_where_the_command_says_so() -> None:
    bundle = "acme/orders/0x00000000_0x20000000"
    before, _ = world(scenario()).live(TurnNumber(0))
    split = unload(
        bundle, owner_of(before, bundle), action="split", algorithm="range_equally_divide", unload_after_split=True
    )
    cluster, _, _ = obeyed(split)
    assert {move.source for move in cluster.moves} <= {before.roster.index(owner_of(before, bundle))}


def test_what_clients_ask_for_does_not_depend_on_what_is_done() -> None:
    of: dict[str, Any] = {"load": {"drift_percent": 5}, "hardware": {"noise_percent": 1}}
    moved, still = obeyed(ANY, **of)[1], lived(scenario(**of, intervals=4))[1]
    assert [dict(zip(a.names, a.load[:, 0], strict=True)) for a in moved] == [
        dict(zip(b.names, b.load[:, 0], strict=True)) for b in still
    ]
