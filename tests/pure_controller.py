"""The streaming query and its sink without Spark: the same rows, shards, fold and engine, and a journal in memory.

Its journals hold every bit of what the strategies saw: the shedder here remembers a checksum of its view, and the split
algorithm cuts at a checksum of a bundle's topics.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.waiting.limits import WaitLimits
from controller.cycle import Policy
from controller.cycle.limits import Limits
from controller.engine import Engine, take_over
from controller.model.controls import Controls
from controller.model.decision import Decision, UnloadDecision
from controller.model.journal import JournalEntry, JournalHead
from controller.model.load import ClusterView, Floats, Ints
from controller.model.memory import Memory
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.wire.journal import encode_entry
from controller.wire.rows import Located, rows_from_records
from tests.journal_entries import parse_entry
from tests.logs import PERIOD
from tests.sharding import chosen_rows, rows_of_shards

DETAIL = DetailLimits(topics=2, sessions=1e9, msg_rate=1e4, throughput=1e18)
#: A leadership that is never lost; a mock would take longer than many a batch.
_LEADS: Final[Any] = SimpleNamespace(claim=lambda epoch: epoch + 1, check=lambda: None)
OPTIONS = FoldOptions(bundle_ttl_ms=PERIOD, detail=DETAIL)


class WatchfulShedder:
    """ThresholdShedder without history; what it remembers is a checksum of the whole view."""

    inner = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=0)

    def initial_memory(self) -> UsageHistory:
        return UsageHistory()

    def decide(
        self,
        view: ClusterView,
        memory: UsageHistory,
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
        view: ClusterView,
        bundle: int,
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
    limits=Limits(freeze_share=0.4),
)


class MemoryJournal:
    """A journal in this process's memory."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def open(self) -> JournalHead:
        last = parse_entry(self.entries[-1]) if self.entries else None
        assert last is None or isinstance(last, JournalEntry)
        return JournalHead(last=last, epoch=0)

    def begin_epoch(self, epoch: int) -> None:
        """Leaderships leave no trace in it."""

    def append(self, entry: JournalEntry, *, before_commit: Callable[[], None], **_stamps: int) -> None:
        before_commit()
        self.entries.append(encode_entry(entry))

    def prune(self, *, committed: int, before: int) -> None:
        """Nothing is ever old."""


@dataclass
class Controller:
    """Feeds on batches of a log as the query does, and decides with the engine that the sink decides with."""

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
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kept = MemoryJournal()
        self._engine = self._lead()
        self.states = [ShardState(shard=i, shards=self.shards) for i in range(self.shards)]

    @property
    def journal(self) -> list[bytes]:
        return self._kept.entries

    @property
    def memory(self) -> Memory:
        return self._engine.memory

    def feed(self, batch: Sequence[Located]) -> list[int]:
        """Fold and decide one batch, in the shards that have rows in it; returns the intervals that it closed."""
        options = replace(OPTIONS, close_at_most=self.close_at_most, waiting=self.waiting)
        rows = rows_from_records(batch, DETAIL, files=self.files)
        closed: list[Snapshot] = []
        for i, own in enumerate(rows_of_shards(rows, cluster=self.policy.cluster, shards=self.shards)):
            if not len(own):  # Spark does not call the fold for it
                continue
            if self.shuffle is not None:
                own = chosen_rows(own, np.array(self.shuffle.sample(range(len(own)), len(own)), np.int64))
            self.states[i], snapshots = fold(self.states[i], own, options)
            closed += snapshots
        self._engine.decide(closed, lambda decided: self.decisions.append(decided.entry.decision))
        count = Counter(snapshot.interval for snapshot in closed)
        assert all(of_interval == self.shards for of_interval in count.values()), "shards close together"
        return list(count)

    def _lead(self) -> Engine:
        return take_over(
            policy=self.policy,
            seed=1,
            journal=self._kept,
            leadership=_LEADS,
            controls=lambda _: Controls(mode="active"),
            now_ms=lambda: 0,
        )

    def checkpoint(self) -> list[bytes]:
        return [state_blob.dump(state) for state in self.states]

    def restart(self, checkpoint: Iterable[bytes]) -> None:
        """All there is now lies in the *checkpoint* and in the journal."""
        self.states = [state_blob.load(blob) for blob in checkpoint]
        self._engine = self._lead()


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
