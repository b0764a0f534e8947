"""The demo's scenario without Spark: the same records, fold, cycle and executor, one shard."""

from dataclasses import dataclass, field
from functools import cache

import pytest

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Command
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT
from controller.model.memory import Memory
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.demo.settings import SCENARIO
from controller.simulator.demo.view import ImbalanceLine
from controller.simulator.encode import json_records, namespace_record
from controller.simulator.lock_step import result_record
from controller.wire.metrics import Partitions, RosterEntry, TickRecord, decode_metric
from controller.wire.results import decode_result
from controller.wire.rows import Located, rows_from_records
from tests.effort import tries

pytestmark = pytest.mark.slow

START, PERIOD, INTERVALS = 1_735_689_600_000, 60_000, 20
NO_DETAIL = DetailLimits(topics=1e9, sessions=1e9, msg_rate=1e18, throughput=1e18)


@dataclass
class Play:
    """What became of one run."""

    imbalance: list[float] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)


@cache
def played(seed: int) -> Play:
    return play(read_settings(SCENARIO), seed)


def play(settings: Settings, seed: int, intervals: int = INTERVALS) -> Play:
    policy, cluster = read_policy(settings), ModelledCluster(ClusterShape(), seed=seed)
    state, run = ShardState(shard=0, shards=1), Play()
    answers: list[bytes] = []
    run.memory = policy.initial_memory(settings.decisions.seed)
    offset = 0
    for interval in range(START + PERIOD, START + (intervals + 1) * PERIOD, PERIOD):
        throughput = cluster.broker_load()[:, [THROUGHPUT_IN, THROUGHPUT_OUT]].sum(axis=1)
        run.imbalance.append(ImbalanceLine.of(throughput).max_over_mean)
        sweeps = list(cluster.sweeps(interval))
        values = [namespace_record("demo", n)[1] for n in cluster.changed_namespaces()]
        values += [value for sweep in sweeps for _, value in json_records(sweep)]
        roster = tuple(RosterEntry(broker=s.broker, sweep_id=s.sweep_id) for s in sweeps)
        tick = TickRecord(cluster="demo", interval=interval, partitions=Partitions(metrics=1, results=1))
        records = [
            *((METRICS, decode_metric(value, cluster="demo", period_ms=PERIOD)) for value in values),
            *((RESULTS, decode_result(value, cluster="demo", period_ms=PERIOD)) for value in answers),
            (RESULTS, tick),
            (METRICS, tick.model_copy(update={"roster": roster})),
        ]
        located = [
            Located(source=source, partition=0, offset=offset + i, record=record)
            for i, (source, record) in enumerate(records)
        ]
        offset += len(located)
        rows = rows_from_records(located, NO_DETAIL)
        state, snapshots = fold(state, rows, FoldOptions(bundle_ttl_ms=10 * PERIOD, detail=NO_DETAIL))
        entry = decide_interval(snapshots, run.memory, Controls(mode="active"), policy)
        decision, run.memory = entry.decision, entry.memory
        answered = [(command, cluster.apply(command, now_ms=interval)) for command in decision.commands]
        answers = [result_record(*answer, now_ms=interval)[1] for answer in answered]
        run.commands += decision.commands
        run.statuses += [result.status for _, result in answered]
        cluster.advance()
    return run


@pytest.mark.parametrize("seed", range(1, 1 + tries(plain=1, thorough=3)))
def test_twenty_intervals_take_most_of_the_imbalance_away_and_every_command_is_carried_out(seed: int) -> None:
    run = played(seed)
    assert run.imbalance[0] > 1.6
    # The demo promises 1.3 and half of the excess; the margin is for other seeds.
    assert run.imbalance[-1] <= 1.2
    assert run.imbalance[-1] - 1 <= 0.3 * (run.imbalance[0] - 1)
    assert max(run.imbalance[-5:]) <= 1.2
    assert set(run.statuses) == {"done"}
    assert not {c.id for c in run.commands[:-5]} & run.memory.in_flight.keys()


def test_the_run_shown_by_default_has_unloads_to_the_restarted_broker_and_splits() -> None:
    run = played(1)
    unloads = [c for c in run.commands if c.action == "unload"]
    assert len([c for c in unloads if c.destination == "broker-6:8080"]) >= 5
    assert {c.action for c in run.commands} == {"unload", "split"}


def test_the_same_seed_gives_the_same_commands_and_another_seed_others() -> None:
    again, other = (play(read_settings(SCENARIO), seed, intervals=6).commands for seed in (1, 2))
    assert played(1).commands[: len(again)] == again != other
    assert len(again) > 3
