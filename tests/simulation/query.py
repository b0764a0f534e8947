"""A model of Spark's part: which records a micro-batch has, when its state is stored, and what a restart repeats.

Spark writes the ends of a batch's offsets, runs it, and then writes that it is committed.  A query that starts finds
the last batch in the checkpoint: one that is not committed runs again, with the same number, the same offsets, and the
state of the batch before.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import pandas  # noqa: F401  # pyarrow would load it in the midst of a run, with locks of the simulation
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span, spans
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.log.dead_letters import DeadLetterLog
from controller.log.port import Log, LogRecord, LogTopic, Start
from controller.model.errors import TrimtabError, WireError
from controller.wire.dead_letter import DeadLetter, Source, dead_letter
from controller.wire.metrics import decode_metric
from controller.wire.results import decode_result
from controller.wire.rows import Located, rows_from_records
from streaming.schemas import SHARD_OUTPUT
from tests.sharding import rows_of_shards
from tests.simulation.world import World

TOPICS: Final[Mapping[int, LogTopic]] = {METRICS: "metrics", RESULTS: "results"}
_SCHEMA: Final = to_arrow_schema(SHARD_OUTPUT)
#: How often a batch begins although no tick has come.
_EARLY: Final = 0.03
#: So many batches before the last one stay in the checkpoint (streaming.spark.session).
RETAINED: Final = 10
#: Source and partition -> the position up to which it is read.
_Offsets: TypeAlias = dict[tuple[int, int], int]


@dataclass
class Checkpoint:
    """The folder that all controllers share."""

    offsets: dict[int, _Offsets] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    #: Batch and shard -> the shard's state after it.
    states: dict[tuple[int, int], bytes] = field(default_factory=dict)
    #: The file with the last journalled interval.
    noted: bytes | None = None
    #: Parts of the state.
    shards: int = 2

    def purge(self, last: int) -> None:
        """Delete what is older than the batches before the *last* one that stay."""
        first = last - RETAINED
        self.offsets = {number: ends for number, ends in self.offsets.items() if number >= first}
        self.commits = {number for number in self.commits if number >= first}
        self.states = {place: blob for place, blob in self.states.items() if place[0] >= first}


class Decoder:
    """Records as the query's Java decodes them: those that are good, and where the others lie."""

    def __init__(self, cluster: str, period_ms: int) -> None:
        self._cluster, self._period_ms = cluster, period_ms
        #: Each record is read by several queries, and once more by the replay.
        self._decoded = dict[tuple[int, int, bytes], object]()

    def decoded(self, source: int, record: LogRecord) -> object:
        """The record; None where it is another cluster's.  WireError."""
        key = source, record.timestamp_ms, record.value
        if key not in self._decoded:
            decode: Callable[..., object] = decode_metric if source == METRICS else decode_result
            self._decoded[key] = decode(
                record.value, cluster=self._cluster, period_ms=self._period_ms, append_time_ms=record.timestamp_ms
            )
        return self._decoded[key]

    def located(self, source: int, records: Sequence[LogRecord]) -> tuple[list[Located], list[Span]]:
        """*records* of *source*, and the places of those that are refused."""
        good, bad = list[Located](), list[tuple[int, int, str, int]]()
        for record in records:
            try:
                found = self.decoded(source, record)
            except WireError:
                bad.append((source, record.partition, "", record.position))
                continue
            if found is not None:
                good.append(Located(source=source, partition=record.partition, offset=record.position, record=found))
        return good, spans(bad)


