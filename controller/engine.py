"""The whole protocol of one interval: the snapshots of all shards, the view, the decision, the journal.

    snapshots -> view -> decide -> journal

The Spark sink, what-if, the bench and the tests call this code; nobody else repeats it.  Everything that is not pure
comes through ports: the journal, the leadership, the controls and the clock.

A batch may come again after a crash, and a leader may have lost its leadership.  So an interval that is in the journal
is never decided again, and leadership is checked before each decision and again before its entry is committed.  What a
port raises is raised on; the engine must not be used after that: the next leadership begins a new one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from controller.aggregate.snapshot import Snapshot
from controller.cycle import (
    Policy,
    about_version,
    decide,
    version_in_use,
    view_of,
    with_read_memories,
    without_dry_run,
)
from controller.cycle.guardrails.catching_up import late_ms
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.errors import EntryTooLargeError, SettingsError
from controller.model.journal import DecidedInterval, Journal, JournalEntry, JournalHead
from controller.model.leadership import Leadership, newer_epoch
from controller.model.load import ClusterView
from controller.model.lost_journal import Evidence, refuse_lost
from controller.model.memory import STRATEGY_ROLES, Memory

#: What the cluster looks like: the snapshots of one interval, the memory and the policy in, the view out.
ViewOf: TypeAlias = Callable[[Sequence[Snapshot], Memory, Policy], ClusterView]


class _TooLateError(Exception):
    """This process stood still between a decision and its commit; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedBatch:
    """How many intervals of a batch were not journalled now."""

    #: They were in the journal before: the batch came again.
    known: int
    #: They are too old to act on.
    too_old: int


def decide_interval(
    snapshots: Sequence[Snapshot], memory: Memory, controls: Controls, policy: Policy, view_of: ViewOf = view_of
) -> JournalEntry:
    """Decide one interval: *snapshots* are those of all its shards, in any order.

    *policy* is that of the settings: the brokers' version, which *snapshots* and *memory* say, chooses its strategies.
    Raises StateError where a shard is missing.
    """
    return _decide_on_view(snapshots, memory, controls, policy, view_of).entry


class _EntryOnView(NamedTuple):
    """An entry, and what it was decided on."""

    entry: JournalEntry
    view: ClusterView


def _decide_on_view(
    snapshots: Sequence[Snapshot], memory: Memory, controls: Controls, policy: Policy, view_of: ViewOf = view_of
) -> _EntryOnView:
    """See ``decide_interval``."""
    results = [result for snapshot in snapshots for result in snapshot.results]
    before, requested = memory.pulsar, controls
    memory, controls, policy, about = _for_version(snapshots, memory, controls, policy)
    memory = without_dry_run(with_read_memories(memory, policy), requested)
    view = view_of(snapshots, memory, policy)
    decision, memory = decide(view, results, memory, controls, policy)
    news = about if before is not None and memory.pulsar is not None and before.version != memory.pulsar.version else ()
    summary = "; ".join([decision.summary, *(verdict.detail for verdict in news)])
    decision = replace(decision, verdicts=(*decision.verdicts, *about), summary=summary, pulsar=memory.pulsar)
    entry = JournalEntry(cluster=policy.cluster, decision=decision, memory=memory, controls=controls)
    return _EntryOnView(entry, view)


def _for_version(
    snapshots: Sequence[Snapshot], memory: Memory, controls: Controls, policy: Policy
) -> tuple[Memory, Controls, Policy, tuple[Verdict, ...]]:
    """*memory*, *controls* and *policy* for the version of Pulsar that decides, and verdicts on it."""
    if policy.versions is None:
        return memory, controls, policy, ()
    used = version_in_use(snapshots, memory.pulsar, policy.versions.pinned)
    about = about_version(snapshots, used, memory.pulsar)
    memory = replace(memory, pulsar=used)
    try:
        policy = policy.on(used.version)
    except SettingsError as error:
        # The settings were valid when the controller started; a record must not end it.
        detail = f"Pulsar {used.version} does not go with the settings, so nothing is issued: {error}"
        incompatible = Verdict(subject=CLUSTER, reason=Reason.PULSAR_VERSION, by="version", detail=detail)
        return memory, replace(controls, mode="observe"), policy, (*about, incompatible)
    if memory.last_interval is None:
        # Nothing is remembered yet: it begins with the strategies of this version.
        begins = policy.initial_memory(memory.seed)
        memory = replace(memory, **{role: getattr(begins, role) for role in STRATEGY_ROLES})
    return memory, controls, policy, about


