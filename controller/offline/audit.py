"""Audits the moves of a recording, or of the end of a live log: reads both logs once, and sums up."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pydantic_core import to_json

from controller.adapters.recordings.record_log import Extents, RecordedTopic, RecordLog, StoredRecord
from controller.aggregate.view import assemble
from controller.audit.auditor import HOUR_MS, LOOKED_AT, MoveAuditor
from controller.audit.moves import AuditedMove, MoveSums, StraightPlan
from controller.audit.owner_changes import OwnerChange
from controller.audit.seen_load import weights_of
from controller.audit.topics import TopicAuditor, TopicSums
from controller.cycle import with_read_memories
from controller.model.decision import Decision
from controller.model.errors import SettingsError, WireError
from controller.model.memory import Memory
from controller.model.names import namespace_of
from controller.offline.counterfactual.replay_source import ReplaySource
from controller.offline.counterfactual.survey import ReplaySpan
from controller.offline.record import RecordRequest, requested_extents
from controller.offline.replay import LogReplay
from controller.wire.base import printable, validate
from controller.wire.journal import DeltaEntry, to_decision
from controller.wire.journal_records import Decided, EntryReader

K = TypeVar("K", str, int)

#: Moves, and changes of owners, that are listed.
MAX_LISTED: Final = 10_000
#: Strategies, namespaces and hours that have sums of their own, each; hours from the first one on.
_MAX_SUMS: Final = 100_000
_OTHERS: Final = "(others)"
#: The name for the strategy of a command that names none.
_UNNAMED: Final = "(not named)"
_TOPICS: Final[tuple[RecordedTopic, ...]] = ("metrics", "results", "journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """Which moves are audited."""

    span: ReplaySpan = field(default_factory=ReplaySpan)
    bundle: str = ""
    namespace: str = ""

    def has(self, interval: int, bundle: str) -> bool:
        """Whether a move of *bundle*, decided in *interval*, is one of them."""
        return (
            self.span.has(interval)
            and self.bundle in ("", bundle)
            and self.namespace in ("", namespace_of(bundle))
        )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class MoveAudit:
    """The findings."""

    cluster: str
    period_ms: int
    #: T of the first and the last interval whose load was read, epoch ms, and how many in the span have load.
    first: int = -1
    last: int = -1
    intervals: int = 0
    #: The shortest time between two of them, ms; 0 if there are fewer.
    apart_ms: int = 0
    #: How many intervals of the span have a decision.
    decided: int = 0
    total: MoveSums = field(default_factory=MoveSums)
    by_strategy: dict[str, MoveSums] = field(default_factory=dict)
    by_namespace: dict[str, MoveSums] = field(default_factory=dict)
    #: T of the hour's begin, epoch ms.
    by_hour: dict[int, MoveSums] = field(default_factory=dict)
    #: Of all moves in the span, those that a plan without circles would not need.
    not_needed: int = 0
    #: The first MAX_LISTED.
    moves: list[AuditedMove] = field(default_factory=list)
    #: Why -> bundles that came to other brokers without a command; and the first MAX_LISTED.
    changed: dict[str, int] = field(default_factory=lambda: {"others": 0, "broker_left": 0})
    changes: list[OwnerChange] = field(default_factory=list)
    #: Commands of a dry run, which move nothing.
    dry_run: int = 0
    has_journal: bool = False
    #: Records that could not be used: of metrics and results, and of the journal.
    refused: int = 0
    refused_entries: int = 0
    #: Scalable topics in the span, those with the most traffic above their share first.
    topics: list[TopicSums] = field(default_factory=list)
    #: Decisions whose memory is not in the log, so that what was on its way then is not known.
    without_memory: int = 0


def audit(source: ReplaySource, scope: AuditScope, tell: Callable[[float], None] = lambda _: None) -> MoveAudit:
    """Audit the moves in *scope*; *tell* takes how many records were read.

    Load is read until an hour and two intervals after the scope, as far as there is any.  SettingsError where no
    interval lies in it.
    """
    log, policy = source.log, source.policy().policy
    auditor = MoveAuditor(period_ms=log.period_ms, weights=weights_of(policy.shedder))
    run = _Run(MoveAudit(cluster=log.cluster, period_ms=log.period_ms), scope, auditor)
    decisions = _Decisions(log.records, log.cluster)
    load = LogReplay(log.records, source.settings, policy, log.begin)
    until, topics = scope.span.until, TopicAuditor(scope.namespace)
    for snapshot in load.snapshots(tell):
        for each in decisions.before(snapshot.interval):
            run.unseen(each)
        decided = decisions.of(snapshot.interval)
        run.count_interval(snapshot.interval)
        if scope.span.has(snapshot.interval) and snapshot.detail_segment.any():
            topics.take(assemble([snapshot], {}, {}))
        memory = None if decided is None else decided.memory
        memory = None if memory is None else with_read_memories(memory, policy)
        step = auditor.take([snapshot], None if decided is None else decided.decision, memory)
        run.decided(decided)
        run.take(step.settled, step.changes)
        if until is not None and snapshot.interval >= until + HOUR_MS + LOOKED_AT * log.period_ms:
            break
    else:
        for each in decisions.rest():
            run.unseen(each)
    result = run.ended()
    result.topics = topics.found()
    result.refused, result.refused_entries = load.refused, decisions.refused
    result.has_journal, result.without_memory = decisions.any, decisions.without_memory
    return result


def part_of_live_log(source: ReplaySource, since: int, until: int | None) -> ReplaySource:
    """*source*, a live log, of which only what an audit from *since* on needs is read; epoch ms."""
    records, period_ms = source.log.records, source.log.period_ms
    # Moves of an hour before may be the beginning of a circle; sweeps come before the tick of their interval.
    begin = max(0, since - HOUR_MS - 2 * period_ms)
    end = None if until is None else max(0, until + HOUR_MS + (2 * LOOKED_AT + 1) * period_ms)
    request = RecordRequest(from_ms=begin, to_ms=end)
    parts = {topic: requested_extents(records, request, topic, source.settings) for topic in _TOPICS}
    return replace(source, log=replace(source.log, records=LogPart(records, parts)))


class LogPart:
    """RecordLog that is a part of another one."""

    def __init__(self, log: RecordLog, parts: Mapping[RecordedTopic, Extents]) -> None:
        self._log, self._parts = log, parts

    @property
    def where(self) -> str:
        """See RecordLog."""
        return self._log.where

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        return self._parts.get(topic, {})

    def counted_from(self, topic: RecordedTopic) -> str:
        """See RecordLog."""
        return self._log.counted_from(topic)

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog."""
        there = self._log.since(topic, time_ms)
        return {
            partition: min(max(there.get(partition, part.end), part.first), part.end)
            for partition, part in self.extents(topic).items()
        }

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:
        """See RecordLog."""
        return self._log.size(topic, extents)

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog."""
        return self._log.read(topic, extents)


class _Run:
    """Adds up what the auditor finds."""

    def __init__(self, result: MoveAudit, scope: AuditScope, auditor: MoveAuditor) -> None:
        self._result, self._scope, self._auditor = result, scope, auditor
        self._straight = StraightPlan()

    def count_interval(self, interval: int) -> None:
        """The load of *interval* was read."""
        result = self._result
        if result.first < 0:
            result.first = interval
        else:
            apart_ms = interval - result.last
            result.apart_ms = min(result.apart_ms or apart_ms, apart_ms)
        result.last = interval
        result.intervals += self._scope.span.has(interval)

    def unseen(self, decided: "_DecidedMoves") -> None:
        """The load of this decision's interval is not there."""
        self._auditor.decided_unseen(decided.decision)
        self.decided(decided)

    def decided(self, decided: "_DecidedMoves | None") -> None:
        """Count a decision, if there is one, and the commands of its dry run."""
        if decided is None or not self._is_of_load(decided.decision.interval):
            return
        self._result.decided += self._scope.span.has(decided.decision.interval)
        for command in decided.decision.commands:
            if command.action == "unload" and command.mode != "active":
                self._result.dry_run += self._scope.has(command.interval, command.bundle)

    def take(self, settled: "tuple[AuditedMove, ...]", changes: "tuple[OwnerChange, ...]") -> None:
        """Add up moves, oldest first, and changes."""
        for move in settled:
            if self._is_of_load(move.interval) and self._scope.has(move.interval, move.bundle):
                self._add(move)
        for change in changes:
            if self._scope.has(change.interval, change.bundle):
                self._result.changed[change.why] += 1
                if len(self._result.changes) < MAX_LISTED:
                    self._result.changes.append(change)

    def ended(self) -> MoveAudit:
        """All of it.  SettingsError where no interval lies in the span."""
        if not self._result.intervals:
            raise SettingsError("the log has no closed interval in this span: see its ticks, --from and --to")
        self.take(self._auditor.ended(), ())
        self._result.not_needed = self._straight.not_needed
        return self._result

    def _is_of_load(self, interval: int) -> bool:
        """Whether *interval* is not before the load: the journal of a recording begins earlier."""
        return 0 <= self._result.first <= interval

    def _add(self, move: AuditedMove) -> None:
        result, hour = self._result, move.interval // HOUR_MS * HOUR_MS
        for sums in (
            result.total,
            _sums_of(result.by_strategy, printable(move.strategy) or _UNNAMED, _OTHERS),
            _sums_of(result.by_namespace, move.namespace, _OTHERS),
            _sums_of(result.by_hour, hour, next(reversed(result.by_hour), hour)),
        ):
            sums.add(move)
        if move.came_to:
            self._straight.add(move.bundle, move.source.broker, move.came_to)
        if len(result.moves) < MAX_LISTED:
            result.moves.append(move)