class Query:
    """The query of one leadership."""

    #: Whether the log is a folder.
    files = False

    def __init__(
        self, world: World, checkpoint: Checkpoint, log: Log, decoder: Decoder, policy: Policy, options: FoldOptions
    ) -> None:
        self._world, self._checkpoint, self._log = world, checkpoint, log
        self._policy, self._options, self._decoder = policy, options, decoder
        self._results = dict[int, int]()
        #: Where the log ended when the gate was opened last.
        self._open_to: _Offsets = {}
        last = max(checkpoint.offsets, default=-1)
        self._next = last + 1 if last in checkpoint.commits else last
        self._next = max(self._next, 0)

    def batch(self, sink: Callable[[Any, int], None]) -> bool:
        """Run one micro-batch, if there is anything to read; whether there was."""
        number, files = self._next, self._checkpoint
        before = files.offsets.get(number - 1, {})
        if number not in files.offsets:
            if not self._is_open(before):
                return False
            ends = self._ends(before)
            if ends == before:
                return False
            self._file("offsets", lambda: self._create_offsets(number, ends))
        ends = files.offsets[number]
        rows, refused = self._rows(before, ends)
        output = [*self._folded(number, rows), *({**span._asdict()} for span in refused)]
        sink(_Batch(output), number)
        self._file("commit", lambda: self._commit(number))
        self._next += 1
        return True

    def _is_open(self, before: _Offsets) -> bool:
        """Whether the gate is open (streaming.batches.gate), *before* being what earlier batches have read.

        Ticks and results open it, and now and then it opens without.  It stays open until all has been read that was
        there.
        """
        if any(before.get(place, 0) < end for place, end in self._open_to.items()):
            return True
        results = {partition: ends.end for partition, ends in self._log.ends("results").items()}
        is_news, self._results = results != self._results, results
        if is_news or self._world.sim.random.random() < _EARLY:
            self._open_to = self._log_ends()
            return True
        return False

    def _log_ends(self) -> _Offsets:
        return {
            (source, partition): ends.end
            for source, topic in TOPICS.items()
            for partition, ends in self._log.ends(topic).items()
        }

    def _ends(self, before: _Offsets) -> _Offsets:
        """Up to where the next batch reads: now and then not to the end everywhere, as where a limit cuts it."""
        ends = self._log_ends()
        chance = self._world.sim.random
        for place, end in ends.items():
            at = before.get(place, 0)
            if chance.random() < 0.1 and end > at:
                ends[place] = chance.randint(at, end)
        return ends

    def _create_offsets(self, number: int, ends: _Offsets) -> None:
        if number in self._checkpoint.offsets:
            raise TrimtabError(f"another driver has begun batch {number}")
        self._checkpoint.offsets[number] = ends
        self._world.note("batch", epoch=number, content=str(sorted(ends.items())))

    def _commit(self, number: int) -> None:
        if number in self._checkpoint.commits:
            raise TrimtabError(f"another driver has committed batch {number}")
        self._checkpoint.commits.add(number)
        self._purge(number)

    def _purge(self, number: int) -> None:
        self._checkpoint.purge(number)

    def _file(self, name: str, write: Callable[[], None]) -> None:
        self._world.call("checkpoint", f"spark {name}", write, lambda sent: TrimtabError(f"{name}: {sent}"))

    def _rows(self, before: _Offsets, ends: _Offsets) -> tuple[list[Located], list[Span]]:
        good, refused = list[Located](), list[Span]()
        for (source, partition), end in sorted(ends.items()):
            at = before.get((source, partition), 0)
            if end > at:
                records = list(self._read(TOPICS[source], partition, at, end))
                more, bad = self._decoder.located(source, records)
                good += more
                refused += bad
        return good, refused

    def _read(self, topic: LogTopic, partition: int, at: int, end: int) -> Iterator[LogRecord]:
        for record in self._log.read(topic, Start(position=at), partition=partition).read_to_end():
            if record.position >= end:
                return
            yield record

    def _folded(self, number: int, located: Sequence[Located]) -> Iterator[dict[str, Any]]:
        files = self._checkpoint
        rows = rows_from_records(located, self._options.detail, files=self.files)
        for shard, own in enumerate(rows_of_shards(rows, cluster=self._policy.cluster, shards=files.shards)):
            blob = files.states.get((number - 1, shard))
            state = ShardState(shard=shard, shards=files.shards) if blob is None else state_blob.load(blob)
            snapshots = list[Snapshot]()
            if len(own):
                state, snapshots = fold(state, own, self._options)
                blob = state_blob.dump(state)
            if blob is not None:
                self._file("state", partial(files.states.__setitem__, (number, shard), blob))
            for each in snapshots:
                yield {"interval": each.interval, "snapshot": each.to_blob()}


class _Batch:
    """What Spark hands to the sink."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def toArrow(self) -> pa.Table:  # noqa: N802
        """See DataFrame."""
        columns = [pa.array([row.get(field.name) for row in self._rows], field.type) for field in _SCHEMA]
        return pa.Table.from_arrays(columns, schema=_SCHEMA)


class Letters:
    """The dead letters of a query, as streaming.dead_letters finds them."""

    def __init__(self, log: Log, decoder: Decoder) -> None:
        self._log, self._letters, self._decoder = log, DeadLetterLog(log), decoder

    def store_suspects(self, refused: Sequence[Span], batch_id: int) -> None:
        """See DeadLetters."""
        self._letters.write(batch_id, [letter for span in refused for letter in self._of(span)])

    def _of(self, span: Span) -> Iterator[DeadLetter]:
        topic = TOPICS[span.source]
        for record in self._log.read(topic, Start(position=span.first), partition=span.partition).read_to_end():
            if record.position > span.last:
                return
            try:
                self._decoder.decoded(span.source, record)
            except WireError as error:
                source = Source(topic=topic, partition=span.partition, offset=record.position)
                digest = hashlib.sha256(record.value).hexdigest()
                yield dead_letter(error, source, head=record.value, size=len(record.value), digest=digest)