class Engine:
    """Decides every interval once, oldest first, and journals it, for as long as one leadership lasts."""

    def __init__(
        self,
        *,
        policy: Policy,
        memory: Memory,
        journal: Journal,
        leadership: Leadership,
        epoch: int,
        controls: Callable[[int], Controls],
        now_ms: Callable[[], int],
        waits_for_brokers: str = "",
    ) -> None:
        """Go on from *memory*, the journal's last, as leader number *epoch*; ``take_over`` finds both.

        *waits_for_brokers*: what the journal's last entry says.
        *controls* says what holds at a T (epoch ms).  *now_ms* is the wall clock: it stamps commands, and
        dates decisions whose controls have a time.
        """
        self._policy, self._memory = policy, memory
        self._journal, self._leadership, self.epoch = journal, leadership, epoch
        self._controls, self._now_ms = controls, now_ms
        self.waits_for_brokers = waits_for_brokers

    @property
    def memory(self) -> Memory:
        """The memory after the last interval that was decided."""
        return self._memory

    def decide(
        self, snapshots: Iterable[Snapshot], tell: Callable[[DecidedInterval], None] = lambda _: None
    ) -> DecidedBatch:
        """Decide the intervals that *snapshots*, one batch's, are of; *tell* is called after each one.

        Of intervals that are too old to act on only the last is journalled: the others issue nothing, and what they
        did to the memory is in its entry.  After a crash they are decided again, from the journal's last entry.
        """
        batch = _by_interval(snapshots)
        last = self._memory.last_interval
        waiting = [each for each in batch if last is None or each[0].interval > last]
        too_old, controls = 0, list[Controls]()
        for number, interval in enumerate(waiting):
            # Those of the next interval are asked for as well: they say whether this one is journalled.
            controls += [self._controls(each[0].interval) for each in waiting[len(controls) : number + 2]]
            now, *after = controls[number:]
            if now.stale and after == [now]:
                too_old += 1
                tell(self._move_on(interval, now))
            else:
                tell(self._decide_and_journal(interval, now))
        return DecidedBatch(known=len(batch) - len(waiting), too_old=too_old)

    def _move_on(self, snapshots: Sequence[Snapshot], controls: Controls) -> DecidedInterval:
        # As if in its own time: a later entry holds what it did, and that must follow from the journal.
        decided = _decide_on_view(snapshots, self._memory, controls.timeless(), self._policy)
        before = self._memory
        self._memory = decided.entry.memory
        return _decided(decided, snapshots, before, journalled=False)

    def _decide_and_journal(self, snapshots: Sequence[Snapshot], controls: Controls) -> DecidedInterval:
        self._leadership.check()
        controls = self._dated(controls)  # they were asked for before, and this process may have stood still since
        decided, too_large = _decide_on_view(snapshots, self._memory, controls, self._policy), None
        try:
            self._append(decided.entry, in_time=True)
        except _TooLateError:
            decided = _decide_on_view(snapshots, self._memory, self._dated(controls), self._policy)
            self._append(decided.entry)
        except EntryTooLargeError as error:
            too_large, controls = error, replace(controls, mode="observe")
            decided = _decide_on_view(snapshots, self._memory, controls, self._policy)
            self._append(decided.entry)
        before, self._memory = self._memory, decided.entry.memory
        return _decided(decided, snapshots, before, too_large=too_large)

    def _dated(self, controls: Controls) -> Controls:
        return replace(controls, decided_at_ms=self._now_ms()) if controls.decided_at_ms else controls

    def _append(self, entry: JournalEntry, *, in_time: bool = False) -> None:
        """Journal *entry*; *in_time*: _TooLateError where its commands would be issued long after the decision."""
        decided_at_ms = entry.controls.decided_at_ms

        def before_commit() -> None:
            self._leadership.check()
            is_to_act = in_time and decided_at_ms and entry.decision.commands
            if is_to_act and self._now_ms() - decided_at_ms >= late_ms(self._policy.period_ms):
                raise _TooLateError

        self._journal.append(entry, epoch=self.epoch, issued_at_ms=self._now_ms(), before_commit=before_commit)


