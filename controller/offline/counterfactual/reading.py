"""Reads a recording, or a log in a folder, interval by interval: the real fold, in one shard, with all topics."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from controller.adapters.recordings.record_log import Extents, RecordedTopic, RecordLog, StoredRecord
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.model.controls import Controls
from controller.model.errors import WireError
from controller.model.journal import JournalEntry
from controller.offline.counterfactual.recorded import RecordedInterval
from controller.offline.record_texts import FOLDED_TOPICS, TextDecoder, known_texts, record_texts
from controller.settings.trimtab_toml import IntervalSettings
from controller.wire.journal_records import Decided, EntryReader
from controller.wire.json_sweeps import RecordText
from controller.wire.metrics import TickRecord
from controller.wire.rows import Located

#: Keep every topic, so that bundles can be cut anywhere.
_ALL: Final = DetailLimits(topics=0, sessions=0, msg_rate=0, throughput=0)
#: What a sweep in JSON has in it, and a tick has not.
_SWEEP: Final = b'"bundleStats"'


class FoldedBatch(NamedTuple):
    """Some records, and what the fold makes of them."""

    #: All but sweeps in JSON, ticks among them.
    records: list[Located]
    #: Behind them.
    state: ShardState
    #: The intervals that they close.
    closed: list[Snapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLoadLog:
    """A ReplayableRecording that is read from *records* anew each time."""

    records: RecordLog
    cluster: str
    settings: IntervalSettings
    #: Records of metrics that count before all others: what was known when the recording began.
    begin: tuple[bytes, ...] = ()
    #: Topic -> the part of it that is read; a topic that is not here is read whole.
    parts: Mapping[RecordedTopic, Extents] = field(default_factory=dict)
    #: Bundles at or above it keep their topics one by one.
    detail: DetailLimits = _ALL

    @property
    def period_ms(self) -> int:
        """See ReplayableRecording."""
        return self.settings.period_ms

    def intervals(self) -> Iterator[RecordedInterval]:
        """See ReplayableRecording.  Records that cannot be used are left out, as the controller does."""
        journal = _Entries(self.decided())
        for snapshot in self._snapshots():
            before = journal.before(snapshot.interval)
            entry = journal.of(snapshot.interval)
            memory = None if before is None else before.memory
            passed = journal.passed(snapshot.interval)
            yield RecordedInterval(snapshot=snapshot, entry=entry, memory=memory, passed=passed)

    def _snapshots(self) -> Iterator[Snapshot]:
        for step in self.folded():
            yield from step.closed

    def folded(self) -> Iterator[FoldedBatch]:
        """The fold, batch by batch; a batch ends with a tick."""
        period_ms = self.period_ms
        options = FoldOptions(
            bundle_ttl_ms=self.settings.bundle_ttl_intervals * period_ms,
            detail=self.detail,
            state_ttl=self.settings.state_ttl_intervals,
        )
        decoder = TextDecoder(
            cluster=self.cluster, period_ms=period_ms, max_bytes=self.settings.max_record_bytes, detail=self.detail
        )
        state = ShardState(shard=0, shards=1)
        for sweeps, others in self._batches(decoder):
            state, closed = fold(state, decoder.rows(sweeps, others).rows, options)
            yield FoldedBatch(others, state, closed)

    def _batches(self, decoder: TextDecoder) -> Iterator[tuple[list[RecordText], list[Located]]]:
        """The records in parts, sweeps and others, each of which ends with a tick of an interval.

        The results of that interval lie in the same part.
        """
        sweeps, others = list[RecordText](), list[Located]()
        results = _located(decoder, self._texts(RESULTS))
        ticked = -1
        for text in chain(known_texts(self.begin), self._texts(METRICS)):
            if _SWEEP in (text.value if isinstance(text.value, bytes) else text.value.text):
                sweeps.append(text)
                continue
            for located in _located(decoder, (text,)):
                others.append(located)
                if not isinstance(located.record, TickRecord):
                    continue
                while ticked < located.record.interval and (result := next(results, None)) is not None:
                    others.append(result)
                    if isinstance(result.record, TickRecord):
                        ticked = result.record.interval
                yield sweeps, others
                sweeps, others = [], []
        yield sweeps, [*others, *results]

    def _texts(self, source: int) -> Iterator[RecordText]:
        return record_texts(self.records, source, self.parts.get(FOLDED_TOPICS[source]))

    def decided(self) -> Iterator[JournalEntry]:
        """The decisions whose memory is known, oldest first."""
        reader = EntryReader(self.cluster)
        for stored in self._stored("journal"):
            try:
                read = reader.read(stored.value)
                if isinstance(read, Decided) and read.missing is None:
                    yield read.entry
            except WireError:
                continue  # nothing can be made of it; the next whole entry goes on

    def _stored(self, topic: RecordedTopic) -> Iterator[StoredRecord]:
        parts = self.parts[topic] if topic in self.parts else self.records.extents(topic)
        return self.records.read(topic, parts)


def _located(decoder: TextDecoder, texts: Iterable[RecordText]) -> Iterator[Located]:
    """The records in *texts* that can be used."""
    for text in texts:
        with suppress(WireError):  # a dead letter
            located = decoder.located(text)
            if located is not None:
                yield located


class _Entries:
    """Decisions, asked for in the order of intervals."""

    def __init__(self, entries: Iterator[JournalEntry]) -> None:
        self._entries = entries
        self._last: JournalEntry | None = None
        self._next: JournalEntry | None = next(entries, None)

    def before(self, interval: int) -> JournalEntry | None:
        """The last decision before *interval*."""
        while self._next is not None and self._next.interval < interval:
            self._last, self._next = self._next, next(self._entries, None)
        return self._last

    def of(self, interval: int) -> JournalEntry | None:
        """The decision of *interval*, if there is one; after ``before``."""
        return self._next if self._next is not None and self._next.interval == interval else None

    def passed(self, interval: int) -> Controls | None:
        """The controls of *interval* where it was too late to act on, and a later one was journalled; after ``before``.

        Of intervals that are too late with the same controls the engine journals the last one only.
        """
        later = self._next
        is_passed = later is not None and later.interval > interval and later.controls.stale
        return later.controls.timeless() if later is not None and is_passed else None
