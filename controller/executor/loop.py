"""The executor: takes commands, carries out those that are allowed, and answers each command once.

A batch is: take, refuse what is fenced, expired or repeated, carry the rest out (namespaces side by side, within one in
order), publish the answers with the offset.  Right before an act the executor records that it begins.  An executor that
dies leaves each command either not begun, or recorded as begun; nobody begins such a command again.
"""

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.network.calls import Calls
from controller.adapters.network.deadline import Deadline
from controller.adapters.process.awake import seconds_awake_or_not
from controller.adapters.process.failpoints import failpoint
from controller.executor.attempt import Cluster, Outcome, carry_out
from controller.executor.judge import Answer, refusal
from controller.executor.pace import Pace, Pulse
from controller.log.inbox import AnswerRecord, Delivery, Inbox
from controller.log.port import PartitionTakenOverError, TakenOverError
from controller.model.decision import Command
from controller.model.errors import WireError
from controller.model.leadership import newer_epoch
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.base import encode
from controller.wire.commands import CommandEvent, EpochEvent, command_key, own_event, to_command
from controller.wire.results import Result

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.5
#: Bytes of a command's id as JSON: all 64 of a batch must fit into the metadata of an offset in Kafka, 4 KB.
_LONGEST_ID: Final = 60
#: Share of the session's timeout.  A process that stood still for longer begins no command that it had taken.
_LIMIT_OF_STANDSTILL: Final = 0.5
_NOT_DONE: Final = frozenset({"failed", "unknown", "expired"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    partition: int
    command: Command
    epoch: int
    maybe_begun: bool


class Executor:
    """Carries the commands of *inbox* out on *cluster*; *name* is the cluster's."""

    def __init__(
        self,
        inbox: Inbox,
        cluster: Cluster,
        settings: ExecutorSettings,
        *,
        name: str,
        give_up_seconds: float = 60.0,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        awake_or_not: Callable[[], float] = seconds_awake_or_not,
        sleep: Callable[[float], None] = time.sleep,
        pace: Pace | None = None,
        metrics: ExecutorMetrics | None = None,
        own_namespaces: Collection[str] = frozenset(),
    ) -> None:
        """Commands about *own_namespaces* are refused, whoever has issued them."""
        self._inbox, self._cluster, self._settings, self._name = inbox, cluster, settings, name
        self._give_up_seconds, self._now_ms, self._sleep = give_up_seconds, now_ms, sleep
        self._inbox_turn = threading.Lock()
        self._pace = pace or Pace(settings.max_per_second)
        self._pulse = Pulse(settings.session_timeout_seconds * _LIMIT_OF_STANDSTILL, clock=awake_or_not)
        self._calls = Calls(settings.max_concurrent)
        self._metrics = metrics or ExecutorMetrics()
        self._own_namespaces = own_namespaces
        #: A command of this batch waited in vain for a broker that answers: the others do not wait.
        self._nobody_reached = threading.Event()
        #: The brokers about which a command of this batch took all of its time: the others do not wait for them, too.
        self._slow = set[str]()

    def run(self, until: threading.Event) -> None:
        """Work until told to end.  TakenOverError: others have the commands now; start anew."""
        try:
            while not until.is_set():
                if not self.step():
                    until.wait(_POLL_SECONDS / 5)
        finally:
            self._calls.close()

    def step(self) -> int:
        """Deal with one batch; returns how many events it had."""
        self._metrics.health.beat()
        deliveries = self._inbox.take(self._settings.batch, _POLL_SECONDS)
        self._metrics.assigned(self._inbox.assigned)
        if not deliveries:
            return 0
        # The epochs of the whole batch first: a command is refused even where the newer epoch comes after it.
        events = [(each.partition, event) for each in deliveries if (event := self._ours(each)) is not None]
        jobs, answers = self._sorted_out(events)
        with self._pulse.taken():
            answers += self._carry_out(jobs)
        failpoint("before-answer")
        try:
            self._inbox.answer(answers)
        except PartitionTakenOverError as error:
            log.warning("%s: it answers their commands; this executor goes on with its others", error)
        return len(deliveries)

    def _ours(self, delivery: Delivery) -> CommandEvent | None:
        """The event that was delivered, its epoch noted; None where it is another cluster's, or no leader's."""
        try:
            event = own_event(delivery.value, self._name)
        except WireError as error:
            self._no_leaders(str(error))
            return None
        if event is None:
            return None
        size = len(json.dumps(event.id)) - len('""')
        if size > _LONGEST_ID:
            self._no_leaders(f"its id takes {size} characters as JSON, allowed: {_LONGEST_ID}")
            return None
        memory = self._inbox.memory(delivery.partition)
        memory.epoch = newer_epoch(memory.epoch, event.epoch)
        if event.epoch > memory.epoch:
            self._no_leaders(
                f"its epoch is {event.epoch}, the newest one before it {memory.epoch}: no controller has led so often"
                " since; who else may write commands?"
            )
            return None
        return event

    def _no_leaders(self, why: str) -> None:
        log.error("an event of the command log cannot be used and is passed over: %s", why)
        self._metrics.passed_over("unreadable")

    def _sorted_out(self, events: Sequence[tuple[int, CommandEvent]]) -> tuple[list[_Job], list[AnswerRecord]]:
        jobs, answers = [], []
        for partition, event in events:
            if isinstance(event, EpochEvent):
                continue
            memory, command = self._inbox.memory(partition), to_command(event)
            if command.id in memory.answered:
                # Its result is in the log already; a second one could contradict it.
                told = "%s of %s comes again and is passed over"
                log.info(told, command.action, command.bundle, extra=_fields(command, event.epoch))
                self._metrics.passed_over("repeated")
                continue
            job = _Job(partition=partition, command=command, epoch=event.epoch, maybe_begun=command.id in memory.begun)
            memory.answered.add(command.id)
            refused = None if job.maybe_begun else self._refusal(job)
            if refused is None:
                jobs.append(job)
            else:
                answers.append(self._record(job, Outcome(answer=refused), self._now_ms()))
        return jobs, answers

    def _refusal(self, job: _Job) -> Answer | None:
        newest = self._inbox.memory(job.partition).epoch
        own = self._own_namespaces
        return refusal(job.command, epoch=job.epoch, newest_epoch=newest, now_ms=self._now_ms(), own_namespaces=own)

    def _carry_out(self, jobs: Sequence[_Job]) -> list[AnswerRecord]:
        of_namespace: dict[str, list[_Job]] = defaultdict(list)
        for job in jobs:
            of_namespace[command_key(job.command)].append(job)
        # Pulsar keeps a destination by the range alone: two bundles of one range would get each other's.
        turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        failed = threading.Event()
        self._nobody_reached.clear()
        self._slow.clear()
        work = {
            namespace: partial(self._in_order, [(job, turns[_range(job)]) for job in each], failed)
            for namespace, each in of_namespace.items()
        }
        # Waits for all, also where one fails: none may run on when this returns.
        calls = self._calls.together(work).values()
        return [record for call in calls for record in call.result()]

    def _in_order(self, jobs: Sequence[tuple[_Job, threading.Lock]], failed: threading.Event) -> list[AnswerRecord]:
        """One command after the other, and none any more once one of the batch has *failed*: no answer would count."""
        records = []
        for job, turn in jobs:
            with turn:
                if failed.is_set():
                    break
                try:
                    records.append(self._one(job))
                except PartitionTakenOverError:
                    pass  # the one who has the partition answers it
                except BaseException:
                    failed.set()
                    raise
        return records

    def _one(self, job: _Job) -> AnswerRecord:
        # A batch of commands that wait for silent brokers takes longer than a process may stand still.
        self._metrics.health.beat()
        held_up = self._held_up(job)
        if not (held_up or job.maybe_begun or self._settings.dry_run or job.command.mode == "dry_run"):
            # Before its time begins, and before it is looked at.
            self._pace.wait()
        started = self._now_ms()
        # Asked again: its turn, and the commands before it, took time.
        refused = self._refusal(job) or held_up
        if refused is not None and not job.maybe_begun:
            return self._record(job, Outcome(answer=refused), started)
        deadline = Deadline.after(self._give_up_seconds)
        outcome = carry_out(
            job.command,
            self._cluster.within(self._give_up_seconds),
            may_act=lambda: self._may_act(job),
            may_wait=lambda: self._may_wait(job, deadline),
            maybe_begun=job.maybe_begun,
            dry_run=self._settings.dry_run,
            most_attempts=self._settings.attempts,
            # Behind the end of its time every further attempt ends at once.
            sleep=lambda seconds: self._sleep(min(seconds, deadline.left)),
        )
        if outcome.nobody_reached:
            self._nobody_reached.set()
        if deadline.passed and outcome.answer.status in _NOT_DONE:
            self._slow |= {job.command.source, job.command.destination} - {""}
        return self._record(job, outcome, started)

    def _held_up(self, job: _Job) -> Answer | None:
        """The answer where a command before *job* took all of its time with the same broker, which may hang."""
        slow = sorted(self._slow & {job.command.source, job.command.destination})
        if not slow:
            return None
        return Answer(status="expired", detail=f"not begun, since a command about {slow[0]} took all of its time")

    def _may_act(self, job: _Job) -> Answer | None:
        """None: it is begun, and to be acted on at once.  TakenOverError: others have the commands, or these."""
        with self._inbox_turn:
            # The log may hold a later leadership, or `trimtab stop-all`, after the commands that were taken.
            memory = self._inbox.memory(job.partition)
            memory.epoch = newer_epoch(memory.epoch, self._inbox.newest_epoch(job.partition))
            refused = self._refusal(job)
            if refused is not None:
                return refused
            self._inbox.begin(job.partition, job.command.id)
        # begin asks who has the commands now, so it finds a standstill before it; the pulse finds one after it.
        if not self._pulse.steady():
            raise TakenOverError("this process stood still for longer than its session may last")
        return None

    def _may_wait(self, job: _Job, deadline: Deadline) -> bool:
        """Whether *job* may wait for a broker that answers."""
        late = self._now_ms() >= job.command.expires_at_ms
        return not (deadline.passed or late or self._nobody_reached.is_set())

    def _record(self, job: _Job, outcome: Outcome, started_ms: int) -> AnswerRecord:
        command, answer = job.command, outcome.answer
        fields = _fields(command, job.epoch)
        log.info("%s: %s", _subject(command), ", ".join(filter(None, (answer.status, answer.detail))), extra=fields)
        result = Result(
            cluster=command.cluster,
            id=command.id,
            status=answer.status,
            detail=answer.detail,
            owner_before=outcome.owner_before or None,
            owner_after=outcome.owner_after or None,
            started_at=started_ms,
            finished_at=max(started_ms, self._now_ms()),
            attempts=outcome.attempts,
        )
        self._metrics.answered(command, result)
        return AnswerRecord(job.partition, command_key(command), encode(result))


def _range(job: _Job) -> str:
    return job.command.bundle.rpartition("/")[2]


def _subject(command: Command) -> str:
    """What the command does, to which bundle: it stands in front of the answer in the log."""
    source = f" from {command.source}" if command.action == "unload" else ""
    destination = f" to {command.destination}" if command.destination else ""
    return f"{command.action} of {command.bundle}{source}{destination}"


def _fields(command: Command, epoch: int) -> dict[str, object]:
    """What a line of the log has beside its text, where it is written as JSON."""
    return {"command": command.id, "bundle": command.bundle, "epoch": epoch}
