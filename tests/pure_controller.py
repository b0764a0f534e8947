"""The streaming query and its sink without Spark: the same rows, fold, view, cycle and journal, purely.

Its journals hold every bit of what the strategies saw: the shedder here remembers a checksum of its view, and the split
algorithm cuts at a checksum of a bundle's topics.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from random import Random
from typing import Any

import numpy as np

from controller.aggregate import state_blob
from controller.aggregate.claims import ragged
from controller.aggregate.limits import WaitLimits
from controller.aggregate.rows import BUNDLE, REPORT, REPORT_BUNDLE, TICK, TOPIC, Rows
from controller.aggregate.shard import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy, decide, view_of
from controller.model.controls import Controls
from controller.model.decision import Decision, UnloadDecision
from controller.model.load import ClusterView, Floats, Ints
from controller.model.memory import Memory, NoMemory, UsageHistory
from controller.model.records import BundleSeed
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.wire.journal import JournalEntry, encode_entry, parse_entry
from controller.wire.rows import Located, rows_from_records
from tests.logs import PERIOD

DETAIL = DetailLimits(topics=2, sessions=1e9, msg_rate=1e4, throughput=1e18)
OPTIONS = FoldOptions(bundle_ttl_ms=PERIOD, detail=DETAIL)


class WatchfulShedder:
    """ThresholdShedder without history; what it remembers is a checksum of the whole view."""

    inner = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=0)

    def initial_memory(self) -> UsageHistory:
        return UsageHistory()

    def decide(
        self,
        view: ClusterView,
        memory: UsageHistory,  # noqa: ARG002
    ) -> tuple[UnloadDecision, UsageHistory]:
        decision, _ = self.inner.decide(view, UsageHistory())
        return decision, UsageHistory(usage=dict.fromkeys(view.brokers.names, float(checksum(view))))


def checksum(thing: Any) -> int:
    """Of every array and name in *thing*."""
    if isinstance(thing, np.ndarray):
        return zlib.crc32(thing.tobytes())
    if hasattr(thing, "__dataclass_fields__"):
        return zlib.crc32(repr([checksum(getattr(thing, f.name)) for f in fields(thing)]).encode())
    return zlib.crc32(repr(thing).encode())


class Anywhere:
    """To any broker, so that chance decides."""

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def acceptable(
        self,
        view: ClusterView,  # noqa: ARG002
        bundle: int,  # noqa: ARG002
        candidates: Ints,
        memory: NoMemory,
    ) -> tuple[Ints, NoMemory]:
        return candidates, memory


class ChecksumAlgorithm:
    """Cuts a bundle at a place that follows from all its topics, in the order they are listed."""

    name = "checksum"
    needs_topic_detail = True

    def cuts(self, lower: int, upper: int, positions: Ints, load: Floats) -> tuple[int, ...]:
        return (lower + 1 + zlib.crc32(positions.tobytes() + load.tobytes()) % (upper - lower - 1),)


POLICY = Policy(
    cluster="demo",
    period_ms=PERIOD,
    shedder=WatchfulShedder(),
    placement=Anywhere(),
    split_policy=BundleSplitterTask(max_topics=7, max_msg_rate=1_000_000_000, max_bandwidth_mbytes=2000),
    split_algorithm=ChecksumAlgorithm(),
)


@dataclass
class Controller:
    """Feeds on batches of a log, remembers what a controller does, and keeps a journal."""

    shards: int = 1
    #: Shuffles the rows of every batch, where there is one.
    shuffle: Random | None = None
    #: The log is a folder.
    files: bool = False
    policy: Policy = POLICY
    #: Intervals that one batch closes at most; None: all that can be closed.
    close_at_most: int | None = None
    #: How much waits for ticks at most.
    waiting: WaitLimits = field(default_factory=WaitLimits)
    journal: list[bytes] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory: Memory = self.policy.initial_memory(1)
        self.states = [ShardState(shard=i, shards=self.shards) for i in range(self.shards)]

    def feed(self, batch: Sequence[Located]) -> list[int]:
        """Fold and decide one batch, in the shards that have rows in it; returns the intervals that it closed."""
        options = replace(OPTIONS, close_at_most=self.close_at_most, waiting=self.waiting)
        rows = rows_from_records(batch, DETAIL, files=self.files)
        closed: dict[int, list[Snapshot]] = {}
        for i, own in enumerate(_shards(rows, self.shards)):
            if not len(own):  # Spark does not call the fold for it
                continue
            if self.shuffle is not None:
                own = _take(own, np.array(self.shuffle.sample(range(len(own)), len(own)), np.int64))
            self.states[i], snapshots = fold(self.states[i], own, options)
            for snapshot in snapshots:
                closed.setdefault(snapshot.interval, []).append(snapshot)
        for interval, snapshots in closed.items():
            if self.memory.last_interval is None or interval > self.memory.last_interval:
                self._decide(snapshots)
        assert all(len(snapshots) == self.shards for snapshots in closed.values()), "shards close together"
        return list(closed)

    def _decide(self, snapshots: list[Snapshot]) -> None:
        results = [result for snapshot in snapshots for result in snapshot.results]
        view, controls = view_of(snapshots, self.memory, self.policy), Controls(mode="active")
        decision, self.memory = decide(view, results, self.memory, controls, self.policy)
        entry = JournalEntry(cluster="demo", decision=decision, memory=self.memory, controls=controls)
        self.journal.append(encode_entry(entry))
        self.decisions.append(decision)

    def checkpoint(self) -> list[bytes]:
        return [state_blob.dump(state) for state in self.states]

    def restart(self, checkpoint: Iterable[bytes]) -> None:
        """All there is now lies in the *checkpoint* and in the journal."""
        self.states = [state_blob.load(blob) for blob in checkpoint]
        if self.journal:
            last = parse_entry(self.journal[-1])
            assert isinstance(last, JournalEntry)
            self.memory = last.memory


def _shards(rows: Rows, shards: int) -> Iterator[Rows]:
    """What each shard gets to see: ticks and reports all of them, a bundle's rows one, everything else the first."""
    of_bundle = np.array([zlib.crc32(name.encode()) % shards for name in rows.bundle], np.int64)
    seeds = {i: fact.bundle for i, fact in rows.facts.items() if isinstance(fact, BundleSeed)}
    owner = np.where(np.isin(rows.kind, (BUNDLE, TOPIC, REPORT_BUNDLE)), of_bundle, 0)
    for i, bundle in seeds.items():
        owner[i] = zlib.crc32(bundle.encode()) % shards
    for_all = np.isin(rows.kind, (TICK, REPORT))
    for shard in range(shards):
        yield _take(rows, np.flatnonzero(for_all | (owner == shard)))