def take_over(
    *,
    policy: Policy,
    seed: int,
    journal: Journal,
    leadership: Leadership,
    controls: Callable[[int], Controls],
    now_ms: Callable[[], int],
    last_controls: Callable[[Controls | None], object] = lambda _: None,
    checkpoint: str | None = None,
    evidence: Callable[[], Sequence[Evidence]] = tuple,
    accepted_ms: Callable[[], int] = lambda: 0,
) -> Engine:
    """Begin a leadership: fence earlier writers, claim an epoch, and go on from the journal's memory.

    *seed* is that of the first memory, where the journal is empty.  *last_controls* is called once with the controls
    of the journal's last decision, before any are asked for.  *checkpoint* names one in which batches are
    committed, so that the journal cannot be empty; None where there is none.  *evidence* is asked for once the journal
    is open: what others know of it.  *accepted_ms*: when a person accepted that entries are lost, epoch ms.  Raises
    JournalLostError where the journal lacks entries, LeadershipLostError where another leads by now.
    """
    head = journal.open()
    known = [_believed(each, head.epoch) for each in evidence()]
    if checkpoint is not None and head == JournalHead(last=None, epoch=0):
        # Before Spark commits its first batch, a leadership is in the journal.
        known.append(Evidence(what=f"the checkpoint {checkpoint} says that it was not", epoch=1, at_ms=1))
    if known:
        interval = None if head.last is None else head.last.interval
        refuse_lost(policy.cluster, interval, head.epoch, known, accepted_ms=accepted_ms())
    # After an accepted loss executors know of newer epochs than the journal.
    epoch = leadership.claim(max(head.epoch, *(each.epoch for each in known), 0))
    journal.begin_epoch(epoch)
    last_controls(None if head.last is None else head.last.controls)
    return Engine(
        policy=policy,
        memory=policy.initial_memory(seed) if head.last is None else head.last.memory,
        journal=journal,
        leadership=leadership,
        epoch=epoch,
        controls=controls,
        now_ms=now_ms,
        waits_for_brokers="" if head.last is None else head.last.waits_for_brokers,
    )


def _believed(evidence: Evidence, epoch: int) -> Evidence:
    """*evidence* without an epoch that is too far ahead of *epoch* to be a leadership's."""
    return replace(evidence, epoch=newer_epoch(epoch, evidence.epoch))


def _by_interval(snapshots: Iterable[Snapshot]) -> list[list[Snapshot]]:
    """*snapshots* by interval, the oldest first."""
    batch: dict[int, list[Snapshot]] = {}
    for snapshot in snapshots:
        batch.setdefault(snapshot.interval, []).append(snapshot)
    return [batch[interval] for interval in sorted(batch)]


def _decided(
    decided: _EntryOnView,
    snapshots: Sequence[Snapshot],
    before: Memory,
    *,
    journalled: bool = True,
    too_large: EntryTooLargeError | None = None,
) -> DecidedInterval:
    entry = decided.entry
    return DecidedInterval(
        entry=entry,
        view=decided.view,
        journalled=journalled,
        too_large=too_large,
        dropped_rows=sum(snapshot.dropped for snapshot in snapshots),
        dropped_states=sum(snapshot.dropped_states for snapshot in snapshots),
        bundles=sum(len(snapshot.names) for snapshot in snapshots),
        settled=_settled(snapshots, without_dry_run(before, entry.controls), entry.memory),
    )


def _settled(snapshots: Sequence[Snapshot], before: Memory, after: Memory) -> tuple[tuple[str, str], ...]:
    """Action and status of the commands that were in flight *before* and are not *after*."""
    ended = {key: each.action for key, each in before.in_flight.items() if key not in after.in_flight}
    if not ended:
        return ()
    statuses: dict[str, str] = {}
    for snapshot in snapshots:
        for result in snapshot.results:
            statuses.setdefault(result.id, result.status)  # the first one counts
    return tuple((action, statuses.get(key, "lost")) for key, action in ended.items())
