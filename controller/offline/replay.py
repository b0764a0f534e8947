"""Replays a log without Spark: its records, the real fold and the real engine, as fast as this machine goes."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from controller.adapters.long_work import long_work, pieces
from controller.adapters.recordings.manifest import RecordedSettings
from controller.adapters.recordings.record_log import RecordLog
from controller.aggregate.columns.rows import Rows
from controller.aggregate.shard.fold import ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.errors import TrimtabError
from controller.model.memory import Memory
from controller.offline.live_journal import JournalComparison, JournalTally, LiveJournal
from controller.offline.record_texts import FOLDED_TOPICS, TextDecoder, known_texts, record_texts
from controller.settings.guardrails import maintenance_of
from controller.wire.json_sweeps import RecordText

T = TypeVar("T")
U = TypeVar("U")

#: Records are decoded in batches of this many bytes.
_BATCH_BYTES: Final = 8 << 20
_BATCH_RECORDS: Final = 20_000
#: Batches that are decoded while others are folded.  Parsing leaves Python's lock to others.
_AHEAD: Final = 3
_THREADS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a replay."""

    comparison: JournalTally
    #: The last interval that was decided, epoch ms.
    last: int | None
    #: Records that could not be used, as the dead letters of the live run; None where nobody counted.
    refused: int | None
    #: Whether the recording begins in the midst of a run: averages began earlier than what it holds.
    begins_midway: bool
    has_journal: bool


class ReplayedInterval(NamedTuple):
    """An interval that a replay has decided, and what it was decided from."""

    #: Of its shards.
    snapshots: Sequence[Snapshot]
    #: Before the decision.
    memory: Memory
    controls: Controls
    #: After the decision.
    remembered: Memory


class LogReplay:
    """A log, and the settings to decide on it with."""

    def __init__(self, log: RecordLog, settings: RecordedSettings, policy: Policy, begin: Sequence[bytes] = ()) -> None:
        """*begin*: records of metrics that count before all others: what was known when the log began."""
        self._log, self._begin = log, begin
        self.settings, self.policy = settings, policy
        self._decoder = TextDecoder(
            cluster=policy.cluster,
            period_ms=policy.period_ms,
            max_bytes=settings.intervals.max_record_bytes,
            detail=policy.detail_limits(settings.intervals.detail_share),
        )
        #: Records that could not be used, so far.
        self.refused = 0

    def records(self) -> Iterator[RecordText]:
        """The records of the metrics and the result topic, about in the order of time."""
        parts = (record_texts(self._log, source) for source in FOLDED_TOPICS)
        timed = heapq.merge(*parts, key=lambda text: -1 if text.append_time_ms is None else text.append_time_ms)
        return chain(known_texts(self._begin), timed)

    def size(self) -> int:
        """About how many records there are; 0 where nobody has counted them."""
        sizes = [self._log.size(topic, self._log.extents(topic)) for topic in FOLDED_TOPICS.values()]
        return len(self._begin) + sum(each or 0 for each in sizes) if None not in sizes else 0

    def snapshots(self, tell: Callable[[float], None] = lambda _: None) -> Iterator[Snapshot]:
        """The load of each interval, oldest first.  *tell* takes how many records are read."""
        options, state, read = self.settings.fold_options(self.policy), ShardState(shard=0, shards=1), 0
        for decoded in _ahead(self._decoded, batches(self.records(), _BATCH_BYTES)):
            self.refused += decoded.refused
            state, closed = fold(state, decoded.rows, options)
            yield from closed
            read += decoded.records
            tell(read)

    def run(self) -> Replayed:
        """Decide every interval with the controls of the live run, and compare its journal, where there is one."""
        with long_work("replaying, records", self.size(), pieces) as tell:
            replay = Replay(self._log, self.settings, self.policy)
            for snapshot in self.snapshots(tell):
                replay.decide([snapshot])
        return replay.ended(self.refused)

    def _decoded(self, batch: Sequence[RecordText]) -> "_Decoded":
        decoded = self._decoder.rows(batch)
        return _Decoded(decoded.rows, decoded.refused, len(batch))


class Replay:
    """Decides on snapshots, wherever they come from, as the live run of a log did, and compares the journals."""

    def __init__(self, log: RecordLog, settings: RecordedSettings, policy: Policy) -> None:
        self._settings, self._policy = settings, policy
        self._memory = policy.initial_memory(settings.decisions.seed)
        self._live = LiveJournal(log.read("journal", log.extents("journal")), cluster=policy.cluster)
        self._has_journal = self._live.exists
        self._journal: JournalComparison | None = None
        self._begins_midway = False
        #: The last interval that was decided; None before the first.
        self.newest: ReplayedInterval | None = None

    def decide(self, snapshots: Sequence[Snapshot]) -> None:
        """Decide the next interval; *snapshots* are those of its shards.  One that the memory knows is left out."""
        interval = snapshots[0].interval
        journal = self._journal or self._started(interval)
        if self._memory.last_interval is None or interval > self._memory.last_interval:
            controls = journal.controls(interval)
            entry = decide_interval(snapshots, self._memory, controls, self._policy)
            self.newest = ReplayedInterval(snapshots, self._memory, controls, entry.memory)
            self._memory = entry.memory
            journal.take(entry)

    def ended(self, refused: int | None) -> Replayed:
        """What came of it.  TrimtabError where there was no interval to decide."""
        if self._journal is None:
            raise TrimtabError("the log closes no interval: a replay needs sweeps or load reports, and ticks")
        return Replayed(
            comparison=self._journal.tally,
            last=self._memory.last_interval,
            refused=refused,
            begins_midway=self._begins_midway,
            has_journal=self._has_journal,
        )

    def _started(self, interval: int) -> JournalComparison:
        """Begin behind what the live run had decided before *interval*."""
        begin = self._live.memory_before(interval)
        self._begins_midway = begin is not None
        self._memory = self._memory if begin is None else begin.entry.memory
        self._journal = JournalComparison(
            self._live,
            begin=begin,
            whole_every_ms=self._settings.whole_every_intervals * self._policy.period_ms,
            fallback_controls=controls_of_settings(self._settings),
        )
        return self._journal


def controls_of_settings(settings: RecordedSettings) -> Callable[[int], Controls]:
    """The controls of *settings* alone, for intervals without a live run."""
    maintenance = maintenance_of(settings.guardrails)
    decisions = settings.decisions

    def at(interval: int) -> Controls:
        return Controls(mode=decisions.mode, paused=decisions.paused, maintenance=maintenance.forbids(interval))

    return at


class _Decoded(NamedTuple):
    rows: Rows
    refused: int
    #: How many records there were.
    records: int


def batches(records: Iterable[RecordText], most_bytes: int) -> Iterator[list[RecordText]]:
    """*records* in batches of about this many bytes."""
    batch, size = list[RecordText](), 0
    for record in records:
        batch.append(record)
        value = record.value
        size += len(value) if isinstance(value, bytes) else len(value.text) + 8 * len(value.digits)
        if size >= most_bytes or len(batch) >= _BATCH_RECORDS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _ahead(work: Callable[[T], U], parts: Iterable[T]) -> Iterator[U]:
    """What *work* makes of each of *parts*, in their order; a few are worked on ahead of whoever takes them."""
    with ThreadPoolExecutor(_THREADS) as pool:
        under_way: deque[Future[U]] = deque()
        try:
            for part in parts:
                under_way.append(pool.submit(work, part))
                if len(under_way) > _AHEAD:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