def _take(rows: Rows, chosen: Ints) -> Rows:
    topics = ragged(rows.detail_size, chosen)
    picked = chosen.tolist()
    columns: dict[str, Any] = {}
    for name, value in ((f.name, getattr(rows, f.name)) for f in fields(rows)):
        if isinstance(value, dict):
            columns[name] = {new: value[old] for new, old in enumerate(picked) if old in value}
        elif isinstance(value, list):
            columns[name] = [value[old] for old in picked]
        elif value is not None:
            columns[name] = value[topics if name in ("detail_position", "detail_load") else chosen]
    return Rows(**{"file": None, **columns})


def journal(records: Sequence[Located], *batches: int, **options: Any) -> list[bytes]:
    """The journal of *records* in *batches* of these sizes; the rest comes in one more."""
    controller = Controller(**options)
    for batch in cut(records, batches):
        controller.feed(batch)
    return controller.journal


def cut(records: Sequence[Located], sizes: Iterable[int]) -> Iterator[Sequence[Located]]:
    start = 0
    for size in sizes:
        yield records[start : start + size]
        start += size
    yield records[start:]


def interleaved(records: Sequence[Located], rng: Random) -> list[Located]:
    """*records* with their partitions running ahead of each other in another way."""
    queues: dict[tuple[int, int], list[Located]] = {}
    for record in records:
        queues.setdefault((record.source, record.partition), []).append(record)
    deal = [partition for partition, queue in queues.items() for _ in queue]
    rng.shuffle(deal)
    return [queues[partition].pop(0) for partition in deal]
