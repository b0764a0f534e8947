"""How large a recording of a day is, and how long its replay without Spark takes.

A modelled cluster and the real fold, engine and journal write a log in a folder; commands are carried out at once.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.long_work import long_work
from controller.adapters.recordings.manifest import recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.aggregate.shard.fold import ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.engine import take_over
from controller.log.factory import log_system, records_in
from controller.model.controls import Controls
from controller.model.journal import DecidedInterval
from controller.offline.record import RecordRequest, record
from controller.offline.record_texts import FOLDED_TOPICS, TextDecoder, begin_of
from controller.offline.replay import LogReplay
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.simulator.lock_step import result_record
from controller.wire.answers.bench import RecordingAnswer
from controller.wire.json_sweeps import RecordText

_CLUSTER: Final = "bench"
_START_MS: Final = 1_735_689_600_000


def recorded_day(shape: ClusterShape, intervals: int, folder: Path) -> RecordingAnswer:
    """Write a log of *intervals* in *folder*, record it there, and replay the recording."""
    settings = _settings(folder)
    commands = _play(shape, intervals, settings)
    log, fixed = records_in(folder / "log"), recorded_settings(settings)
    began = time.process_time()
    record(log, folder / "recording", RecordRequest(), fixed, _CLUSTER)
    recorded = time.process_time() - began
    recording = Recording(folder / "recording")
    began, clock = time.process_time(), time.monotonic()
    comparison = LogReplay(recording, fixed, fixed.policy(_CLUSTER), begin_of(recording)).run().comparison
    return RecordingAnswer(
        brokers=shape.brokers,
        bundles=shape.bundles,
        topics=shape.topics,
        intervals=intervals,
        log_megabytes=_megabytes(folder / "log" / "metrics"),
        recording_megabytes=_megabytes(folder / "recording"),
        commands=commands,
        record_cpu_seconds=round(recorded, 2),
        replay_cpu_seconds=round(time.process_time() - began, 2),
        replay_seconds=round(time.monotonic() - clock, 2),
        equal=comparison.equal,
    )


def _settings(folder: Path) -> Settings:
    conf = folder / "broker.conf"
    conf.touch()
    return Settings.model_validate(
        {
            "cluster": {"name": _CLUSTER, "broker_conf": str(conf)},
            "log": {"kind": "folder", "folder": {"path": str(folder / "log")}},
            "election": {"kind": "file", "path": str(folder / "election")},
            "checkpoint": {"path": str(folder / "checkpoint")},
            "decisions": {"mode": "active"},
            "guardrails": {"brokers_balance_unknown": "ignore"},
        }
    )


def _play(shape: ClusterShape, intervals: int, settings: Settings) -> int:
    """Let cluster and controller run for *intervals*; the number of commands."""
    policy, system, commands = read_policy(settings), log_system(settings), 0
    leader = FileLeadership(Path(settings.checkpoint.path).parent / "election")
    leader.acquire(lambda: False)
    engine = take_over(
        policy=policy,
        seed=settings.decisions.seed,
        journal=system.journal(),
        leadership=leader,
        controls=lambda _: Controls(mode="active"),
        now_ms=lambda: _START_MS,
    )
    cluster, log, decided = ModelledCluster(shape, seed=1, name=_CLUSTER), system.metrics(), list[DecidedInterval]()
    reader = _Reader(settings, policy)
    with long_work("playing, intervals", intervals) as tell:
        for number in range(intervals):
            interval = _START_MS + number * policy.period_ms
            log.publish(namespace_record(_CLUSTER, state) for state in cluster.changed_namespaces())
            sweeps = list(cluster.sweeps(interval))
            log.publish(each for sweep in sweeps for each in json_records(sweep))
            log.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
            engine.decide(reader.closed(), decided.append)
            ordered = decided.pop().entry.decision.commands
            answers = [(command, cluster.apply(command, now_ms=interval)) for command in ordered]
            log.results(result_record(*answer, now_ms=interval) for answer in answers)
            cluster.advance()
            commands += len(ordered)
            tell(number + 1)
    leader.release()
    return commands


class _Reader:
    """Reads the files of a log as they come, each once, and folds them."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        fixed = recorded_settings(settings)
        self._options, self._state = fixed.fold_options(policy), ShardState(shard=0, shards=1)
        self._folder, self._read = Path(settings.checkpoint.path).parent / "log", dict.fromkeys(FOLDED_TOPICS, "")
        self._offset = 0
        self._decoder = TextDecoder(
            cluster=_CLUSTER,
            period_ms=policy.period_ms,
            max_bytes=fixed.intervals.max_record_bytes,
            detail=self._options.detail,
        )

    def closed(self) -> list[Snapshot]:
        """The snapshots of the intervals that can be closed now."""
        self._state, snapshots = fold(self._state, self._decoder.rows(list(self._new())).rows, self._options)
        return snapshots

    def _new(self) -> Iterator[RecordText]:
        for source, topic in FOLDED_TOPICS.items():
            names = (path.name for path in (self._folder / topic).glob("*.jsonl"))
            for name in sorted(name for name in names if name > self._read[source]):
                self._read[source] = name
                for value in (self._folder / topic / name).read_bytes().splitlines():
                    self._offset += 1
                    yield RecordText(source, 0, self._offset, None, value)


def _megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 3)