def _sums_of(by: dict[K, MoveSums], key: K, other: K) -> MoveSums:
    """The sums of *key*; of *other* where there are too many."""
    return by.setdefault(other if key not in by and len(by) >= _MAX_SUMS else key, MoveSums())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DecidedMoves:
    """A decision, and the memory after it where that is known and of use."""

    decision: Decision
    memory: Memory | None


class _Decisions:
    """The decisions of the journal, asked for in the order of intervals."""

    def __init__(self, records: RecordLog, cluster: str) -> None:
        self._reader = EntryReader(cluster)
        #: Records that are none of a journal, decisions without memory, and whether there is any decision.
        self.refused = self.without_memory = 0
        self.any = False
        self._read = self._all(records)
        self._next = next(self._read, None)

    def before(self, interval: int) -> Iterator[_DecidedMoves]:
        """The decisions on earlier intervals."""
        while self._next is not None and self._next.decision.interval < interval:
            yield self._next
            self._next = next(self._read, None)

    def of(self, interval: int) -> _DecidedMoves | None:
        """The decision on *interval*; None where there is none.  After ``before``."""
        next_entry = self._next
        if next_entry is None or next_entry.decision.interval != interval:
            return None
        self._next = next(self._read, None)
        return next_entry

    def rest(self) -> Iterator[_DecidedMoves]:
        """All that are left."""
        while self._next is not None:
            yield self._next
            self._next = next(self._read, None)

    def _all(self, records: RecordLog) -> Iterator[_DecidedMoves]:
        last = -1
        for stored in records.read("journal", records.extents("journal")):
            try:
                read = self._reader.read(stored.value)
                if isinstance(read, Decided) and read.interval > last:
                    last, self.any = read.interval, True
                    yield self._moves_of(read)
            except WireError:
                self.refused += 1

    def _moves_of(self, decided: Decided) -> _DecidedMoves:
        """The decision in *decided*; its memory is parsed from JSON only if moves need it.  WireError."""
        if decided.missing is not None:
            self.without_memory += 1
            delta: DeltaEntry = validate(DeltaEntry, to_json(decided.fields))
            return _DecidedMoves(decision=to_decision(delta), memory=None)
        if not decided.fields["commands"]:
            nothing = Decision(interval=decided.interval, summary="")
            return _DecidedMoves(decision=nothing, memory=None)
        entry = decided.entry
        return _DecidedMoves(decision=entry.decision, memory=entry.memory)
