"""A log in a folder with a journal, as a real controller leaves them: a modelled cluster, the real fold and engine."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest.mock import Mock

from controller.adapters.disk.verdicts import VerdictStore
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.engine import take_over
from controller.log.factory import log_system
from controller.model.balancing import Balancing
from controller.model.controls import Controls
from controller.model.journal import DecidedInterval, JournalEntry
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.simulator.lock_step import result_record
from controller.wire.base import encode
from controller.wire.chunks import KeyValue
from controller.wire.metrics import BalancingSwitches, BrokerStateRecord, decode_metric
from controller.wire.results import decode_result
from controller.wire.rows import Located, rows_from_records
from tests.records import CLUSTER, PERIOD, T

ACTIVE = Controls(mode="active")


def settings_in(folder: Path, *, broker_conf: str = "", more: str = "") -> Path:
    """A settings file of a log and a checkpoint in *folder*."""
    (folder / "broker.conf").write_text(broker_conf, encoding="utf-8")
    path = folder / "trimtab.toml"
    path.write_text(
        f"""cluster.name = "{CLUSTER}"
log = {{kind = "folder", folder.path = "log"}}
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
guardrails.brokers_balance_unknown = "ignore"
{more}
""",
        encoding="utf-8",
    )
    return path


def states_of(balancing: Mapping[str, Balancing | None], interval: int) -> list[KeyValue]:
    """The records of brokers with these switches."""
    told = {broker: None if each is None else BalancingSwitches.of(each) for broker, each in balancing.items()}
    return [
        (broker, encode(BrokerStateRecord(cluster=CLUSTER, broker=broker, version=interval, balancing=each)))
        for broker, each in told.items()
    ]


def played(
    conf: Path,
    intervals: int,
    *,
    controls: Callable[[int], Controls] = lambda _: ACTIVE,
    shape: ClusterShape | None = None,
    executes: bool = True,
    joins: int = 0,
    start: int = T,
    balancing: Callable[[int], Mapping[str, Balancing | None]] = lambda _: {},
) -> list[JournalEntry]:
    """Let a modelled cluster and a controller run for *intervals* from *start* on; the entries of its journal.

    The log, the journal and the verdicts lie where *conf* says.  *controls*: those of an interval.  *executes*: the
    cluster obeys commands.  *joins*: the last broker, which has no bundles, is there after so many intervals.
    *balancing*: the brokers whose switches are written in an interval.
    """
    settings = read_settings(conf)
    cluster = ModelledCluster(shape or ClusterShape(bundles=24, topics=240), seed=1, name=CLUSTER)
    log, decided = log_system(settings).metrics(), list[DecidedInterval]()
    engine = take_over(
        policy=read_policy(settings),
        seed=settings.decisions.seed,
        journal=log_system(settings).journal(),
        leadership=Mock(claim=lambda epoch: epoch + 1),
        controls=controls,
        now_ms=lambda: start,
    )
    kept, reader = VerdictStore(Path(settings.verdicts_folder)), LogReader(settings)
    for interval in range(start, start + intervals * PERIOD, PERIOD):
        cluster.advance()
        log.publish(namespace_record(CLUSTER, state) for state in cluster.changed_namespaces())
        log.publish(states_of(balancing(interval), interval))
        sweeps = list(cluster.sweeps(interval))
        sweeps = sweeps[:-1] if interval < start + joins * PERIOD else sweeps
        log.publish(record for sweep in sweeps for record in json_records(sweep))
        log.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        engine.decide(reader.closed(), decided.append)
        decision = decided[-1].entry.decision
        kept.write(decision)
        if executes:
            answers = [(command, cluster.apply(command, now_ms=interval)) for command in decision.commands]
            log.results(result_record(*answer, now_ms=interval) for answer in answers)
    return [each.entry for each in decided]


class LogReader:
    """Reads the files of a log as they come, each once."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._state = settings, ShardState(shard=0, shards=1)
        self._folder = Path(settings.log.folder.path)  # type: ignore[union-attr]
        self._read, self._offset = set[Path](), 0
        self._detail = read_policy(settings).detail_limits(settings.intervals.detail_share)

    def closed(self) -> list[Snapshot]:
        """The snapshots of the intervals that can be closed now."""
        located = [*self._new(METRICS, "metrics", decode_metric), *self._new(RESULTS, "results", decode_result)]
        options = FoldOptions(bundle_ttl_ms=10 * PERIOD, detail=self._detail)
        self._state, snapshots = fold(self._state, rows_from_records(located, self._detail), options)
        return snapshots

    def _new(self, source: int, topic: str, decode: Callable[..., object]) -> Iterator[Located]:
        for path in sorted((self._folder / topic).glob("*.jsonl")):
            if path in self._read:
                continue
            self._read.add(path)
            for line in path.read_bytes().splitlines():
                self._offset += 1
                record = decode(line, cluster=CLUSTER, period_ms=PERIOD)
                yield Located(source=source, partition=0, offset=self._offset, record=record)
